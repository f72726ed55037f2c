//! The receipt of a Blocked run: refused before any package code ran, nothing
//! substituted. Type `https://lazaret.invalid/receipt/blocked/v1`.
//!
//! A host without the profile gives this receipt. It never establishes isolated
//! execution, and its reason is a code: what the kernel or a tool said in words may
//! hold paths and stays with the private evidence.

use lazaret_contract::digest::Sha256Digest;

use super::Predicate;
use super::run::OutputClaim;
use super::shared::{
    Authority, CLOSURE_SUBJECT, CODE_SUBJECT, Descriptor, Establishes, INPUT_SUBJECT, NoLearning,
    NotEstablished, PACKAGE_SUBJECT, PackageFacts, Platform, ProfileFacts, Reach, check_names,
    check_only_subjects, check_subject,
};
use crate::part::{At, FormError, record, words};
use crate::statement::{Statement, StatementError, Subject};
use crate::text::{Id, Word};

words! {
    /// How far the attempt had come (DESIGN section 3).
    pub enum Stage {
        /// Before anything was staged: no closure, an unsupported platform, a fact
        /// of the host.
        Preflight = "preflight",
        /// Steps 3 and 4.
        Staging = "staging",
        /// Step 5.
        Arming = "arming",
        /// Steps 6 and 7.
        Starting = "starting",
        /// Step 8.
        Barrier = "barrier",
        /// Step 9.
        Release = "release",
    }
}

record! {
    /// What was Blocked.
    pub struct Blocked {
        /// Under which authority.
        "authority" => authority: Authority,
        /// What this receipt does not establish.
        "does_not_establish" => does_not_establish: Vec<NotEstablished>,
        /// What it does.
        "establishes" => establishes: Vec<Establishes>,
        /// Private originals, by name in order.
        "evidence" => evidence: Vec<Descriptor>,
        /// Digest of the input.
        "input_sha256" => input_sha256: Sha256Digest,
        /// Always true.
        "no_learning" => no_learning: NoLearning,
        /// Always none.
        "output_claim" => output_claim: OutputClaim,
        /// The package, where it was known.
        "package" => package: Option<PackageFacts>,
        /// Where.
        "platform" => platform: Platform,
        /// The profile with its closure, where there was one.
        "profile" => profile: Option<ProfileFacts>,
        /// The profile that was asked for.
        "profile_id" => profile_id: Id,
        /// Why, as a reason code.
        "reason" => reason: Word,
        /// How far it had come.
        "stage" => stage: Stage,
    }
}

/// An attempt that was Blocked, to make a receipt of.
#[derive(Debug, Clone)]
pub struct BlockedAttempt {
    /// Under which authority.
    pub authority: Authority,
    /// Private originals.
    pub evidence: Vec<Descriptor>,
    /// Digest of the input.
    pub input_sha256: Sha256Digest,
    /// The package, where it was known.
    pub package: Option<PackageFacts>,
    /// Where.
    pub platform: Platform,
    /// The profile with its closure, where there was one.
    pub profile: Option<ProfileFacts>,
    /// The profile that was asked for.
    pub profile_id: Id,
    /// Why.
    pub reason: Word,
    /// How far it had come.
    pub stage: Stage,
}

impl BlockedAttempt {
    /// The receipt.
    ///
    /// # Errors
    /// When it breaks a rule.
    pub fn statement(mut self) -> Result<Statement, StatementError> {
        self.evidence.sort_by(|a, b| a.name.cmp(&b.name));
        let reach = reach();
        let blocked = Blocked {
            authority: self.authority,
            does_not_establish: reach.does_not_establish,
            establishes: reach.establishes,
            evidence: self.evidence,
            input_sha256: self.input_sha256,
            no_learning: NoLearning,
            output_claim: OutputClaim::None,
            package: self.package,
            platform: self.platform,
            profile: self.profile,
            profile_id: self.profile_id,
            reason: self.reason,
            stage: self.stage,
        };
        let subjects = blocked
            .subjects()
            .into_iter()
            .filter_map(|(name, sha256)| name.parse().ok().map(|name| Subject::new(name, sha256)));
        Statement::new(subjects.collect(), Predicate::Blocked(blocked))
    }
}

fn reach() -> Reach {
    Reach::new(
        vec![Establishes::NothingRan],
        vec![
            NotEstablished::IsolatedExecution,
            NotEstablished::OperatorHonesty,
        ],
    )
}

impl Blocked {
    fn subjects(&self) -> Vec<(&'static str, Sha256Digest)> {
        let mut subjects = vec![(INPUT_SUBJECT, self.input_sha256)];
        if let Some(profile) = &self.profile {
            subjects.push((CLOSURE_SUBJECT, profile.closure_sha256));
        }
        if let Some(package) = &self.package {
            subjects.push((CODE_SUBJECT, package.code_sha256));
            subjects.push((PACKAGE_SUBJECT, package.content_sha256));
        }
        subjects
    }

    pub(crate) fn check(&self, subjects: &[Subject]) -> Result<(), FormError> {
        let root = At::Root;
        let at = root.member("predicate");
        let expected = self.subjects();
        for (name, sha256) in &expected {
            check_subject(subjects, name, *sha256, &at)?;
        }
        let names: Vec<&str> = expected.iter().map(|(name, _)| *name).collect();
        check_only_subjects(subjects, &names)?;
        if self.output_claim != OutputClaim::None {
            return Err(at
                .member("output_claim")
                .error("what is Blocked has no output"));
        }
        if self
            .profile
            .as_ref()
            .is_some_and(|profile| profile.id != self.profile_id)
        {
            return Err(at
                .member("profile_id")
                .error("is another than the profile's"));
        }
        check_names(
            self.evidence.iter().map(|one| &one.name),
            &at.member("evidence"),
        )?;
        reach().check(&self.establishes, &self.does_not_establish, &at)
    }
}
