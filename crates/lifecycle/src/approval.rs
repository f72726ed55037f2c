//! Approvals: single-use, expiring permissions for one action on exact digests.

use lazaret_contract::digest::Sha256Digest;

use crate::ids::{ApprovalId, GoalId, OwnerId, Reason, ReviewId, SessionId};
use crate::numbers::{Generation, Revision};
use crate::package::VersionIdentity;
use crate::time::{Deadline, Now};

/// A transition that gives authority, and so needs an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivingAction {
    /// A first version comes into force.
    Activate,
    /// Another version, or the same bytes under another review, takes its place.
    Update,
    /// A paused version goes on.
    Resume,
    /// A prior version takes the place of a quarantined one.
    Rollback,
}

impl GivingAction {
    /// Every such action.
    pub const ALL: [Self; 4] = [Self::Activate, Self::Update, Self::Resume, Self::Rollback];

    /// The name under which it is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Activate => "activate",
            Self::Update => "update",
            Self::Resume => "resume",
            Self::Rollback => "rollback",
        }
    }
}

/// Who said yes, and until when it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Who.
    pub by: OwnerId,
    /// In which session.
    pub session: SessionId,
    /// When.
    pub at: Now,
    /// From here on it is void.
    pub deadline: Deadline,
    /// That the permissions become wider was said and acknowledged.
    pub wider_acknowledged: bool,
}

/// The state of an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalState {
    /// Asked for, not answered.
    Requested,
    /// Answered with yes, not used.
    Granted(Grant),
    /// Answered with no.
    Denied {
        /// Who.
        by: OwnerId,
        /// Why.
        reason: Reason,
    },
    /// Used; never to be used again.
    Used(Grant),
}

impl ApprovalState {
    /// The name under which it is stored.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Granted(_) => "granted",
            Self::Denied { .. } => "denied",
            Self::Used(_) => "used",
        }
    }
}

/// A permission that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// For what, and nothing else.
    pub action: GivingAction,
    /// On which version; the digests that were shown.
    pub identity: VersionIdentity,
    /// What is in force when it is asked for, and is to be replaced.
    pub from: Option<Sha256Digest>,
    /// The review that stands behind it.
    pub review: ReviewId,
    /// The pointer's generation for which it holds.
    pub generation: Generation,
    /// The Goal.
    pub goal: GoalId,
    /// The Goal's revision.
    pub goal_revision: Revision,
    /// Who asks.
    pub requester: OwnerId,
    /// In which session.
    pub session: SessionId,
    /// An answer after this moment is none.
    pub answer_deadline: Deadline,
    /// How far it is.
    pub state: ApprovalState,
}
