//! The dated record of a host: what it could do, or how a build failed there. Type
//! `https://lazaret.invalid/receipt/host/v1`.
//!
//! The date is the fact. It says nothing about another host or day, no core test
//! reads it, and it names no host: the platform is all that is said.

use lazaret_contract::digest::Sha256Digest;

use super::Predicate;
use super::shared::{
    Descriptor, Establishes, NotEstablished, Platform, Reach, check_names, check_only_subjects,
    check_subject,
};
use crate::part::{At, FormError, record};
use crate::statement::{Statement, StatementError, Subject};
use crate::text::{Id, Time, Word};

/// The subject that is the whole report, kept elsewhere.
pub const REPORT_SUBJECT: &str = "host/report.json";

record! {
    /// One thing that a run needs.
    pub struct Availability {
        /// Whether the host has it.
        "available" => available: bool,
        /// What, in doctor's word for it.
        "fact" => fact: Word,
    }
}

record! {
    /// A build that did not succeed.
    pub struct FailedBuild {
        /// Exit code of the command that failed, if one did.
        "exit_code" => exit_code: Option<u64>,
        /// Where it failed, in the build's word for the stage.
        "stage" => stage: Word,
    }
}

record! {
    /// What was observed of a host.
    pub struct Host {
        /// What it has, by word in order.
        "availability" => availability: Vec<Availability>,
        /// What this record does not establish.
        "does_not_establish" => does_not_establish: Vec<NotEstablished>,
        /// What it does.
        "establishes" => establishes: Vec<Establishes>,
        /// Logs, by name in order.
        "evidence" => evidence: Vec<Descriptor>,
        /// The build that failed, if the record is of one.
        "failed_build" => failed_build: Option<FailedBuild>,
        /// When it was observed.
        "observed_at" => observed_at: Time,
        /// The platform.
        "platform" => platform: Platform,
        /// The profile that it was about.
        "profile_id" => profile_id: Id,
        /// Digest of the whole report.
        "report_sha256" => report_sha256: Sha256Digest,
    }
}

/// What was observed, to make a record of.
#[derive(Debug, Clone)]
pub struct Observation {
    /// What the host has.
    pub availability: Vec<Availability>,
    /// Logs.
    pub evidence: Vec<Descriptor>,
    /// The build that failed.
    pub failed_build: Option<FailedBuild>,
    /// When.
    pub observed_at: Time,
    /// The platform.
    pub platform: Platform,
    /// The profile that it was about.
    pub profile_id: Id,
    /// Digest of the whole report.
    pub report_sha256: Sha256Digest,
}

impl Observation {
    /// The record.
    ///
    /// # Errors
    /// When it breaks a rule.
    pub fn statement(mut self) -> Result<Statement, StatementError> {
        self.availability.sort_by(|a, b| a.fact.cmp(&b.fact));
        self.evidence.sort_by(|a, b| a.name.cmp(&b.name));
        let reach = reach();
        let subject = REPORT_SUBJECT
            .parse()
            .map(|name| Subject::new(name, self.report_sha256));
        let host = Host {
            availability: self.availability,
            does_not_establish: reach.does_not_establish,
            establishes: reach.establishes,
            evidence: self.evidence,
            failed_build: self.failed_build,
            observed_at: self.observed_at,
            platform: self.platform,
            profile_id: self.profile_id,
            report_sha256: self.report_sha256,
        };
        Statement::new(subject.into_iter().collect(), Predicate::Host(host))
    }
}

fn reach() -> Reach {
    Reach::new(
        vec![Establishes::HostObserved],
        vec![
            NotEstablished::IsolatedExecution,
            NotEstablished::OtherHosts,
        ],
    )
}

impl Host {
    pub(crate) fn check(&self, subjects: &[Subject]) -> Result<(), FormError> {
        let root = At::Root;
        let at = root.member("predicate");
        check_subject(subjects, REPORT_SUBJECT, self.report_sha256, &at)?;
        check_only_subjects(subjects, &[REPORT_SUBJECT])?;
        if !self.availability.is_sorted_by(|a, b| a.fact < b.fact) {
            return Err(at
                .member("availability")
                .error("wants every fact once and in order"));
        }
        check_names(
            self.evidence.iter().map(|one| &one.name),
            &at.member("evidence"),
        )?;
        reach().check(&self.establishes, &self.does_not_establish, &at)
    }
}
