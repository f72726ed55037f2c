//! What several kinds of statement have in common.
//!
//! What a receipt establishes and what it does not is derived from its facts, here
//! and by nobody who issues one: a receipt that claims more is against its rules.

use lazaret_contract::digest::Sha256Digest;

use crate::part::{At, FormError, constant, record, words};
use crate::statement::{DigestSet, Subject, find};
use crate::text::{Id, KernelVersion, Name, Uri, Word};

/// The subject that is the closure: its manifest, whose digest is the closure's.
pub const CLOSURE_SUBJECT: &str = "closure/manifest.json";
/// The subject that is the package's code.
pub const CODE_SUBJECT: &str = "package/adapter.py";
/// The subject that is a run's input.
pub const INPUT_SUBJECT: &str = "run/input.json";
/// The subject that is a run's verified output.
pub const OUTPUT_SUBJECT: &str = "run/result.json";
/// The subject that is a whole package: its content digest.
pub const PACKAGE_SUBJECT: &str = "package/content";
/// The subject that is an attempt: digest of its binding.
pub const ATTEMPT_SUBJECT: &str = "run/attempt";

constant! {
    /// Always true: nothing of a run is kept for training or memory (ADR-013).
    pub struct NoLearning = true;
}

record! {
    /// Something that a statement names and does not judge: a source, a log, a
    /// piece of evidence. In-toto's ResourceDescriptor.
    pub struct Descriptor {
        /// Digest of its bytes.
        "digest" => digest: DigestSet,
        /// What it is, for people.
        "name" => name: Name,
        /// Where it comes from, where that is one name for everybody.
        "uri" => uri: Option<Uri>,
    }
}

impl Descriptor {
    /// A descriptor without a URI.
    pub fn new(name: Name, sha256: Sha256Digest) -> Self {
        Self {
            digest: sha256.into(),
            name,
            uri: None,
        }
    }
}

/// Lists of a statement are in order and free of repetitions.
pub(crate) fn check_names<'a>(
    names: impl IntoIterator<Item = &'a Name>,
    at: &At<'_>,
) -> Result<(), FormError> {
    let names: Vec<&Name> = names.into_iter().collect();
    if names.is_sorted_by(|a, b| a < b) {
        Ok(())
    } else {
        Err(at.error("wants every name once and in order"))
    }
}

/// That a subject has the digest that the predicate speaks of.
pub(crate) fn check_subject(
    subjects: &[Subject],
    name: &str,
    wanted: Sha256Digest,
    at: &At<'_>,
) -> Result<(), FormError> {
    match find(subjects, name) {
        Some(found) if found == wanted => Ok(()),
        Some(_) => Err(at.error(format!("is not the digest of the subject {name}"))),
        None => Err(at.error(format!("is of no subject: {name} is missing"))),
    }
}

/// That there is no other subject than these.
pub(crate) fn check_only_subjects(subjects: &[Subject], allowed: &[&str]) -> Result<(), FormError> {
    let root = At::Root;
    match subjects
        .iter()
        .find(|subject| !allowed.contains(&subject.name.as_str()))
    {
        None => Ok(()),
        Some(other) => {
            let problem = format!(
                "has the subject {}, which its kind does not know",
                other.name
            );
            Err(root.member("subject").error(problem))
        }
    }
}

words! {
    /// An operating system.
    pub enum OperatingSystem {
        /// Linux.
        Linux = "linux",
        /// macOS.
        Macos = "macos",
        /// Any other.
        Other = "other",
    }
}

words! {
    /// A processor architecture.
    pub enum Architecture {
        /// x86-64, the only one that a profile supports.
        X86_64 = "x86_64",
        /// 64-bit Arm.
        Aarch64 = "aarch64",
        /// Any other.
        Other = "other",
    }
}

record! {
    /// Where something was observed.
    pub struct Platform {
        /// The processor.
        "architecture" => architecture: Architecture,
        /// The kernel's version as numbers, where it matters.
        "kernel" => kernel: Option<KernelVersion>,
        /// The operating system.
        "os" => os: OperatingSystem,
    }
}

impl Platform {
    /// The platform that this program was compiled for.
    pub fn compiled_for(kernel: Option<KernelVersion>) -> Self {
        let os = match std::env::consts::OS {
            "linux" => OperatingSystem::Linux,
            "macos" => OperatingSystem::Macos,
            _ => OperatingSystem::Other,
        };
        let architecture = match std::env::consts::ARCH {
            "x86_64" => Architecture::X86_64,
            "aarch64" => Architecture::Aarch64,
            _ => Architecture::Other,
        };
        Self {
            architecture,
            kernel,
            os,
        }
    }

    /// Whether a profile can be enforced there at all.
    pub fn may_have_the_profile(&self) -> bool {
        self.os == OperatingSystem::Linux && self.architecture == Architecture::X86_64
    }
}

words! {
    /// How a profile's closure stands (DESIGN section 2).
    pub enum Standing {
        /// Accepted; nobody who did not write the code has reviewed it.
        AcceptedNotReviewed = "accepted, not independently reviewed",
        /// Accepted and reviewed.
        AcceptedAndReviewed = "accepted and independently reviewed",
        /// Its digests are not the accepted ones.
        Unreviewed = "unreviewed",
    }
}

record! {
    /// The profile and what it runs with.
    pub struct ProfileFacts {
        /// Whether it is the candidate for the next release.
        "candidate" => candidate: bool,
        /// Digest of the closure's manifest.
        "closure_sha256" => closure_sha256: Sha256Digest,
        /// Digest of the filter's bytes.
        "filter_sha256" => filter_sha256: Sha256Digest,
        /// The profile's id.
        "id" => id: Id,
        /// How the closure stands.
        "standing" => standing: Standing,
    }
}

record! {
    /// The package whose code a statement is about.
    pub struct PackageFacts {
        /// Digest of the declared permissions; where a lifecycle decided it.
        "authority_sha256" => authority_sha256: Option<Sha256Digest>,
        /// The capability that the task asked for.
        "capability" => capability: Id,
        /// Digest of `adapter.py`.
        "code_sha256" => code_sha256: Sha256Digest,
        /// Digest over the exact bytes of the package.
        "content_sha256" => content_sha256: Sha256Digest,
        /// Digest over profile, closure and policy; where a lifecycle decided it.
        "dependency_sha256" => dependency_sha256: Option<Sha256Digest>,
        /// The package's id.
        "id" => id: Id,
        /// The package's version.
        "version" => version: Id,
    }
}

record! {
    /// The authority under which something happened: the binding of DESIGN section
    /// 3 as far as it is not digests of package, profile and input. Every id is
    /// opaque: none of them is a name, a path or a secret.
    pub struct Authority {
        /// The approval of the version's activation.
        "approval" => approval: Option<Id>,
        /// The attempt.
        "attempt" => attempt: Option<Id>,
        /// The first absolute deadline, in milliseconds of CLOCK_BOOTTIME of the
        /// host's boot at that time.
        "deadline_boottime_ms" => deadline_boottime_ms: Option<u64>,
        /// The fence of the attempt.
        "fence" => fence: Option<u64>,
        /// The Goal.
        "goal" => goal: Option<Id>,
        /// The Goal's revision.
        "goal_revision" => goal_revision: Option<u64>,
        /// The lease of the attempt.
        "lease" => lease: Option<Id>,
        /// The reserved output slot.
        "output_slot" => output_slot: Option<Id>,
        /// The owner.
        "owner" => owner: Option<Id>,
        /// Generation of the active pointer.
        "pointer_generation" => pointer_generation: Option<u64>,
        /// The task's priority.
        "priority" => priority: Option<u64>,
        /// The review of the version.
        "review" => review: Option<Id>,
        /// Epoch of the Root.
        "root_epoch" => root_epoch: Option<u64>,
        /// The session; its identifier, never its token.
        "session" => session: Option<Id>,
        /// The task.
        "task" => task: Option<Id>,
    }
}

impl Authority {
    /// The authority of a command that the operator gave by hand, before there is
    /// a board: nothing of the binding exists.
    pub const fn none() -> Self {
        Self {
            approval: None,
            attempt: None,
            deadline_boottime_ms: None,
            fence: None,
            goal: None,
            goal_revision: None,
            lease: None,
            output_slot: None,
            owner: None,
            pointer_generation: None,
            priority: None,
            review: None,
            root_epoch: None,
            session: None,
            task: None,
        }
    }
}

words! {
    /// What a receipt establishes, as far as its signer is believed.
    pub enum Establishes {
        /// The kernel's facts about the process at the barrier were as listed.
        BarrierFacts = "kernel-facts-at-the-barrier",
        /// These exact bytes of package and input went into the process.
        StagedBytes = "staged-bytes",
        /// How the process ended, from the kernel's exit event.
        ProcessEnd = "process-end",
        /// Every process of the run is gone.
        CleanupProved = "cleanup-proved",
        /// The output was read and checked outside the sandbox.
        OutputChecked = "output-checked-outside",
        /// The output equals that of an independent implementation, byte for byte.
        OutputExact = "output-equals-independent-result",
        /// No package code ran.
        NothingRan = "no-package-code-ran",
        /// The request was refused, for the stated reason.
        RequestRefused = "request-refused",
        /// The transition was made.
        TransitionMade = "transition-made",
        /// The transition was refused and nothing changed.
        TransitionRefused = "transition-refused",
        /// The named attacks were tried and the operating system denied them.
        NamedAttacksDenied = "named-attacks-denied",
        /// What was observed on this host on this date.
        HostObserved = "host-observed",
    }
}

words! {
    /// What a receipt does not establish, whoever signs it.
    pub enum NotEstablished {
        /// Isolated execution.
        IsolatedExecution = "isolated-execution",
        /// That output which satisfies its schema is right.
        OutputCorrect = "output-correctness",
        /// Who wrote the package.
        PublisherIdentity = "publisher-identity",
        /// That CPython, the kernel, the processor and the profile have no faults.
        NoPlatformFaults = "absence-of-platform-faults",
        /// That somebody who did not write the closure reviewed it.
        IndependentReview = "independent-review-of-the-closure",
        /// That the run happened, to somebody who does not trust the operator's key.
        OperatorHonesty = "operator-honesty",
        /// That the process tree is gone.
        Cleanup = "cleanup",
        /// That the output is true or was adopted.
        OutputTruth = "output-truth",
        /// That no other attack works.
        OtherAttacks = "absence-of-other-attacks",
        /// Anything about another host, kernel or date.
        OtherHosts = "other-hosts",
        /// That the package is safe to use.
        PackageSafety = "package-safety",
    }
}

/// What a receipt says of its own reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// What it establishes.
    pub establishes: Vec<Establishes>,
    /// What it does not.
    pub does_not_establish: Vec<NotEstablished>,
}

impl Reach {
    pub(crate) fn new(
        mut establishes: Vec<Establishes>,
        mut does_not_establish: Vec<NotEstablished>,
    ) -> Self {
        establishes.sort();
        does_not_establish.sort();
        Self {
            establishes,
            does_not_establish,
        }
    }

    /// That a receipt says exactly this of itself.
    pub(crate) fn check(
        &self,
        establishes: &[Establishes],
        does_not_establish: &[NotEstablished],
        at: &At<'_>,
    ) -> Result<(), FormError> {
        if self.establishes != establishes {
            let problem = "is not what the facts establish";
            return Err(at.member("establishes").error(problem));
        }
        if self.does_not_establish != does_not_establish {
            let problem = "is not what the facts leave open";
            return Err(at.member("does_not_establish").error(problem));
        }
        Ok(())
    }
}

/// What nothing that a profile runs on establishes, by its standing.
pub(crate) fn left_open(standing: Standing) -> Vec<NotEstablished> {
    let mut open = vec![
        NotEstablished::PublisherIdentity,
        NotEstablished::NoPlatformFaults,
        NotEstablished::OperatorHonesty,
    ];
    if standing != Standing::AcceptedAndReviewed {
        open.push(NotEstablished::IndependentReview);
    }
    open
}

record! {
    /// One fact of the kernel that was judged at the barrier.
    pub struct BarrierFact {
        /// Which fact, in the warden's word for it.
        "fact" => fact: Word,
        /// The value found, where it is short and says nothing about the host.
        "value" => value: Option<crate::text::FactText>,
    }
}
