//! `lazaret doctor`: what a run needs of this host.

use std::fmt::Write as _;

use anyhow::Result;
use lazaret_engine::Acting;
use lazaret_engine::closure::accepted_in_this_build;
use lazaret_engine::preflight::{self, Probe, Report, Request, Verdict};

use crate::arguments::{Arguments, Doctor};
use crate::exit::Exit;
use crate::{places, show, talk};

/// Probes, and prints one line per fact.
pub fn run(arguments: &Arguments, doctor: &Doctor) -> Result<Exit> {
    let acting = Acting::current(arguments.run_uid);
    let data_dir = places::data_dir(arguments.data_dir.as_deref());
    let report = preflight::probe(&Request {
        profile: doctor.profile.profile.clone(),
        accepted: accepted_in_this_build(&doctor.profile.profile),
        closure_places: data_dir
            .as_ref()
            .map(|dir| places::closures(dir))
            .unwrap_or_default(),
        warden: acting.clone().and_then(places::warden),
        data_dir,
        acting,
    });
    if doctor.json {
        talk::give_json(&report)?;
    } else {
        talk::give(text(&report).as_bytes())?;
    }
    Ok(if report.ready {
        Exit::Done
    } else {
        Exit::Blocked
    })
}

fn text(report: &Report) -> String {
    let mut shown = format!(
        "profile {}{}: {}\n",
        report.profile,
        show::candidate_mark(report.candidate),
        report
            .standing
            .as_deref()
            .unwrap_or("nothing of it is accepted in this build")
    );
    for probe in &report.probes {
        push_probe(&mut shown, probe);
    }
    let verdict = if report.ready { "ready" } else { "Blocked" };
    // Writing to a String cannot fail.
    let _ = writeln!(shown, "{verdict}. {}", report.says);
    shown
}

fn push_probe(shown: &mut String, probe: &Probe) {
    let title = probe.need.title();
    let _ = match &probe.verdict {
        Verdict::Ok { detail } => writeln!(shown, "ok       {title:<24} {detail}"),
        Verdict::Blocked(blocked) => writeln!(shown, "Blocked  {title:<24} {}", blocked.why),
        Verdict::NotTried { because } => {
            writeln!(shown, "-        {title:<24} not tried: {because}")
        }
    };
    if let Verdict::Blocked(blocked) = &probe.verdict {
        for step in &blocked.advice {
            talk::push_step(shown, step);
        }
    }
}
