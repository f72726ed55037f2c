//! The receipt of a run: what went in, what the kernel said, how it ended, what
//! came out. Type `https://lazaret.invalid/receipt/run/v1`.
//!
//! Three facts stay separate: the end of the process, the cleanup, the output. A
//! run receipt exists only for a released attempt; one that was not released gives
//! a Blocked receipt. It must never hold a byte of input or output, a stream, a
//! path of the host or the raw texts of the barrier: those are evidence, by digest.

use lazaret_contract::digest::Sha256Digest;

use super::Predicate;
use super::shared::{
    Authority, BarrierFact, CLOSURE_SUBJECT, CODE_SUBJECT, Descriptor, Establishes, INPUT_SUBJECT,
    NoLearning, NotEstablished, OUTPUT_SUBJECT, PACKAGE_SUBJECT, PackageFacts, Platform,
    ProfileFacts, Reach, check_names, check_only_subjects, check_subject, left_open,
};
use crate::part::{At, FormError, record, words};
use crate::statement::{Statement, StatementError, Subject};

words! {
    /// What is claimed of the output.
    pub enum OutputClaim {
        /// The bytes equal those of an independent implementation.
        ExactBytes = "exact-bytes",
        /// The bytes are strict JSON that satisfies the schema, and no more.
        SchemaValid = "schema-valid",
        /// There is no output.
        None = "none",
    }
}

words! {
    /// How a released run ended. The warden's vocabulary.
    pub enum RunEnding {
        /// The package ended by itself.
        Exited = "exited",
        /// With a code that the filter should have refused.
        ExitCodeForbidden = "exit-code-forbidden",
        /// By a signal.
        Signalled = "signalled",
        /// Killed by the filter.
        DeniedCall = "denied-call",
        /// CPU time used up.
        CpuLimit = "cpu-limit",
        /// The deadline has passed.
        WallDeadline = "wall-deadline",
        /// Too much on a stream.
        StreamLimit = "stream-limit",
        /// Too much output.
        OutputLimit = "output-limit",
        /// A second process or program.
        UnexpectedProcess = "unexpected-process",
        /// Cancelled.
        Cancelled = "cancelled",
        /// The controller was lost.
        ControllerLost = "controller-lost",
        /// The warden got a signal.
        WardenSignalled = "warden-signalled",
        /// bwrap was lost.
        BwrapLost = "bwrap-lost",
        /// A record could not be made durable.
        RecordFailed = "record-failed",
        /// The kernel refused the warden something.
        WardenFailed = "warden-failed",
        /// It could not be proved.
        Unknown = "unknown",
    }
}

record! {
    /// How the process ended and what it used, from the kernel.
    pub struct ProcessFacts {
        /// CPU time of the process, in microseconds, its start included.
        "cpu_us" => cpu_us: u64,
        /// Number of the denied system call, for denied-call.
        "denied_call" => denied_call: Option<u64>,
        /// How it ended.
        "ending" => ending: RunEnding,
        /// Exit code from 0 to 127, for exited.
        "exit_code" => exit_code: Option<u64>,
        /// Largest resident set, in bytes.
        "peak_memory_bytes" => peak_memory_bytes: u64,
        /// The signal, for signalled.
        "signal" => signal: Option<u64>,
        /// Bytes on standard error.
        "stderr_bytes" => stderr_bytes: u64,
        /// Bytes on standard output.
        "stdout_bytes" => stdout_bytes: u64,
        /// From the start of bwrap until the process was reaped, in microseconds of
        /// CLOCK_BOOTTIME.
        "wall_us" => wall_us: u64,
    }
}

record! {
    /// The proof that nothing is left.
    pub struct CleanupFacts {
        /// Descriptors of all processes show their end.
        "descriptors_show_end" => descriptors_show_end: bool,
        /// The kernel said that the warden has no child and no tracee.
        "none_left" => none_left: bool,
        /// How many processes were reaped.
        "processes_reaped" => processes_reaped: u64,
    }
}

impl CleanupFacts {
    /// Whether it is a proof.
    pub fn is_proved(&self) -> bool {
        self.none_left && self.descriptors_show_end
    }
}

record! {
    /// Bytes that went in or came out.
    pub struct BytesFacts {
        /// Their digest.
        "sha256" => sha256: Sha256Digest,
        /// Their number.
        "size_bytes" => size_bytes: u64,
    }
}

record! {
    /// What a run did.
    pub struct Run {
        /// Under which authority.
        "authority" => authority: Authority,
        /// What the kernel said at the barrier; every fact held, or there would be
        /// no release.
        "barrier" => barrier: Vec<BarrierFact>,
        /// Whether package and input, hashed again at the end, were unchanged.
        "closing_digests_unchanged" => closing_digests_unchanged: bool,
        /// What is left of it: nothing, or not proved.
        "cleanup" => cleanup: CleanupFacts,
        /// What this receipt does not establish.
        "does_not_establish" => does_not_establish: Vec<NotEstablished>,
        /// What it does.
        "establishes" => establishes: Vec<Establishes>,
        /// Private originals, by digest, by name in order.
        "evidence" => evidence: Vec<Descriptor>,
        /// The input.
        "input" => input: BytesFacts,
        /// Always true.
        "no_learning" => no_learning: NoLearning,
        /// The verified output; absent when there is none.
        "output" => output: Option<BytesFacts>,
        /// What is claimed of it.
        "output_claim" => output_claim: OutputClaim,
        /// The package.
        "package" => package: PackageFacts,
        /// Where it ran.
        "platform" => platform: Platform,
        /// How the process ended.
        "process" => process: ProcessFacts,
        /// The profile.
        "profile" => profile: ProfileFacts,
    }
}

/// A released run as its warden and verifier recorded it, to make a receipt of.
#[derive(Debug, Clone)]
pub struct RunFacts {
    /// Under which authority.
    pub authority: Authority,
    /// What the kernel said at the barrier; all of it held.
    pub barrier: Vec<BarrierFact>,
    /// Whether what was staged was unchanged at the end.
    pub closing_digests_unchanged: bool,
    /// What is left of it.
    pub cleanup: CleanupFacts,
    /// Private originals.
    pub evidence: Vec<Descriptor>,
    /// The input.
    pub input: BytesFacts,
    /// The output that was verified, with what is claimed of it.
    pub output: Option<(BytesFacts, OutputClaim)>,
    /// The package.
    pub package: PackageFacts,
    /// Where it ran.
    pub platform: Platform,
    /// How the process ended.
    pub process: ProcessFacts,
    /// The profile.
    pub profile: ProfileFacts,
}

impl RunFacts {
    /// The receipt.
    ///
    /// # Errors
    /// When the facts contradict each other, for example an output of a run that
    /// did not end well.
    pub fn statement(mut self) -> Result<Statement, StatementError> {
        self.evidence.sort_by(|a, b| a.name.cmp(&b.name));
        let (output, output_claim) = match self.output {
            Some((output, claim)) => (Some(output), claim),
            None => (None, OutputClaim::None),
        };
        let mut run = Run {
            authority: self.authority,
            barrier: self.barrier,
            closing_digests_unchanged: self.closing_digests_unchanged,
            cleanup: self.cleanup,
            does_not_establish: Vec::new(),
            establishes: Vec::new(),
            evidence: self.evidence,
            input: self.input,
            no_learning: NoLearning,
            output,
            output_claim,
            package: self.package,
            platform: self.platform,
            process: self.process,
            profile: self.profile,
        };
        let reach = run.reach();
        run.establishes = reach.establishes;
        run.does_not_establish = reach.does_not_establish;
        let subjects = run
            .subjects()
            .into_iter()
            .filter_map(|(name, sha256)| name.parse().ok().map(|name| Subject::new(name, sha256)));
        Statement::new(subjects.collect(), Predicate::Run(run))
    }
}

impl Run {
    fn subjects(&self) -> Vec<(&'static str, Sha256Digest)> {
        let mut subjects = vec![
            (CLOSURE_SUBJECT, self.profile.closure_sha256),
            (CODE_SUBJECT, self.package.code_sha256),
            (INPUT_SUBJECT, self.input.sha256),
            (PACKAGE_SUBJECT, self.package.content_sha256),
        ];
        subjects.extend(
            self.output
                .as_ref()
                .map(|output| (OUTPUT_SUBJECT, output.sha256)),
        );
        subjects
    }

    fn reach(&self) -> Reach {
        let mut establishes = vec![Establishes::BarrierFacts, Establishes::StagedBytes];
        let mut open = left_open(self.profile.standing);
        if self.process.ending != RunEnding::Unknown {
            establishes.push(Establishes::ProcessEnd);
        }
        if self.cleanup.is_proved() {
            establishes.push(Establishes::CleanupProved);
        } else {
            open.push(NotEstablished::Cleanup);
        }
        match self.output_claim {
            OutputClaim::ExactBytes => {
                establishes.extend([Establishes::OutputChecked, Establishes::OutputExact]);
            }
            OutputClaim::SchemaValid => {
                establishes.push(Establishes::OutputChecked);
                open.push(NotEstablished::OutputCorrect);
            }
            OutputClaim::None => open.push(NotEstablished::OutputTruth),
        }
        Reach::new(establishes, open)
    }

    pub(crate) fn check(&self, subjects: &[Subject]) -> Result<(), FormError> {
        let root = At::Root;
        let at = root.member("predicate");
        let expected = self.subjects();
        for (name, sha256) in &expected {
            check_subject(subjects, name, *sha256, &at)?;
        }
        let names: Vec<&str> = expected.iter().map(|(name, _)| *name).collect();
        check_only_subjects(subjects, &names)?;
        self.process.check(&at.member("process"))?;
        self.check_output(&at)?;
        if self.barrier.is_empty() {
            return Err(at
                .member("barrier")
                .error("wants the facts that were judged"));
        }
        if !self.barrier.is_sorted_by(|a, b| a.fact < b.fact) {
            return Err(at
                .member("barrier")
                .error("wants every fact once and in order"));
        }
        if !self.platform.may_have_the_profile() {
            let problem = "is one where nothing can have been released";
            return Err(at.member("platform").error(problem));
        }
        check_names(
            self.evidence.iter().map(|one| &one.name),
            &at.member("evidence"),
        )?;
        self.reach()
            .check(&self.establishes, &self.does_not_establish, &at)
    }

    /// Output is adopted only after exit 0, unchanged digests and proved cleanup
    /// (DESIGN section 3, steps 12 to 14).
    fn check_output(&self, at: &At<'_>) -> Result<(), FormError> {
        let at = at.member("output");
        if self.output.is_some() != (self.output_claim != OutputClaim::None) {
            return Err(at.error("and output_claim contradict each other"));
        }
        let ended_well = self.process.ending == RunEnding::Exited
            && self.process.exit_code == Some(0)
            && self.closing_digests_unchanged
            && self.cleanup.is_proved();
        if self.output.is_some() && !ended_well {
            return Err(at.error("is there although the run did not end well"));
        }
        Ok(())
    }
}

impl ProcessFacts {
    fn check(&self, at: &At<'_>) -> Result<(), FormError> {
        let pairs = [
            (
                self.exit_code.is_some(),
                self.ending == RunEnding::Exited,
                "exit_code",
            ),
            (
                self.signal.is_some(),
                self.ending == RunEnding::Signalled,
                "signal",
            ),
            (
                self.denied_call.is_some(),
                self.ending == RunEnding::DeniedCall,
                "denied_call",
            ),
        ];
        for (is_there, is_wanted, member) in pairs {
            if is_there != is_wanted {
                return Err(at
                    .member(member)
                    .error("is there exactly for its own ending"));
            }
        }
        if self.exit_code.is_some_and(|code| code > 127) {
            return Err(at.member("exit_code").error("wants a code from 0 to 127"));
        }
        Ok(())
    }
}
