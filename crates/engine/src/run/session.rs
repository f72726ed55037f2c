//! A run with its warden, from the order to the outcome.
//!
//! One session is one warden. The record is filled as facts come in, so that a run
//! that ends early still says what was seen. The same session, stopped at the
//! barrier, is what doctor tries ([`crate::preflight`]).
//!
//! Nothing here judges an output.

use lazaret_custody::{RunDir, RunOwner};
use lazaret_profile::manifest::Role;
use lazaret_warden::controller::{Controller, ControllerError, Step};
use lazaret_warden::frame::RunAs;
use lazaret_warden::record::{Ending, Launched, Outcome, Phase, Staged};
use lazaret_warden::spec::{ClosureExpectation, ClosureFile, RunId, RunSpec};
use lazaret_warden::token::RunToken;
use nix::time::{ClockId, clock_gettime};

use super::{Cancel, EngineConfig, Gate, Stop};
use crate::blocked::{Blocked, Cause};
use crate::closure::{Closure, python_version_hex};
use crate::evidence::WardenNote;
use crate::record::{
    BarrierRecord, CleanupRecord, FactRecord, Observed, ProcessRecord, UsageRecord,
};

const WHAT: &str = "the sandbox";

/// What goes into a session.
pub(crate) struct Order<'a> {
    pub(crate) config: &'a EngineConfig,
    pub(crate) closure: &'a Closure,
    pub(crate) run_dir: &'a RunDir,
    pub(crate) run_owner: Option<RunOwner>,
    pub(crate) code: &'a [u8],
    pub(crate) input: &'a [u8],
    pub(crate) deadline_boottime_ns: u64,
    pub(crate) cancel: &'a Cancel,
}

/// What a session that was released came to.
pub(crate) struct Ended {
    pub(crate) staged: Staged,
    pub(crate) outcome: Outcome,
}

/// Now, in nanoseconds of the clock that neither stops in suspend nor jumps.
pub(crate) fn boottime_ns() -> Result<u64, Blocked> {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME)
        .map_err(|errno| Blocked::new(Cause::Clock, "the boot clock", errno.to_string()))?;
    let seconds = u64::try_from(now.tv_sec()).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec()).unwrap_or(0);
    Ok(seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds))
}

/// A whole run: staged, armed, released, ended.
pub(crate) fn run(
    order: &Order<'_>,
    gate: &mut dyn Gate,
    seen: &mut Observed,
) -> Result<Ended, Stop> {
    let (mut controller, staged) = start(order, seen)?;
    if let Err(refused) = gate.arm().and_then(|()| order.cancel.check()) {
        return Err(abandon(controller, refused, seen));
    }
    let launched = arm(&mut controller, seen)?;
    seen.barrier = Some(barrier(&launched));
    let allowed = require_facts(&launched)
        .and_then(|()| gate.release())
        .and_then(|()| order.cancel.check())
        .and_then(|()| require_time(order));
    if let Err(refused) = allowed {
        return Err(abandon(controller, refused, seen));
    }
    if let Err(error) = controller.release() {
        return Err(Stop::Unknown {
            why: format!("releasing the package: {error}"),
        });
    }
    match controller.wait() {
        Ok(outcome) => {
            fill(seen, &outcome);
            if outcome.released {
                Ok(Ended { staged, outcome })
            } else {
                // It ended before the release reached the warden.
                Err(Stop::Blocked(blocked_by(&outcome)))
            }
        }
        Err(error) => Err(Stop::Unknown {
            why: error.to_string(),
        }),
    }
}

/// The same up to the barrier, and no further: the launcher is never released.
pub(crate) fn try_to_barrier(order: &Order<'_>, seen: &mut Observed) -> Result<Launched, Stop> {
    let (mut controller, _) = start(order, seen)?;
    let launched = arm(&mut controller, seen)?;
    seen.barrier = Some(barrier(&launched));
    if let Err(refused) = require_facts(&launched) {
        return Err(abandon(controller, refused, seen));
    }
    end_unreleased(controller, seen)?;
    let proved = seen.cleanup.as_ref().is_some_and(|cleanup| cleanup.proved);
    if !proved {
        return Err(Stop::Unknown {
            why: "it is not proved that the trial left nothing".to_owned(),
        });
    }
    Ok(launched)
}

/// Ends a run that was refused before its release, and says what was refused.
fn abandon(controller: Controller, refused: Blocked, seen: &mut Observed) -> Stop {
    match end_unreleased(controller, seen) {
        Ok(()) => Stop::Blocked(refused),
        Err(stop) => stop,
    }
}

/// Cancels a run that was never released and waits for its end.
fn end_unreleased(controller: Controller, seen: &mut Observed) -> Result<(), Stop> {
    controller.cancel();
    let outcome = controller.wait().map_err(|error| not_released(&error))?;
    fill(seen, &outcome);
    if outcome.released {
        // Nobody released it.
        return Err(Stop::Unknown {
            why: format!("the warden released unasked: {}", outcome.ending),
        });
    }
    Ok(())
}

/// Step 4: a warden that has staged exactly what it was given.
fn start(order: &Order<'_>, seen: &mut Observed) -> Result<(Controller, Staged), Stop> {
    order.cancel.check().map_err(Stop::Blocked)?;
    let spec = spec(order).map_err(Stop::Blocked)?;
    let note = WardenNote::starting(order.run_dir).map_err(|error| not_noted(&error))?;
    let mut controller =
        Controller::start(&order.config.warden, &spec).map_err(|error| not_released(&error))?;
    note.started(controller.warden_pid())
        .map_err(|error| not_noted(&error))?;
    order.cancel.attach(controller.canceller());
    let staged = match controller.staged().map_err(|error| not_released(&error))? {
        Step::Reached(staged) => staged,
        Step::Ended(outcome) => return Err(ended_early(&outcome, seen)),
    };
    require_pins(order, &staged)?;
    Ok((controller, staged))
}

fn arm(controller: &mut Controller, seen: &mut Observed) -> Result<Launched, Stop> {
    match controller.arm().map_err(|error| not_released(&error))? {
        Step::Reached(launched) => Ok(launched),
        Step::Ended(outcome) => Err(ended_early(&outcome, seen)),
    }
}

fn spec(order: &Order<'_>) -> Result<RunSpec, Blocked> {
    let refuse = |why: String| Blocked::new(Cause::Setup, WHAT, why);
    let run_id = RunId::new(order.run_dir.name().as_str()).map_err(|e| refuse(e.to_string()))?;
    let token = RunToken::generate()
        .map_err(|error| Blocked::io(WHAT, "drawing the run's token", &error))?;
    Ok(RunSpec {
        run_id,
        token,
        run_as: order
            .run_owner
            .map(|RunOwner { uid, gid }| RunAs { uid, gid }),
        closure_dir: order.closure.dir.clone(),
        closure: expectation(order.closure)?,
        run_dir: order.run_dir.path().to_path_buf(),
        package: order.code.to_vec(),
        input: order.input.to_vec(),
        deadline_boottime_ns: order.deadline_boottime_ns,
    })
}

fn expectation(closure: &Closure) -> Result<ClosureExpectation, Blocked> {
    let refuse = |why: &str| Blocked::new(Cause::ClosureDiffers, "the closure", why);
    let file = |role: Role| {
        let found = closure
            .manifest
            .file(role)
            .ok_or_else(|| refuse("a file is not listed"))?;
        Ok::<_, Blocked>(ClosureFile {
            name: found.path.clone(),
            sha256: found.sha256,
        })
    };
    Ok(ClosureExpectation {
        bwrap: file(Role::Bwrap)?,
        launcher: file(Role::Launcher)?,
        filter: file(Role::Filter)?,
        filter_instructions: closure.manifest.filter.instructions,
        python_version_hex: python_version_hex(&closure.manifest.python_version)
            .ok_or_else(|| refuse("its Python version is not one of a release"))?,
    })
}

/// Step 5: what the warden hashed is what was pinned. The warden has compared the
/// closure's files itself; the comparison here does not rely on that.
fn require_pins(order: &Order<'_>, staged: &Staged) -> Result<(), Stop> {
    use lazaret_contract::digest::Sha256Digest;
    let accepted = &order.config.accepted;
    let pairs = [
        (
            "package",
            staged.digests.package,
            Sha256Digest::of(order.code),
        ),
        ("input", staged.digests.input, Sha256Digest::of(order.input)),
        ("bwrap", staged.digests.bwrap, accepted.bwrap),
        ("launcher", staged.digests.launcher, accepted.launcher),
        ("filter", staged.digests.filter, accepted.filter),
    ];
    for (name, found, wanted) in pairs {
        if found != wanted {
            let why = format!("the staged {name} has digest {found}, pinned is {wanted}");
            return Err(Stop::Blocked(Blocked::new(
                Cause::ClosureDiffers,
                "what was staged",
                why,
            )));
        }
    }
    Ok(())
}

fn require_facts(launched: &Launched) -> Result<(), Blocked> {
    let wrong = launched.facts.iter().find(|fact| !fact.holds);
    if launched.facts.is_empty() || wrong.is_some() {
        let why = wrong.map_or_else(
            || "the warden judged no fact".to_owned(),
            |fact| {
                format!(
                    "{} is {}, expected {}",
                    fact.fact, fact.found, fact.expected
                )
            },
        );
        return Err(Blocked::new(Cause::Barrier, "a fact at the barrier", why));
    }
    Ok(())
}

fn require_time(order: &Order<'_>) -> Result<(), Blocked> {
    if boottime_ns()? >= order.deadline_boottime_ns {
        let why = "the deadline passed before the release";
        return Err(Blocked::new(Cause::NotReleased, "the run", why));
    }
    Ok(())
}

/// The controller failed before it released anything: no package code ran.
fn not_released(error: &ControllerError) -> Stop {
    let cause = match error {
        ControllerError::Spawn { .. } => Cause::WardenMissing,
        _ => Cause::Setup,
    };
    Stop::Blocked(Blocked::new(cause, "the warden", error.to_string()))
}

fn not_noted(error: &impl std::fmt::Display) -> Stop {
    Stop::Blocked(Blocked::new(
        Cause::Io,
        "the run directory",
        error.to_string(),
    ))
}

/// The run ended before it came to the step.
fn ended_early(outcome: &Outcome, seen: &mut Observed) -> Stop {
    fill(seen, outcome);
    if outcome.released {
        // Nobody released it.
        return Stop::Unknown {
            why: format!("the warden released unasked: {}", outcome.ending),
        };
    }
    Stop::Blocked(blocked_by(outcome))
}

/// What an ending before the release is called, and what it is about.
pub(crate) fn blocked_by(outcome: &Outcome) -> Blocked {
    let (cause, what) = match &outcome.ending {
        Ending::Cancelled | Ending::WallDeadline => (Cause::NotReleased, "the run"),
        Ending::BarrierFactWrong { .. } => (Cause::Barrier, "a fact at the barrier"),
        Ending::LauncherStageFailed { .. }
        | Ending::LauncherEnded { .. }
        | Ending::ReadyWrong { .. }
        | Ending::ExtraOutput { .. } => (Cause::Launcher, "the launcher"),
        Ending::SetupFailed { .. } if outcome.phase < Phase::Starting => {
            (Cause::Setup, "what the warden staged")
        }
        _ => (Cause::Setup, WHAT),
    };
    Blocked::new(cause, what, outcome.ending.to_string())
}

fn barrier(launched: &Launched) -> BarrierRecord {
    let facts = launched.facts.iter().map(|judged| FactRecord {
        fact: judged.fact.to_string(),
        expected: judged.expected.clone(),
        found: judged.found.clone(),
        holds: judged.holds,
    });
    BarrierRecord {
        facts: facts.collect(),
        evidence_sha256: launched.evidence,
    }
}

/// Takes over what the outcome says of the process, of cleanup and of usage.
fn fill(seen: &mut Observed, outcome: &Outcome) {
    seen.process = Some(process(outcome));
    seen.cleanup = Some(CleanupRecord {
        proved: outcome.cleanup.is_proved(),
        none_left: outcome.cleanup.none_left,
        descriptors_show_end: outcome.cleanup.descriptors_show_end,
        reaped: outcome.cleanup.reaped.len(),
    });
    let used = &outcome.usage;
    seen.usage = Some(UsageRecord {
        cpu_user_ns: used.cpu_user_ns,
        cpu_system_ns: used.cpu_system_ns,
        wall_ns: used.wall_ns,
        package_wall_ns: used.package_wall_ns,
        peak_memory_bytes: used.peak_memory_bytes,
        page_tables_bytes: used.page_tables_bytes,
        stdout_bytes: used.stdout_bytes,
        stderr_bytes: used.stderr_bytes,
        output_bytes: used.output_bytes,
    });
}

fn process(outcome: &Outcome) -> ProcessRecord {
    let (mut exit_code, mut signal, mut denied_call) = (None, None, None);
    match outcome.ending {
        Ending::Exited { code } => exit_code = Some(code),
        Ending::Signalled { signal: found } => signal = Some(found),
        Ending::DeniedCall { number, .. } => denied_call = Some(number),
        _ => {}
    }
    ProcessRecord {
        phase: stable_name(&outcome.phase),
        released: outcome.released,
        reason: ending_name(&outcome.ending),
        exit_code,
        signal,
        denied_call,
    }
}

/// The stable name of an ending: the tag of its form on the wire.
pub(crate) fn ending_name(ending: &Ending) -> String {
    match serde_json::to_value(ending) {
        Ok(serde_json::Value::Object(fields)) => match fields.get("reason") {
            Some(serde_json::Value::String(reason)) => reason.clone(),
            _ => "unnamed".to_owned(),
        },
        _ => "unnamed".to_owned(),
    }
}

fn stable_name(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => "unnamed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_has_a_stable_name() {
        assert_eq!(ending_name(&Ending::CpuLimit), "cpu-limit");
        assert_eq!(ending_name(&Ending::Exited { code: 1 }), "exited");
        assert_eq!(stable_name(&Phase::Running), "running");
    }
}
