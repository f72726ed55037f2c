//! The last probe: a real start, up to the barrier and no further.

use std::time::Duration;

use lazaret_custody::RunDir;
use lazaret_profile::manifest::Role;
use lazaret_warden::record::Launched;

use super::advice::{self, HostSettings};
use super::{Need, Probes, Request};
use crate::acting::Acting;
use crate::blocked::Blocked;
use crate::closure::{self, Closure};
use crate::data_dir::DataDir;
use crate::record::Observed;
use crate::run::{Cancel, EngineConfig, Stop, session};

/// What the launcher is given. It is compiled at most, never run.
const HARMLESS_CODE: &[u8] = b"pass\n";
const HARMLESS_INPUT: &[u8] = b"null\n";

/// How long the trial may take.
const TRIAL: Duration = Duration::from_secs(10);

/// What only a start can show, in order.
const SHOWN_BY_START: [Need; 4] = [Need::Namespaces, Need::Filter, Need::Tracing, Need::Barrier];

/// Probes places, closure, and the start.
pub(super) fn probe(request: &Request, probes: &mut Probes) {
    let (data, closure) = places(request, probes);
    let (Some((data, acting)), Some(closure)) = (data, closure) else {
        return not_tried(probes, "it takes a user, a data directory and a closure");
    };
    let (Ok(accepted), Ok(warden)) = (&request.accepted, &request.warden) else {
        return not_tried(probes, "it takes a warden");
    };
    let config = EngineConfig {
        accepted: accepted.clone(),
        closure_places: request.closure_places.clone(),
        warden: warden.clone(),
        wall: TRIAL,
    };
    match start(&config, &closure, &data, acting) {
        Ok(launched) => add_shown(&launched, probes),
        Err(stop) => add_refused(stop, &closure, probes),
    }
}

/// The data directory and the closure, as a run would find them.
fn places(request: &Request, probes: &mut Probes) -> (Option<(DataDir, Acting)>, Option<Closure>) {
    let Ok(acting) = request.acting.clone() else {
        probes.not_tried(Need::DataDirectory, "the user of a run is not known");
        probes.not_tried(Need::Closure, "the user of a run is not known");
        return (None, None);
    };
    let data = request.data_dir.clone().and_then(|path| {
        let data = DataDir::open(&path, acting)?;
        data.runs()?;
        Ok(data)
    });
    let describe = |data: &DataDir| {
        let path = lazaret_custody::error::shown(data.path());
        Ok(format!("{path} on {}", data.filesystem()?))
    };
    probes.add(
        Need::DataDirectory,
        data.as_ref().map_err(Clone::clone).and_then(describe),
    );
    let closure = request
        .accepted
        .clone()
        .and_then(|accepted| closure::find(&request.closure_places, &accepted, acting));
    let describe = |closure: &Closure| {
        format!(
            "{} with CPython {} on {}",
            closure.digest, closure.manifest.python_version, closure.filesystem
        )
    };
    probes.add(
        Need::Closure,
        closure.as_ref().map(describe).map_err(Clone::clone),
    );
    (data.ok().map(|data| (data, acting)), closure.ok())
}

fn start(
    config: &EngineConfig,
    closure: &Closure,
    data: &DataDir,
    acting: Acting,
) -> Result<Launched, Stop> {
    let runs = data.runs().map_err(Stop::Blocked)?;
    let run_dir = RunDir::create(&runs, acting.run_owner)
        .map_err(|error| Stop::Blocked(Blocked::custody("the run directory", &error)))?;
    let trial = u64::try_from(TRIAL.as_nanos()).unwrap_or(0);
    let order = session::Order {
        config,
        closure,
        run_dir: &run_dir,
        run_owner: acting.run_owner,
        code: HARMLESS_CODE,
        input: HARMLESS_INPUT,
        deadline_boottime_ns: session::boottime_ns()
            .map_err(Stop::Blocked)?
            .saturating_add(trial),
        cancel: &Cancel::default(),
    };
    let launched = session::try_to_barrier(&order, &mut Observed::default());
    let removed = run_dir.remove();
    let launched = launched?;
    removed.map_err(|error| Stop::Blocked(Blocked::custody("the run directory", &error)))?;
    Ok(launched)
}

fn add_shown(launched: &Launched, probes: &mut Probes) {
    let found = |name: &str| {
        let fact = launched
            .facts
            .iter()
            .find(|judged| judged.fact.to_string() == name);
        fact.map_or_else(|| "not looked at".to_owned(), |judged| judged.found.clone())
    };
    probes.add(
        Need::Namespaces,
        Ok("bubblewrap made them all, with no way to make more inside".to_owned()),
    );
    probes.add(
        Need::Filter,
        Ok(format!(
            "installed by the launcher: {} in force",
            found("filter-count")
        )),
    );
    probes.add(
        Need::Tracing,
        Ok("the warden traces the launcher".to_owned()),
    );
    let count = launched.facts.len();
    let detail = format!("{count} facts as expected; ended there, and nothing is left");
    probes.add(Need::Barrier, Ok(detail));
}

/// The need that failed, with advice; those after it were not tried.
fn add_refused(stop: Stop, closure: &Closure, probes: &mut Probes) {
    let bwrap = closure.dir.join(Role::Bwrap.file_name());
    let blocked = match stop {
        Stop::Blocked(blocked) => blocked,
        Stop::Failed { why, .. } | Stop::Unknown { why } => {
            Blocked::new(crate::Cause::Setup, "the trial", why)
        }
    };
    let (failed, blocked) = advice::advise(blocked, &HostSettings::read(), &bwrap);
    for need in SHOWN_BY_START {
        if need == failed {
            probes.add(need, Err(blocked.clone()));
        } else {
            probes.not_tried(need, &format!("{} is Blocked", failed.title()));
        }
    }
}

fn not_tried(probes: &mut Probes, because: &str) {
    for need in SHOWN_BY_START {
        probes.not_tried(need, because);
    }
}
