//! Staging, the session, what becomes of the run directory.

use lazaret_contract::limits::{INPUT_BYTES_MAX, PACKAGE_CODE_BYTES_MAX, WALL_DEADLINE_MS_MAX};
use lazaret_custody::{RelativeName, RunDir};
use lazaret_profile::manifest::Role;

use super::{Attempt, EngineConfig, RunRequest, Stop, session, verify};
use crate::blocked::{Blocked, Cause};
use crate::closure::{self, Closure};
use crate::evidence;
use crate::preflight;
use crate::preflight::advice::{HostSettings, advise};
use crate::record::Observed;

/// Steps 3 to 13 for one request.
pub(super) fn run(
    config: &EngineConfig,
    request: &mut RunRequest<'_>,
    attempt: &mut Attempt,
) -> Result<Vec<u8>, Stop> {
    // The deadline begins with the request and covers everything after it.
    let deadline_boottime_ns = deadline(config).map_err(Stop::Blocked)?;
    let acting = request.data.acting();
    request.cancel.check().map_err(Stop::Blocked)?;
    require_size("the package", request.package.code, PACKAGE_CODE_BYTES_MAX)?;
    require_size("the input", request.input, INPUT_BYTES_MAX)?;
    preflight::require_openat2().map_err(Stop::Blocked)?;
    let closure =
        closure::find(&config.closure_places, &config.accepted, acting).map_err(Stop::Blocked)?;
    attempt.record.profile.python = Some(closure.manifest.python_version.clone());
    let runs = request.data.runs().map_err(Stop::Blocked)?;
    attempt
        .warnings
        .extend(evidence::sweep(request.data, &runs));
    let mut run_dir = RunDir::create(&runs, acting.run_owner)
        .map_err(|error| Stop::Blocked(Blocked::custody("the run directory", &error)))?;
    attempt.record.run = Some(run_dir.name().to_string());
    let order = session::Order {
        config,
        closure: &closure,
        run_dir: &run_dir,
        run_owner: acting.run_owner,
        code: request.package.code,
        input: request.input,
        deadline_boottime_ns,
        cancel: request.cancel,
    };
    let mut seen = Observed::default();
    let session = session::run(&order, request.gate, &mut seen);
    attempt.record.observe(seen);
    let session = session.map_err(|stop| with_advice(stop, &closure));
    let ended = session.and_then(|ended| {
        verify::output(request, &mut run_dir, &ended, deadline_boottime_ns, attempt)
    });
    let output = ended.as_ref().ok().cloned();
    dispose(
        request,
        run_dir,
        attempt,
        output.as_deref(),
        ended.as_ref().err(),
    );
    ended
}

/// A sandbox that did not come up is explained as doctor explains it.
fn with_advice(stop: Stop, closure: &Closure) -> Stop {
    match stop {
        Stop::Blocked(blocked) if gives_advice(blocked.cause) => {
            let bwrap = closure.dir.join(Role::Bwrap.file_name());
            let (_, blocked) = advise(blocked, &HostSettings::read(), &bwrap);
            Stop::Blocked(blocked.advise("lazaret doctor probes each thing that a run needs"))
        }
        other => other,
    }
}

/// Whether a refusal can be the host's doing.
fn gives_advice(cause: Cause) -> bool {
    matches!(cause, Cause::Setup | Cause::Launcher | Cause::WardenMissing)
}

fn require_size(what: &str, bytes: &[u8], limit_bytes: usize) -> Result<(), Stop> {
    if bytes.len() <= limit_bytes {
        return Ok(());
    }
    let why = format!(
        "{} bytes are over the limit of {limit_bytes} bytes",
        bytes.len()
    );
    Err(Stop::Blocked(Blocked::new(Cause::TooLarge, what, why)))
}

fn deadline(config: &EngineConfig) -> Result<u64, Blocked> {
    let longest = u128::from(WALL_DEADLINE_MS_MAX);
    if config.wall.as_millis() > longest || config.wall.is_zero() {
        let why = format!("a run may take at most {longest} ms");
        return Err(Blocked::new(Cause::Setup, "the deadline", why));
    }
    let wall = u64::try_from(config.wall.as_nanos()).unwrap_or(0);
    Ok(session::boottime_ns()?.saturating_add(wall))
}

/// Keeps what is to be kept, then removes the directory. Where the end is unknown it
/// stays: something may still be there.
fn dispose(
    request: &RunRequest<'_>,
    run_dir: RunDir,
    attempt: &mut Attempt,
    output: Option<&[u8]>,
    stop: Option<&Stop>,
) {
    let never_started =
        attempt.record.process.is_none() && !matches!(stop, Some(Stop::Unknown { .. }));
    let wanted = request.keep_evidence.is_some() || (stop.is_some() && !never_started);
    if wanted {
        let mut kept = vec![
            ("package.py", request.package.code),
            ("input.json", request.input),
        ];
        if let Some(output) = output {
            kept.push(("verified-output.json", output));
        }
        match evidence::keep(
            request.data,
            request.keep_evidence.as_deref(),
            &run_dir,
            &kept,
        ) {
            Ok(place) => attempt.evidence = Some(place),
            Err(error) => attempt
                .warnings
                .push(format!("evidence could not be kept: {error}")),
        }
    }
    if matches!(stop, Some(Stop::Unknown { .. })) {
        return;
    }
    let name: RelativeName = run_dir.name().clone();
    if let Err(error) = run_dir.remove() {
        attempt.warnings.push(format!(
            "run directory {name} could not be removed: {error}"
        ));
    }
}
