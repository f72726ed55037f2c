//! What is known of a package: its versions, and the pointer that says which is in force.

use lazaret_contract::digest::Sha256Digest;

use crate::ids::{ApprovalId, Capability, GoalId, PackageId, PackageVersion, ProfileId, ReviewId};
use crate::numbers::{Generation, Revision};

/// What identifies the bytes and the permissions of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionIdentity {
    /// The package.
    pub package: PackageId,
    /// The version's name.
    pub version: PackageVersion,
    /// Digest of the exact package bytes; the key of everything here.
    pub content: Sha256Digest,
    /// Digest of the declared permissions.
    pub authority: Sha256Digest,
    /// Digest over profile, closure and policy.
    pub dependency: Sha256Digest,
    /// Digest of `adapter.py`.
    pub code: Sha256Digest,
}

/// What a version runs with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimePin {
    /// The way of isolating.
    pub profile: ProfileId,
    /// The closure's digest.
    pub closure: Sha256Digest,
    /// The filter policy's digest.
    pub policy: Sha256Digest,
}

/// Where a version's bytes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provenance {
    /// They came with Lazaret.
    Bundled,
    /// A directory of this host, signed by nobody; a review must acknowledge that.
    UnsignedLocal,
}

impl Provenance {
    /// Every provenance.
    pub const ALL: [Self; 2] = [Self::Bundled, Self::UnsignedLocal];

    /// The name under which it is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bundled => "bundled",
            Self::UnsignedLocal => "unsigned_local",
        }
    }
}

/// The state of a version (DESIGN section 5). *Inspected* bytes have no row, so no state here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionState {
    /// Its exact bytes are in the store.
    Installed,
    /// It has a review.
    Reviewed,
    /// It has an approval for an action that would bring it into force.
    Approved,
    /// It is in force.
    Active,
    /// Another version took its place.
    Superseded,
    /// It is in force and nothing new may start.
    Paused,
    /// The operator's will: never again.
    Revoked,
    /// Its bytes no longer match their digest: never again.
    Quarantined,
    /// Its authority and reads were taken away; it may be installed anew.
    Uninstalled,
}

impl VersionState {
    /// Every state.
    pub const ALL: [Self; 9] = [
        Self::Installed,
        Self::Reviewed,
        Self::Approved,
        Self::Active,
        Self::Superseded,
        Self::Paused,
        Self::Revoked,
        Self::Quarantined,
        Self::Uninstalled,
    ];

    /// The name under which it is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Reviewed => "reviewed",
            Self::Approved => "approved",
            Self::Active => "active",
            Self::Superseded => "superseded",
            Self::Paused => "paused",
            Self::Revoked => "revoked",
            Self::Quarantined => "quarantined",
            Self::Uninstalled => "uninstalled",
        }
    }
}

/// A version of a package, of one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// What it is.
    pub identity: VersionIdentity,
    /// What it runs with.
    pub runtime: RuntimePin,
    /// What tasks ask for to run it.
    pub capability: Capability,
    /// Where its bytes come from.
    pub provenance: Provenance,
    /// Its state.
    pub state: VersionState,
    /// Whether it was ever in force; such a version is a *prior* one.
    pub was_active: bool,
    /// The newest review, which its metadata follow. The pointer and each job keep their own.
    pub newest_review: Option<ReviewId>,
}

/// What the pointer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing was ever in force.
    Vacant,
    /// A version is in force.
    Active,
    /// A version is in force and nothing new may start.
    Paused,
    /// The version that was in force was revoked.
    Revoked,
    /// The version that was in force no longer matches its digest.
    Quarantined,
    /// The package was uninstalled.
    Uninstalled,
}

impl Standing {
    /// Every standing.
    pub const ALL: [Self; 6] = [
        Self::Vacant,
        Self::Active,
        Self::Paused,
        Self::Revoked,
        Self::Quarantined,
        Self::Uninstalled,
    ];

    /// The name under which it is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vacant => "vacant",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Revoked => "revoked",
            Self::Quarantined => "quarantined",
            Self::Uninstalled => "uninstalled",
        }
    }
}

/// What a pointer points at, with the review, approval and Goal by which it came into force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The version's content digest.
    pub content: Sha256Digest,
    /// Its immutable review.
    pub review: ReviewId,
    /// The approval that was used.
    pub approval: ApprovalId,
    /// The Goal for which it was approved.
    pub goal: GoalId,
    /// That Goal's revision.
    pub goal_revision: Revision,
}

/// The active pointer of one owner and package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// Grows by one with each change of the pointer.
    pub generation: Generation,
    /// What it says.
    pub standing: Standing,
    /// What it points at: there when active or paused; what was in force last, when revoked or
    /// quarantined; none when vacant or uninstalled.
    pub target: Option<Target>,
    /// The generation that the newest pause made, if there was one. A job that was released
    /// before it is stopped for good, even if the package was resumed since.
    pub paused_at: Option<Generation>,
    /// The generation that the newest uninstallation made. What was released before it is neither
    /// adopted nor read.
    pub uninstalled_at: Option<Generation>,
}

impl Pointer {
    /// The pointer of a package of which nothing was ever in force.
    pub const VACANT: Self = Self {
        generation: Generation::ZERO,
        standing: Standing::Vacant,
        target: None,
        paused_at: None,
        uninstalled_at: None,
    };

    /// What is in force, whether or not it is paused.
    pub fn in_force(&self) -> Option<&Target> {
        match self.standing {
            Standing::Active | Standing::Paused => self.target.as_ref(),
            _ => None,
        }
    }
}
