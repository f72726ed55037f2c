//! Steps 6, 8, 9 and 10: bwrap is started, the launcher is looked at, the launch is
//! recorded, one byte is written.

use std::io::Write as _;
use std::os::fd::AsFd as _;

use lazaret_launcher::{Plan, Ready, abi};

use super::Warden;
use crate::barrier::judge::{Expected, judge};
use crate::barrier::observe::{Subject, observe};
use crate::ending::Ending;
use crate::limits::{PROCESSES_INSIDE, Resource};
use crate::outcome;
use crate::record::{LAUNCHED_SCHEMA, Launched};
use crate::sandbox::Sandbox;
use crate::sys;

/// What a step needs that an earlier one left behind. It is always there; if it is
/// not, that is an error of this program and the end of the run.
pub(super) fn missing(what: &str) -> Ending {
    Ending::warden("keep the order of steps", format!("{what} is missing"))
}

impl Warden {
    /// Step 6. Gives the one ready record that will be accepted.
    pub(super) fn start_bwrap(&mut self) -> Result<Ready, Ending> {
        let stage = self.stage.as_ref().ok_or_else(|| missing("the stage"))?;
        let run = self
            .run
            .as_ref()
            .ok_or_else(|| missing("the run directory"))?;
        let spec = self.spec.as_ref().ok_or_else(|| missing("the order"))?;
        let nonce = sys::random_bytes().map_err(|error| Ending::setup("draw the nonce", error))?;
        let package_bytes =
            u32::try_from(stage.package_bytes).map_err(|error| Ending::setup("plan", error))?;
        let plan = Plan {
            nonce,
            package_sha256: stage.digests.package,
            package_bytes,
        };
        let expected = Ready {
            nonce,
            package_sha256: stage.digests.package,
            package_bytes,
            python_version_hex: spec.closure.python_version_hex,
            filter_instructions: spec.closure.filter_instructions,
        };
        self.sandbox = Some(Sandbox::start(stage, run, &plan.encode())?);
        self.watch_streams()?;
        Ok(expected)
    }

    /// Step 8, and the record of step 9.
    pub(super) fn pass_barrier(&mut self, expected: &Ready) -> Result<Launched, Ending> {
        self.compare_ready(expected)?;
        self.limit_processes()?;
        let expected = self.expected_facts()?;
        let reading = self.read_facts()?;
        let facts = judge(&expected, &reading.observed);
        let own = self
            .own
            .as_ref()
            .ok_or_else(|| missing("the own identity"))?;
        let run = self
            .run
            .as_ref()
            .ok_or_else(|| missing("the run directory"))?;
        let spec = self.spec.as_ref().ok_or_else(|| missing("the order"))?;
        let not_recorded = |error| Ending::RecordFailed {
            record: "launch".to_owned(),
            detail: format!("{error}"),
            instead_of: None,
        };
        let evidence =
            outcome::write_evidence(&run.dir, &reading.evidence).map_err(not_recorded)?;
        if let Some(wrong) = facts.iter().find(|fact| !fact.holds) {
            return Err(Ending::BarrierFactWrong {
                fact: wrong.fact,
                expected: wrong.expected.clone(),
                found: wrong.found.clone(),
            });
        }
        let launched = Launched {
            schema: LAUNCHED_SCHEMA.to_owned(),
            run_id: spec.run_id.clone(),
            warden: own.identity.clone(),
            launcher: reading.identity,
            namespaces: reading.observed.namespaces,
            facts,
            evidence,
        };
        let payload = serde_json::to_vec(&launched)
            .map_err(|error| Ending::warden("encode the launch record", error))?;
        outcome::write_launch(&run.dir, &self.token, &payload).map_err(not_recorded)?;
        Ok(launched)
    }

    /// The record has to be the one record, byte for byte.
    fn compare_ready(&mut self, expected: &Ready) -> Result<(), Ending> {
        let sandbox = self
            .sandbox
            .as_mut()
            .ok_or_else(|| missing("the sandbox"))?;
        let bytes = sandbox.stdout.take();
        if bytes == expected.encode() {
            return Ok(());
        }
        let detail = match Ready::decode(&bytes) {
            Err(error) => error.to_string(),
            Ok(found) if found.nonce != expected.nonce => "another nonce".to_owned(),
            Ok(found) if found.package_sha256 != expected.package_sha256 => {
                "another package digest".to_owned()
            }
            Ok(found) => format!(
                "package of {} bytes, Python {:#010x}, filter of {} instructions; expected {}, \
                 {:#010x}, {}",
                found.package_bytes,
                found.python_version_hex,
                found.filter_instructions,
                expected.package_bytes,
                expected.python_version_hex,
                expected.filter_instructions
            ),
        };
        Err(Ending::ReadyWrong { detail })
    }

    /// From outside, while it waits: it is one process and stays one.
    fn limit_processes(&self) -> Result<(), Ending> {
        let launcher = self
            .sandbox
            .as_ref()
            .and_then(|sandbox| sandbox.launcher.as_ref());
        let launcher = launcher.ok_or_else(|| missing("the launcher"))?;
        sys::set_limit_of(launcher.pid, Resource::Processes, PROCESSES_INSIDE)
            .map_err(|error| Ending::setup("limit the launcher's processes", error))
    }

    fn expected_facts(&self) -> Result<Expected, Ending> {
        let own = self
            .own
            .as_ref()
            .ok_or_else(|| missing("the own identity"))?;
        let stage = self.stage.as_ref().ok_or_else(|| missing("the stage"))?;
        let run = self
            .run
            .as_ref()
            .ok_or_else(|| missing("the run directory"))?;
        let sandbox = self
            .sandbox
            .as_ref()
            .ok_or_else(|| missing("the sandbox"))?;
        let launcher = sandbox
            .launcher
            .as_ref()
            .ok_or_else(|| missing("the launcher"))?;
        Ok(Expected {
            pid: launcher.pid,
            bwrap_pid: sandbox.bwrap.pid,
            warden_pid: own.identity.pid,
            uid: own.uid,
            gid: own.gid,
            groups: own.groups.clone(),
            inherited_filters: own.inherited_filters,
            pipes: sandbox.pipes,
            namespaces: own.namespaces.clone(),
            time_namespace: own.identity.time_namespace,
            launcher: stage.launcher.facts,
            launcher_sha256: stage.digests.launcher,
            output: run.output_inode,
            package_sha256: stage.digests.package,
            input_sha256: stage.digests.input,
        })
    }

    fn read_facts(&mut self) -> Result<crate::barrier::observe::Reading, Ending> {
        let failed = |error| Ending::setup("barrier", error);
        let sandbox = self
            .sandbox
            .as_mut()
            .ok_or_else(|| missing("the sandbox"))?;
        let launcher = sandbox
            .launcher
            .as_ref()
            .ok_or_else(|| missing("the launcher"))?;
        let executable = sandbox
            .executable
            .as_mut()
            .ok_or_else(|| Ending::setup("barrier", "the launcher was never executed"))?;
        let executable_sha256 = executable
            .sha256()
            .map_err(|error| Ending::setup("hash the running launcher", error))?;
        let mut reading = observe(&Subject {
            pid: launcher.pid,
            pidfd: &launcher.pidfd,
            proc_dir: executable.proc_dir.as_fd(),
            executable_sha256,
        })
        .map_err(failed)?;
        // What was hashed is what was executed; both have to be what was staged.
        if executable.facts != reading.observed.executable {
            reading.observed.executable = executable.facts;
        }
        Ok(reading)
    }

    /// Step 10: one byte, then the end of the pipe.
    pub(super) fn release(&mut self) -> Result<(), Ending> {
        let now = sys::boottime_ns().map_err(|error| Ending::warden("clock", error))?;
        let sandbox = self
            .sandbox
            .as_mut()
            .ok_or_else(|| missing("the sandbox"))?;
        let mut stdin = sandbox
            .stdin
            .take()
            .ok_or_else(|| missing("the launcher's stdin"))?;
        let byte = u8::try_from(abi::LZ_RELEASE_BYTE)
            .map_err(|error| Ending::warden("encode the release", error))?;
        // From here on package code may have run, also if the write is said to fail.
        self.released_ns = Some(now);
        stdin
            .write_all(&[byte])
            .map_err(|error| Ending::warden("release", error))
    }
}
