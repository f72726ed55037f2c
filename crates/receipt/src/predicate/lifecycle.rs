//! The receipt of a lifecycle transition, done or refused. Type
//! `https://lazaret.invalid/receipt/lifecycle/v1`.
//!
//! It names the exact digests, the Goal revision, the session and the pointer's
//! generation (DESIGN section 5). The one text of a person is `statement`, the
//! reason that the operator gave. It never says that a package is safe.

use lazaret_contract::digest::Sha256Digest;

use super::Predicate;
use super::shared::{
    Authority, Establishes, NoLearning, NotEstablished, PACKAGE_SUBJECT, Reach,
    check_only_subjects, check_subject,
};
use crate::part::{At, FormError, record, words};
use crate::statement::{Statement, StatementError, Subject};
use crate::text::{Id, UserText, Word};

words! {
    /// A transition, or what leads to one.
    pub enum Action {
        /// The exact bytes went into the store.
        Install = "install",
        /// A review was recorded.
        Review = "review",
        /// An approval was asked for.
        Request = "request",
        /// An approval was given.
        Approve = "approve",
        /// An approval was denied.
        Deny = "deny",
        /// The version was put in force.
        Activate = "activate",
        /// Another version was put in force in its place.
        Update = "update",
        /// Suspended.
        Pause = "pause",
        /// In force again.
        Resume = "resume",
        /// Never to run again, by the operator's will.
        Revoke = "revoke",
        /// Out of force because a digest no longer matches.
        Quarantine = "quarantine",
        /// Back to a prior version, out of quarantine.
        Rollback = "rollback",
        /// Authority and reads taken away.
        Uninstall = "uninstall",
    }
}

words! {
    /// A state of a version.
    pub enum State {
        /// Read and judged by its form.
        Inspected = "inspected",
        /// In the store.
        Installed = "installed",
        /// Reviewed.
        Reviewed = "reviewed",
        /// Approved.
        Approved = "approved",
        /// In force.
        Active = "active",
        /// Followed by another version.
        Superseded = "superseded",
        /// Suspended.
        Paused = "paused",
        /// Never to run again.
        Revoked = "revoked",
        /// A digest no longer matches.
        Quarantined = "quarantined",
        /// Uninstalled.
        Uninstalled = "uninstalled",
    }
}

record! {
    /// The version that a transition is about.
    pub struct VersionFacts {
        /// Digest of the declared permissions.
        "authority_sha256" => authority_sha256: Sha256Digest,
        /// Digest over the exact bytes of the package.
        "content_sha256" => content_sha256: Sha256Digest,
        /// Digest over profile, closure and policy.
        "dependency_sha256" => dependency_sha256: Sha256Digest,
        /// The package's id.
        "id" => id: Id,
        /// The package's version.
        "version" => version: Id,
    }
}

record! {
    /// A transition, done or refused.
    pub struct Lifecycle {
        /// What was asked.
        "action" => action: Action,
        /// Under which authority.
        "authority" => authority: Authority,
        /// Digest of the difference that was shown, for an update or a rollback.
        "difference_sha256" => difference_sha256: Option<Sha256Digest>,
        /// What this receipt does not establish.
        "does_not_establish" => does_not_establish: Vec<NotEstablished>,
        /// What it does.
        "establishes" => establishes: Vec<Establishes>,
        /// The state before; absent for a version that was not known.
        "from" => from: Option<State>,
        /// Always true.
        "no_learning" => no_learning: NoLearning,
        /// Generation of the active pointer afterwards.
        "pointer_generation_after" => pointer_generation_after: Option<u64>,
        /// The version that was in force before, for an update or a rollback.
        "previous" => previous: Option<VersionFacts>,
        /// Why it was refused, as a reason code; absent when it was done.
        "refused" => refused: Option<Word>,
        /// The reason that the operator gave.
        "statement" => statement: Option<UserText>,
        /// The state afterwards; absent when it was refused.
        "to" => to: Option<State>,
        /// Whether the operator acknowledged that nobody signed the package.
        "unsigned_provenance_acknowledged" => unsigned_provenance_acknowledged: Option<bool>,
        /// The version.
        "version" => version: VersionFacts,
    }
}

/// A transition as the board recorded it, to make a receipt of.
#[derive(Debug, Clone)]
pub struct Transition {
    /// What was asked.
    pub action: Action,
    /// Under which authority.
    pub authority: Authority,
    /// Digest of the difference that was shown.
    pub difference_sha256: Option<Sha256Digest>,
    /// The state before.
    pub from: Option<State>,
    /// The state afterwards, or why it was refused.
    pub outcome: Result<State, Word>,
    /// Generation of the active pointer afterwards.
    pub pointer_generation_after: Option<u64>,
    /// The version that was in force before.
    pub previous: Option<VersionFacts>,
    /// The reason that the operator gave.
    pub statement: Option<UserText>,
    /// Whether the operator acknowledged that nobody signed the package.
    pub unsigned_provenance_acknowledged: Option<bool>,
    /// The version.
    pub version: VersionFacts,
}

impl Transition {
    /// The receipt.
    ///
    /// # Errors
    /// When it breaks a rule.
    pub fn statement(self) -> Result<Statement, StatementError> {
        let reach = reach(self.outcome.is_ok());
        let subject = PACKAGE_SUBJECT
            .parse()
            .map(|name| Subject::new(name, self.version.content_sha256));
        let (to, refused) = match self.outcome {
            Ok(state) => (Some(state), None),
            Err(reason) => (None, Some(reason)),
        };
        let lifecycle = Lifecycle {
            action: self.action,
            authority: self.authority,
            difference_sha256: self.difference_sha256,
            does_not_establish: reach.does_not_establish,
            establishes: reach.establishes,
            from: self.from,
            no_learning: NoLearning,
            pointer_generation_after: self.pointer_generation_after,
            previous: self.previous,
            refused,
            statement: self.statement,
            to,
            unsigned_provenance_acknowledged: self.unsigned_provenance_acknowledged,
            version: self.version,
        };
        Statement::new(
            subject.into_iter().collect(),
            Predicate::Lifecycle(lifecycle),
        )
    }
}

fn reach(is_done: bool) -> Reach {
    let establishes = if is_done {
        Establishes::TransitionMade
    } else {
        Establishes::TransitionRefused
    };
    let open = vec![
        NotEstablished::PublisherIdentity,
        NotEstablished::OperatorHonesty,
        NotEstablished::PackageSafety,
    ];
    Reach::new(vec![establishes], open)
}

impl Lifecycle {
    pub(crate) fn check(&self, subjects: &[Subject]) -> Result<(), FormError> {
        let root = At::Root;
        let at = root.member("predicate");
        check_subject(subjects, PACKAGE_SUBJECT, self.version.content_sha256, &at)?;
        check_only_subjects(subjects, &[PACKAGE_SUBJECT])?;
        if self.to.is_some() == self.refused.is_some() {
            return Err(at
                .member("to")
                .error("is there exactly when nothing was refused"));
        }
        reach(self.to.is_some()).check(&self.establishes, &self.does_not_establish, &at)
    }
}
