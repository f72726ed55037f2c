//! Step 12: the end of every run, however it came to it.

use std::io;

use lazaret_contract::digest::Sha256Digest;
use lazaret_contract::limits::{CPU_LIMIT_S, OUTPUT_BYTES_MAX, STREAM_BYTES_MAX};
use lazaret_custody::HeldDir;

use super::Warden;
use crate::ending::{CallEntry, Ending, ProcessEnd};
use crate::frame::Kind;
use crate::inode::InodeFacts;
use crate::outcome::{self, WriteError};
use crate::record::{
    Cleanup, Closing, OUTCOME_SCHEMA, Outcome, OutputRecord, RunUsage, StagedDigests, StreamRecord,
};
use crate::sandbox::Sandbox;
use crate::stage::{Stage, digest_of};
use crate::sys;
use crate::token::RunToken;
use crate::tracing::{all_ended, kill_and_reap};

/// The largest file of a closure that is read again, in bytes.
const CLOSURE_FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

impl Warden {
    /// What a process that ended by itself, after the release, ended as. The word is
    /// the kernel's; the package's streams and files can only make it worse.
    pub(super) fn classify(&self) -> Ending {
        let Some(sandbox) = &self.sandbox else {
            return super::barrier_step::missing("the sandbox");
        };
        match sandbox.launcher_end() {
            None => super::barrier_step::missing("the launcher's end"),
            Some(ProcessEnd::Signalled(signal)) => signalled(sandbox, signal),
            Some(ProcessEnd::Exited(code)) => match u8::try_from(code) {
                Ok(code) if code < 128 => Ending::Exited { code },
                _ => Ending::ExitCodeForbidden { code },
            },
        }
    }

    /// Kills, reaps, hashes, writes, reports.
    pub(super) fn conclude(mut self, ending: Ending) -> io::Result<()> {
        let cleanup = self.clean_up()?;
        self.drain_streams();
        let output = self.read_output();
        let ending = self.with_limits_that_were_hit(ending, output.as_ref());
        let mut outcome = Outcome {
            schema: OUTCOME_SCHEMA.to_owned(),
            run_id: self.spec.as_ref().map(|spec| spec.run_id.clone()),
            ending,
            phase: self.phase,
            released: self.released_ns.is_some(),
            usage: self.usage(output.as_ref()),
            cleanup,
            closing: self
                .stage
                .as_ref()
                .map(|stage| closing(stage, self.sandbox.as_ref(), output)),
            stdout: self
                .sandbox
                .as_ref()
                .map_or(StreamRecord::default(), |s| s.stdout.record()),
            stderr: self
                .sandbox
                .as_ref()
                .map_or(StreamRecord::default(), |s| s.stderr.record()),
            recorded: true,
        };
        match &self.run {
            // It was refused, or never named: then that is the reason, and there is
            // no place to write it.
            None => outcome.recorded = false,
            Some(run) => {
                if let Err(error) = write(&run.dir, &self.token, &outcome) {
                    outcome.ending = Ending::RecordFailed {
                        record: "outcome".to_owned(),
                        detail: error.to_string(),
                        instead_of: Some(Box::new(outcome.ending)),
                    };
                    outcome.recorded = false;
                }
            }
        }
        let payload = serde_json::to_vec(&outcome).map_err(io::Error::other)?;
        self.send(Kind::Outcome, &payload)
    }

    fn clean_up(&mut self) -> io::Result<Cleanup> {
        let reaped = kill_and_reap(self.sandbox.as_mut())?;
        Ok(Cleanup {
            reaped,
            none_left: sys::wait_any()? == sys::Waited::NoneLeft,
            descriptors_show_end: match &self.sandbox {
                Some(sandbox) => all_ended(sandbox)?,
                None => true,
            },
        })
    }

    /// What was still in the pipes. Nobody can write any more, so this cannot wait.
    fn drain_streams(&mut self) {
        if let Some(sandbox) = &mut self.sandbox {
            // What cannot be read is not there; the ending stands without it.
            let _ = sandbox.stdout.read(STREAM_BYTES_MAX);
            let _ = sandbox.stderr.read(STREAM_BYTES_MAX);
        }
    }

    /// An exit is none if a limit was hit that only shows now.
    fn with_limits_that_were_hit(&self, ending: Ending, output: Option<&OutputRecord>) -> Ending {
        if !matches!(ending, Ending::Exited { .. }) {
            return ending;
        }
        if let Some(which) = self.stream_over_limit() {
            return Ending::StreamLimit { which };
        }
        match output {
            Some(OutputRecord { sha256: None, .. }) => Ending::OutputLimit,
            _ => ending,
        }
    }

    fn read_output(&self) -> Option<OutputRecord> {
        let output = &self.run.as_ref()?.output;
        let bytes = output.metadata().ok()?.len();
        let limit = u64::try_from(OUTPUT_BYTES_MAX).unwrap_or(u64::MAX);
        let sha256 = if bytes <= limit {
            digest_of(output, limit).ok()
        } else {
            None
        };
        Some(OutputRecord { bytes, sha256 })
    }

    fn usage(&self, output: Option<&OutputRecord>) -> RunUsage {
        let Some(sandbox) = &self.sandbox else {
            return RunUsage::default();
        };
        let launcher = sandbox.launcher.as_ref();
        let used = launcher.map(|launcher| launcher.usage).unwrap_or_default();
        let exit = launcher.and_then(|launcher| launcher.exit);
        let ended_ns = sandbox.ended_ns.unwrap_or(sandbox.started_ns);
        RunUsage {
            cpu_user_ns: used.cpu_user_ns,
            cpu_system_ns: used.cpu_system_ns,
            wall_ns: ended_ns.saturating_sub(sandbox.started_ns),
            package_wall_ns: self
                .released_ns
                .map_or(0, |from| ended_ns.saturating_sub(from)),
            peak_memory_bytes: exit
                .and_then(|exit| exit.peak_memory_bytes)
                .unwrap_or(used.peak_memory_bytes),
            page_tables_bytes: exit.and_then(|exit| exit.page_tables_bytes).unwrap_or(0),
            stdout_bytes: sandbox.stdout.counted_bytes(),
            stderr_bytes: sandbox.stderr.counted_bytes(),
            output_bytes: output.map_or(0, |output| output.bytes),
        }
    }
}

fn write(dir: &HeldDir, token: &RunToken, outcome: &Outcome) -> Result<(), WriteError> {
    let payload = serde_json::to_vec(outcome).map_err(io::Error::from)?;
    outcome::write_outcome(dir, token, &payload)
}

/// A signal that came from inside the kernel, not from the warden.
fn signalled(sandbox: &Sandbox, signal: i32) -> Ending {
    let exit = sandbox.launcher.as_ref().and_then(|launcher| launcher.exit);
    let cpu_time_ns = exit.and_then(|exit| exit.limited_cpu_time_ns).unwrap_or(0);
    match (signal, exit.and_then(|exit| exit.registers)) {
        (libc::SIGSYS, Some(registers)) => Ending::DeniedCall {
            number: registers.call_number,
            entry: match registers.entry {
                sys::Entry::Syscall => CallEntry::Syscall,
                sys::Entry::Int80 => CallEntry::Int80,
                sys::Entry::Other => CallEntry::Other,
            },
        },
        // Nobody gets so far otherwise: the kernel kills at the first tick beyond.
        (libc::SIGKILL, _) if cpu_time_ns >= CPU_LIMIT_S * 1_000_000_000 => Ending::CpuLimit,
        _ => Ending::Signalled { signal },
    }
}

/// Hashes again what was staged. What cannot be read again has changed.
fn closing(stage: &Stage, sandbox: Option<&Sandbox>, output: Option<OutputRecord>) -> Closing {
    let again = |file: &std::fs::File| {
        digest_of(file, CLOSURE_FILE_BYTES_MAX)
            .unwrap_or_else(|_| Sha256Digest::from_bytes([0; 32]))
    };
    let same_inode = |file: &std::fs::File, facts: &InodeFacts| {
        file.metadata()
            .is_ok_and(|found| InodeFacts::of(&found) == *facts)
    };
    let from_process = sandbox
        .and_then(|sandbox| sandbox.executable.as_ref())
        .and_then(|executable| executable.known_sha256());
    let digests = StagedDigests {
        package: again(&stage.package),
        input: again(&stage.input),
        bwrap: again(&stage.bwrap.file),
        launcher: from_process.unwrap_or_else(|| again(&stage.launcher.file)),
        filter: again(&stage.filter.file),
    };
    let files = [&stage.bwrap, &stage.launcher, &stage.filter];
    let unchanged =
        digests == stage.digests && files.iter().all(|held| same_inode(&held.file, &held.facts));
    Closing {
        digests,
        unchanged,
        output,
    }
}
