//! What a person sees while a closure is built: which stage, since when, where its log is.
//!
//! Everything goes to standard error, one line per event; standard output belongs
//! to `--json`. Times are shown and recorded, and never reach the closure.

use std::io::Write;
use std::time::{Duration, Instant};

use serde::Serialize;

/// How one stage came out, for the build record.
#[derive(Debug, Clone, Serialize)]
pub struct StageReport {
    /// The stage's name.
    pub stage: String,
    /// The digest of its inputs.
    pub key: String,
    /// Whether an earlier result was taken.
    pub reused: bool,
    /// How long it took now, in milliseconds.
    pub elapsed_ms: u64,
    /// Where its log is, relative to the repository; empty when nothing was run.
    pub log: String,
}

/// The reporter of one invocation.
#[derive(Debug)]
pub struct Progress {
    started: Instant,
    reports: Vec<StageReport>,
}

impl Progress {
    /// Starts the clock.
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
            reports: Vec::new(),
        }
    }

    /// Says one line.
    pub fn say(&self, text: impl AsRef<str>) {
        let seconds = self.started.elapsed().as_secs_f64();
        // A closed standard error is no reason to stop building.
        let _ = writeln!(std::io::stderr(), "[{seconds:7.1} s] {}", text.as_ref());
    }

    /// Notes that a stage has ended.
    pub fn finish(&mut self, stage: &str, key: String, reused: bool, took: Duration, log: String) {
        if reused {
            self.say(format!("{stage}: unchanged"));
        } else {
            self.say(format!("{stage}: done in {:.1} s", took.as_secs_f64()));
        }
        let elapsed_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.reports.push(StageReport {
            stage: stage.to_owned(),
            key,
            reused,
            elapsed_ms,
            log,
        });
    }

    /// What has been reported so far.
    pub fn reports(&self) -> &[StageReport] {
        &self.reports
    }

    /// Since when this invocation runs.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}
