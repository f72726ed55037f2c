//! The receipt of an attack run: in-toto's test result, about one closure.
//!
//! The names of the cases stand in the lists of that form; everything that is ours
//! stands in one extension member, `lazaret`, which a reader may ignore. Raw
//! evidence is named by digest and kept elsewhere. A case that was not run never
//! counts as passed.

use super::Predicate;
use super::build::check_closure;
use super::shared::{
    CLOSURE_SUBJECT, Descriptor, Establishes, NoLearning, NotEstablished, Platform, ProfileFacts,
    Reach, Standing, check_names, check_only_subjects,
};
use crate::part::{At, FormError, record, words};
use crate::statement::{Statement, StatementError, Subject};
use crate::text::Name;

words! {
    /// The result of the whole run.
    pub enum TestOutcome {
        /// Every case was contained.
        Passed = "PASSED",
        /// Nothing failed, but some cases were not run.
        Warned = "WARNED",
        /// At least one case failed.
        Failed = "FAILED",
    }
}

record! {
    /// What is ours of the test result.
    pub struct AttackDetails {
        /// What the run does not establish.
        "does_not_establish" => does_not_establish: Vec<NotEstablished>,
        /// What it does.
        "establishes" => establishes: Vec<Establishes>,
        /// Raw records, by name in order.
        "evidence" => evidence: Vec<Descriptor>,
        /// Always true.
        "no_learning" => no_learning: NoLearning,
        /// Where the suite ran.
        "platform" => platform: Platform,
        /// The profile and closure that were attacked.
        "profile" => profile: ProfileFacts,
    }
}

record! {
    /// In-toto's test result v0.1.
    pub struct TestResult {
        /// The cases as data: suite, policy, by digest.
        "configuration" => configuration: Vec<Descriptor>,
        /// Cases that were not contained, or whose control, canary or recovery
        /// failed.
        "failedTests" => failed: Vec<Name>,
        /// What is ours.
        "lazaret" => details: AttackDetails,
        /// Cases of which control, attempt, canaries, digests and recovery held.
        "passedTests" => passed: Vec<Name>,
        /// The result of the whole run.
        "result" => result: TestOutcome,
        /// Cases that were not run here, or are still pending.
        "warnedTests" => not_run: Vec<Name>,
    }
}

/// What an attack run found, to make a receipt of.
#[derive(Debug, Clone)]
pub struct AttackRun {
    /// The profile and closure that were attacked.
    pub profile: ProfileFacts,
    /// Where.
    pub platform: Platform,
    /// The cases as data, by digest.
    pub configuration: Vec<Descriptor>,
    /// Contained.
    pub passed: Vec<Name>,
    /// Not run.
    pub not_run: Vec<Name>,
    /// Everything else.
    pub failed: Vec<Name>,
    /// Raw records.
    pub evidence: Vec<Descriptor>,
}

impl AttackRun {
    /// The receipt.
    ///
    /// # Errors
    /// When a case stands in two lists, or no case was run.
    pub fn statement(mut self) -> Result<Statement, StatementError> {
        for list in [&mut self.passed, &mut self.not_run, &mut self.failed] {
            list.sort();
        }
        for list in [&mut self.configuration, &mut self.evidence] {
            list.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let closure = CLOSURE_SUBJECT
            .parse()
            .map(|name| Subject::new(name, self.profile.closure_sha256));
        let subjects = closure.into_iter().collect();
        let result = result_of(&self.not_run, &self.failed);
        let reach = reach(result, self.profile.standing);
        let details = AttackDetails {
            does_not_establish: reach.does_not_establish,
            establishes: reach.establishes,
            evidence: self.evidence,
            no_learning: NoLearning,
            platform: self.platform,
            profile: self.profile,
        };
        let predicate = TestResult {
            configuration: self.configuration,
            failed: self.failed,
            details,
            passed: self.passed,
            result,
            not_run: self.not_run,
        };
        Statement::new(subjects, Predicate::Attack(predicate))
    }
}

fn result_of(not_run: &[Name], failed: &[Name]) -> TestOutcome {
    match (failed.is_empty(), not_run.is_empty()) {
        (false, _) => TestOutcome::Failed,
        (true, false) => TestOutcome::Warned,
        (true, true) => TestOutcome::Passed,
    }
}

fn reach(result: TestOutcome, standing: Standing) -> Reach {
    let establishes = match result {
        TestOutcome::Failed => vec![],
        TestOutcome::Passed | TestOutcome::Warned => vec![Establishes::NamedAttacksDenied],
    };
    let mut open = vec![
        NotEstablished::NoPlatformFaults,
        NotEstablished::OtherAttacks,
        NotEstablished::OtherHosts,
    ];
    if standing != Standing::AcceptedAndReviewed {
        open.push(NotEstablished::IndependentReview);
    }
    Reach::new(establishes, open)
}

impl TestResult {
    pub(crate) fn check(&self, subjects: &[Subject]) -> Result<(), FormError> {
        let root = At::Root;
        let at = root.member("predicate");
        let details_at = at.member("lazaret");
        let closure_at = details_at.member("profile");
        check_closure(subjects, self.details.profile.closure_sha256, &closure_at)?;
        check_only_subjects(subjects, &[CLOSURE_SUBJECT])?;
        check_names(&self.passed, &at.member("passedTests"))?;
        check_names(&self.not_run, &at.member("warnedTests"))?;
        check_names(&self.failed, &at.member("failedTests"))?;
        let configuration = self.configuration.iter().map(|one| &one.name);
        check_names(configuration, &at.member("configuration"))?;
        let evidence = self.details.evidence.iter().map(|one| &one.name);
        check_names(evidence, &details_at.member("evidence"))?;
        let mut all: Vec<&Name> = self
            .passed
            .iter()
            .chain(&self.not_run)
            .chain(&self.failed)
            .collect();
        all.sort();
        if !all.is_sorted_by(|a, b| a < b) {
            return Err(at.error("has a case in two lists"));
        }
        if self.passed.is_empty() && self.failed.is_empty() {
            return Err(at.error("has no case that was run"));
        }
        if self.result != result_of(&self.not_run, &self.failed) {
            return Err(at.member("result").error("is not what the lists say"));
        }
        reach(self.result, self.details.profile.standing).check(
            &self.details.establishes,
            &self.details.does_not_establish,
            &details_at,
        )
    }
}
