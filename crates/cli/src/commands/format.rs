//! `lazaret format`: the shortest way from a document to a verified output.
//!
//! Order: the input is judged, then the approval, then what is launched is shown,
//! then the run. Nothing is launched for an input that the rules refuse.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use lazaret_contract::digest::Sha256Digest;
use lazaret_contract::formatter;
use lazaret_contract::json::JsonError;
use lazaret_contract::limits::WALL_DEADLINE_MS_MAX;
use lazaret_contract::package::Package;
use lazaret_custody::durable::write_named;
use lazaret_engine::approval::{self, Subject};
use lazaret_engine::closure::accepted_in_this_build;
use lazaret_engine::record::{BytesRecord, RunRecord};
use lazaret_engine::run::{
    Cancel, EngineConfig, Finished, Gate, OutputClaim, RunPackage, RunRequest, Stop, Unfinished,
    run_once,
};
use lazaret_engine::{Acting, Blocked, DataDir, platform};
use serde::Serialize;

use crate::arguments::{Arguments, Format};
use crate::exit::Exit;
use crate::{bundled, input, places, show, signals, talk};

/// The version of the JSON form.
const FORMAT_SCHEMA: &str = "lazaret-format/1";

/// Anybody may read a record: it holds no path and no text of the document.
const RECORD_MODE: u32 = 0o644;

/// What `--json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    schema: &'a str,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<InputRefused<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<&'a Blocked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a RunRecord>,
}

impl<'a> Answer<'a> {
    fn new(outcome: &'a str) -> Self {
        Self {
            schema: FORMAT_SCHEMA,
            outcome,
            output: None,
            refused: None,
            blocked: None,
            why: None,
            record: None,
        }
    }
}

/// Why an input is refused.
#[derive(Serialize)]
struct InputRefused<'a> {
    reason: &'a str,
    detail: &'a str,
    offset_bytes: usize,
    line: usize,
    column: usize,
}

/// Checks the approval again at every step that gives authority.
struct ApprovalGate<'a> {
    data: &'a DataDir,
    subject: &'a Subject,
}

impl Gate for ApprovalGate<'_> {
    fn arm(&mut self) -> Result<(), Blocked> {
        approval::require(self.data, self.subject).map(drop)
    }

    fn release(&mut self) -> Result<(), Blocked> {
        approval::require(self.data, self.subject).map(drop)
    }
}

/// Everything that has to be there before a run.
struct Ready {
    config: EngineConfig,
    data: DataDir,
    package: Package,
    subject: Subject,
    approval: Sha256Digest,
}

/// Formats one document.
pub fn run(arguments: &Arguments, format: &Format) -> Result<Exit> {
    let input = input::read(&format.file)?;
    if let Err(error) = formatter::format(&input) {
        return refuse_input(format, &error);
    }
    if let Some(path) = &format.record {
        require_parent(path)?;
    }
    let ready = match prepare(arguments, format) {
        Ok(ready) => ready,
        Err(blocked) => return say_blocked(format, &blocked, None),
    };
    say_launch(format, &ready.subject, &input);
    let package = &ready.package;
    let cancel = Arc::new(Cancel::default());
    let guard = signals::Guard::new(&cancel)?;
    let request = RunRequest {
        data: &ready.data,
        package: RunPackage {
            id: package.manifest.id.as_str(),
            version: package.manifest.version,
            capability: &ready.subject.capability,
            code: package.code(),
            content: package.digests.content,
            approval: ready.approval,
        },
        input: &input,
        claim: OutputClaim::FormatterBytes,
        gate: &mut ApprovalGate {
            data: &ready.data,
            subject: &ready.subject,
        },
        cancel: &cancel,
        keep_evidence: format.keep_evidence.clone(),
    };
    let ended = run_once(&ready.config, request);
    drop(guard);
    match ended {
        Ok(finished) => done(format, &finished),
        Err(unfinished) => not_done(format, &unfinished),
    }
}

fn prepare(arguments: &Arguments, format: &Format) -> Result<Ready, Blocked> {
    let profile = &format.profile.profile;
    platform::require_supported(profile)?;
    let accepted = accepted_in_this_build(profile)?;
    let acting = Acting::current(arguments.run_uid)?;
    let data = DataDir::open(&places::data_dir(arguments.data_dir.as_deref())?, acting)?;
    let package = bundled::formatter(&accepted)?;
    let subject = Subject::new(&package, &accepted)?;
    let approval = approval::require(&data, &subject)?;
    let config = EngineConfig {
        accepted,
        closure_places: places::closures(data.path()),
        warden: places::warden(acting)?,
        wall: Duration::from_millis(WALL_DEADLINE_MS_MAX),
    };
    Ok(Ready {
        config,
        data,
        package,
        subject,
        approval,
    })
}

/// Before anything is launched, so that a record is not lost at the end.
fn require_parent(path: &Path) -> Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    anyhow::ensure!(
        parent.is_dir(),
        "the record cannot be written: {} is not a directory",
        lazaret_custody::error::shown(parent)
    );
    Ok(())
}

fn say_launch(format: &Format, subject: &Subject, input: &[u8]) {
    let input = BytesRecord::of(input);
    let profile = &subject.profile;
    if format.quiet {
        talk::line(&format!(
            "{} version {}, {}{} closure {}, input {}; {}",
            subject.package.id,
            subject.package.version,
            profile.id,
            show::candidate_mark(profile.candidate),
            profile.closure,
            input.sha256,
            show::permissions(&subject.permissions),
        ));
        return;
    }
    talk::line("this is launched:");
    talk::text(&show::subject(subject));
    talk::text(&show::input(&input));
    if profile.candidate {
        talk::line("the profile is a candidate: it rehearses the next release");
    }
}

fn refuse_input(format: &Format, error: &JsonError) -> Result<Exit> {
    let file = lazaret_custody::error::shown(&format.file);
    talk::line(&format!("refused: {file}: {error}"));
    if format.json {
        let refused = InputRefused {
            reason: error.kind.name(),
            detail: &error.detail,
            offset_bytes: error.offset_bytes,
            line: error.line,
            column: error.column,
        };
        talk::give_json(&Answer {
            refused: Some(refused),
            ..Answer::new("refused")
        })?;
    }
    Ok(Exit::Refused)
}

fn say_blocked(format: &Format, blocked: &Blocked, record: Option<&RunRecord>) -> Result<Exit> {
    talk::blocked(blocked);
    if format.json {
        let answer = Answer {
            blocked: Some(blocked),
            record,
            ..Answer::new("blocked")
        };
        talk::give_json(&answer)?;
    }
    Ok(Exit::Blocked)
}

fn done(format: &Format, finished: &Finished) -> Result<Exit> {
    warn(&finished.warnings);
    write_record(format, &finished.record)?;
    if !format.quiet {
        talk::line(&summary(finished));
        if let Some(place) = &finished.evidence {
            talk::line(&format!(
                "evidence kept in {}",
                lazaret_custody::error::shown(place)
            ));
        }
    }
    if format.json {
        let output = std::str::from_utf8(&finished.output).context("the output is not UTF-8")?;
        let record = Some(&finished.record);
        talk::give_json(&Answer {
            output: Some(output),
            record,
            ..Answer::new("done")
        })?;
    } else {
        talk::give(&finished.output)?;
    }
    Ok(Exit::Done)
}

fn summary(finished: &Finished) -> String {
    let record = &finished.record;
    let facts = record
        .barrier
        .as_ref()
        .map_or(0, |barrier| barrier.facts.len());
    let usage = record.usage.unwrap_or_default();
    let milliseconds = |ns: u64| ns / 1_000_000;
    format!(
        "done{}: {} bytes, sha256 {}, equal to the independent result; {facts} facts as expected \
         at the barrier; {} ms, {} ms of CPU; nothing left",
        show::candidate_mark(record.profile.candidate),
        finished.output.len(),
        Sha256Digest::of(&finished.output),
        milliseconds(usage.wall_ns),
        milliseconds(usage.cpu_user_ns.saturating_add(usage.cpu_system_ns)),
    )
}

fn not_done(format: &Format, unfinished: &Unfinished) -> Result<Exit> {
    warn(&unfinished.warnings);
    let record = &unfinished.record;
    let written = write_record(format, record);
    let (outcome, why, exit) = match &unfinished.stop {
        Stop::Blocked(blocked) => {
            let exit = say_blocked(format, blocked, Some(record))?;
            return written.map(|()| exit);
        }
        Stop::Failed { why, stderr, .. } => {
            talk::line(&format!("failed: {why}"));
            talk::package_said(stderr);
            ("failed", why, Exit::Refused)
        }
        Stop::Unknown { why } => {
            talk::line(&format!(
                "unknown: package code may have run, and its end is not proved: {why}"
            ));
            ("unknown", why, Exit::Unknown)
        }
    };
    if let Some(place) = &unfinished.evidence {
        talk::line(&format!(
            "evidence kept in {}",
            lazaret_custody::error::shown(place)
        ));
    }
    if format.json {
        let why = Some(why.as_str());
        talk::give_json(&Answer {
            why,
            record: Some(record),
            ..Answer::new(outcome)
        })?;
    }
    // An unwritten record does not turn Unknown into something milder.
    match written {
        Err(error) if exit == Exit::Refused => Err(error),
        Err(error) => {
            talk::line(&format!("{error:#}"));
            Ok(exit)
        }
        Ok(()) => Ok(exit),
    }
}

fn write_record(format: &Format, record: &RunRecord) -> Result<()> {
    let Some(path) = &format.record else {
        return Ok(());
    };
    let bytes = record.to_bytes().context("writing the record")?;
    write_named(path, &bytes, RECORD_MODE).context("writing the record")
}

fn warn(warnings: &[String]) {
    for warning in warnings {
        talk::line(&format!("note: {warning}"));
    }
}
