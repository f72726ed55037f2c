//! What came of a request: changes to store, and the facts for a receipt, refusals included.

use lazaret_contract::digest::Sha256Digest;

use crate::approval::{Approval, ApprovalState};
use crate::command::Actor;
use crate::ids::{ApprovalId, GoalId, OwnerId, PackageId, Reason, ReviewId, TombstoneId};
use crate::numbers::{Epoch, Generation, Revision};
use crate::package::{Pointer, Standing, Version, VersionIdentity};
use crate::refusal::Refusal;
use crate::review::Review;
use crate::time::Now;
use crate::tombstone::Tombstone;

/// A row to write. Rows that are not named stay as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A new version, or one that is installed anew.
    InstallVersion(Version),
    /// A version's state, newest review, or whether it was ever in force.
    UpdateVersion(Version),
    /// A new, immutable review.
    InsertReview(Review),
    /// A new approval.
    InsertApproval(Approval),
    /// An approval's new state.
    SetApproval {
        /// Which.
        id: ApprovalId,
        /// The state.
        state: ApprovalState,
    },
    /// The pointer, at its next generation.
    SetPointer(Pointer),
    /// A new, permanent tombstone.
    InsertTombstone(Tombstone),
}

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Bytes were copied into the store.
    Install,
    /// A version was reviewed.
    Review,
    /// An approval was asked for.
    Request,
    /// An approval was granted.
    Approve,
    /// An approval was denied.
    Deny,
    /// A first version.
    Activate,
    /// Another version.
    Update,
    /// Nothing new starts.
    Pause,
    /// A paused version goes on.
    Resume,
    /// A version must never run again.
    Revoke,
    /// A version's bytes do not match.
    Quarantine,
    /// A prior version comes back.
    Rollback,
    /// The package's authority and reads end.
    Uninstall,
    /// Another owner's tombstone took the version out of force here.
    Withdraw,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 14] = [
        Self::Install,
        Self::Review,
        Self::Request,
        Self::Approve,
        Self::Deny,
        Self::Activate,
        Self::Update,
        Self::Pause,
        Self::Resume,
        Self::Revoke,
        Self::Quarantine,
        Self::Rollback,
        Self::Uninstall,
        Self::Withdraw,
    ];

    /// The event's type in receipts and in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Review => "review",
            Self::Request => "request",
            Self::Approve => "approve",
            Self::Deny => "deny",
            Self::Activate => "activate",
            Self::Update => "update",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Revoke => "revoke",
            Self::Quarantine => "quarantine",
            Self::Rollback => "rollback",
            Self::Uninstall => "uninstall",
            Self::Withdraw => "withdraw",
        }
    }
}

/// Whether it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It did.
    Accepted,
    /// It did not, and nothing changed.
    Refused(Refusal),
}

/// The facts of one request: everything that a receipt of it binds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What was asked for.
    pub action: Action,
    /// Whether it happened.
    pub outcome: Outcome,
    /// When.
    pub at: Now,
    /// Whose package.
    pub owner: OwnerId,
    /// Which package.
    pub package: PackageId,
    /// Who asked; nobody for a quarantine or a withdrawal by tombstone.
    pub actor: Option<Actor>,
    /// The Root's epoch.
    pub root_epoch: Epoch,
    /// The version, as it is known, or as it was shown if it is not.
    pub version: Option<VersionIdentity>,
    /// The content digest that the request names; also of a version that is not known.
    pub content: Option<Sha256Digest>,
    /// What was in force before.
    pub from: Option<Sha256Digest>,
    /// The Goal that the request names; for withdrawals the Goal of what was in force.
    pub goal: Option<(GoalId, Revision)>,
    /// The review.
    pub review: Option<ReviewId>,
    /// The approval.
    pub approval: Option<ApprovalId>,
    /// The tombstone that was made, or that caused this.
    pub tombstone: Option<TombstoneId>,
    /// The actor's words.
    pub reason: Option<Reason>,
    /// The generation that the request names.
    pub generation_named: Option<Generation>,
    /// The pointer's generation before.
    pub generation_before: Generation,
    /// The pointer's generation after; the same if the pointer did not move.
    pub generation_after: Generation,
    /// What the pointer says after.
    pub standing_after: Standing,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The facts, for the log and a receipt; to be stored in any case.
    pub event: Event,
    /// The rows to write, or why there are none.
    pub result: Result<Vec<Change>, Refusal>,
}
