//! Reviews: what somebody looked at before they said yes. A review is an immutable row.

use lazaret_contract::digest::Sha256Digest;

use crate::ids::{GoalId, OwnerId, ReviewId, SessionId};
use crate::numbers::{Generation, Revision};
use crate::package::VersionIdentity;
use crate::time::Now;

/// The exact difference between two versions, as it was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Content digest of the version that the difference starts from.
    pub from: Sha256Digest,
    /// Digest of the difference as it was shown.
    pub shown: Sha256Digest,
    /// The code changed.
    pub code_changed: bool,
    /// A schema changed.
    pub schemas_changed: bool,
    /// A resource bound changed.
    pub resources_changed: bool,
    /// The declared permissions changed.
    pub authority_changed: bool,
    /// The declared permissions are wider than before; such an update needs a yes to just that.
    pub authority_widened: bool,
}

/// What was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewKind {
    /// The whole version.
    Full,
    /// The exact difference from another version.
    Delta(Difference),
}

/// A review of a version for a Goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// Its id.
    pub id: ReviewId,
    /// What was reviewed; all digests as they were shown.
    pub identity: VersionIdentity,
    /// What was looked at.
    pub kind: ReviewKind,
    /// That nobody signed the bytes was said and acknowledged.
    pub unsigned_acknowledged: bool,
    /// The Goal for which it was reviewed.
    pub goal: GoalId,
    /// That Goal's revision.
    pub goal_revision: Revision,
    /// The pointer's generation at the time; a review older than the pointer is not fresh.
    pub generation: Generation,
    /// Who reviewed.
    pub reviewer: OwnerId,
    /// In which session.
    pub session: SessionId,
    /// When.
    pub at: Now,
}
