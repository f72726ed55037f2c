//! Why a transition was refused: one name for each reason, and a stable code for each name.

use lazaret_contract::digest::Sha256Digest;

use crate::authority::{GoalRefusal, SessionRefusal};
use crate::numbers::Generation;
use crate::tombstone::Denial;

/// Why a lifecycle transition was refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The session gives no authority.
    #[error(transparent)]
    Session(#[from] SessionRefusal),
    /// The Goal gives no authority.
    #[error(transparent)]
    Goal(#[from] GoalRefusal),
    /// The pointer has changed since the actor looked.
    #[error("generation {named} was named, and the pointer is at {current}")]
    GenerationMoved {
        /// What the actor has seen.
        named: Generation,
        /// What it is.
        current: Generation,
    },
    /// There is no next generation.
    #[error("the pointer's generations are used up")]
    GenerationExhausted,
    /// The command names another package than the one it was sent to.
    #[error("the command is about another package")]
    OtherPackage,
    /// No version with that content is known to this owner.
    #[error("no such version of the package is known")]
    VersionUnknown,
    /// The bytes were never installed, or were uninstalled.
    #[error("the version is not installed")]
    NotInstalled,
    /// The bytes are in the store.
    #[error("the version is installed already")]
    AlreadyInstalled,
    /// Other bytes bear this name; the bytes of a version never change.
    #[error("the version's name is taken by content {content}")]
    VersionNameTaken {
        /// The content that has the name.
        content: Sha256Digest,
    },
    /// What was shown is not what would run.
    #[error("the digests that were shown are not the version's")]
    DigestsDiffer,
    /// A tombstone denies the version.
    #[error("tombstone {} denies the {}", .denial.tombstone, .denial.by.as_str())]
    Tombstoned {
        /// Which one, and what it matched.
        denial: Denial,
    },
    /// A reserved id has exactly one content (ADR-013).
    #[error("the package id is reserved for other bytes")]
    FixedIdentityOtherBytes,
    /// A built-in capability cannot be shadowed.
    #[error("the capability belongs to a reserved package")]
    CapabilityReserved,
    /// A capability begins with `pack.<package-id>.` and ends with `.v1` (ADR-020).
    #[error("the capability is not derived from the package id")]
    CapabilityNotDerived,
    /// Unsigned local provenance must be acknowledged.
    #[error("that nobody signed the package was not acknowledged")]
    UnsignedNotAcknowledged,
    /// No review with that id of that version.
    #[error("no such review of this version is known")]
    ReviewUnknown,
    /// A review is an immutable row.
    #[error("a review with this id exists, and reviews never change")]
    ReviewExists,
    /// The version's metadata follow its newest review.
    #[error("there is a newer review of the version")]
    ReviewNotNewest,
    /// The pointer has moved since the review.
    #[error("the review is older than the pointer")]
    ReviewNotFresh,
    /// An update was reviewed as a whole.
    #[error("an update needs a review of the exact difference")]
    ReviewNotDelta,
    /// The difference that was reviewed is not the one that would happen.
    #[error("the difference does not start from the version in force")]
    DeltaFromOtherVersion,
    /// The stated changes contradict the digests.
    #[error("the difference says other than the digests")]
    DeltaMisstates,
    /// No approval with that id for this package.
    #[error("no such approval is known")]
    ApprovalUnknown,
    /// Approval ids are not used twice.
    #[error("an approval with this id exists")]
    ApprovalExists,
    /// Only a request that waits can be answered.
    #[error("the approval was answered already")]
    ApprovalAnswered,
    /// Nobody has said yes.
    #[error("the approval was not granted")]
    ApprovalNotGranted,
    /// Somebody has said no.
    #[error("the approval was denied")]
    ApprovalDenied,
    /// An approval serves once.
    #[error("the approval was used already")]
    ApprovalUsed,
    /// Its deadline is past, for the answer or for the use.
    #[error("the approval has expired")]
    ApprovalExpired,
    /// It permits that very action and no other.
    #[error("the approval is for another action")]
    ApprovalForOtherAction,
    /// It permits exact digests and no others.
    #[error("the approval is for other digests")]
    ApprovalForOtherVersion,
    /// It was given for another Goal.
    #[error("the approval is for another Goal or revision")]
    ApprovalForOtherGoal,
    /// It was given for another state of the pointer.
    #[error("the pointer has moved since the approval was asked for")]
    ApprovalForOtherGeneration,
    /// The lifetime is over the deployment's bound.
    #[error("the approval would hold for too long")]
    LifetimeTooLong,
    /// Who asks must not be who grants.
    #[error("the deployment asks for two people, and this is one")]
    SamePerson,
    /// Wider authority never comes into force by itself.
    #[error("that the permissions become wider was not acknowledged")]
    WiderNotAcknowledged,
    /// Activation is for a package of which nothing is in force.
    #[error("a version is in force; an update is wanted")]
    AlreadyInForce,
    /// There is nothing to update or pause.
    #[error("no version is in force")]
    NothingInForce,
    /// It is paused.
    #[error("the package is paused already")]
    AlreadyPaused,
    /// Only a paused version goes on.
    #[error("the package is not paused")]
    NotPaused,
    /// The named version is not the one that is paused.
    #[error("another version is in force")]
    OtherVersionInForce,
    /// Revocation is the operator's will; no rollback leads out of it.
    #[error("a prior version comes back only out of a digest quarantine")]
    RollbackOnlyFromQuarantine,
    /// Out of quarantine a prior version needs a rollback.
    #[error("a prior version comes back by a rollback")]
    UseRollback,
    /// A rollback leads to a version that was in force.
    #[error("the version was never in force")]
    NotAPriorVersion,
    /// Its tombstone stands.
    #[error("the version is revoked already")]
    AlreadyRevoked,
    /// Its tombstone stands.
    #[error("the version is quarantined already")]
    AlreadyQuarantined,
    /// There is nothing to uninstall.
    #[error("nothing of the package is installed")]
    NothingInstalled,
}

impl Refusal {
    /// A stable code for receipts and interfaces.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Session(refusal) => refusal.code(),
            Self::Goal(refusal) => refusal.code(),
            Self::GenerationMoved { .. } => "generation_moved",
            Self::GenerationExhausted => "generation_exhausted",
            Self::OtherPackage => "other_package",
            Self::VersionUnknown => "version_unknown",
            Self::NotInstalled => "not_installed",
            Self::AlreadyInstalled => "already_installed",
            Self::VersionNameTaken { .. } => "version_name_taken",
            Self::DigestsDiffer => "digests_differ",
            Self::Tombstoned { .. } => "tombstoned",
            Self::FixedIdentityOtherBytes => "fixed_identity_other_bytes",
            Self::CapabilityReserved => "capability_reserved",
            Self::CapabilityNotDerived => "capability_not_derived",
            Self::UnsignedNotAcknowledged => "unsigned_not_acknowledged",
            Self::ReviewUnknown => "review_unknown",
            Self::ReviewExists => "review_exists",
            Self::ReviewNotNewest => "review_not_newest",
            Self::ReviewNotFresh => "review_not_fresh",
            Self::ReviewNotDelta => "review_not_delta",
            Self::DeltaFromOtherVersion => "delta_from_other_version",
            Self::DeltaMisstates => "delta_misstates",
            Self::ApprovalUnknown => "approval_unknown",
            Self::ApprovalExists => "approval_exists",
            Self::ApprovalAnswered => "approval_answered",
            Self::ApprovalNotGranted => "approval_not_granted",
            Self::ApprovalDenied => "approval_denied",
            Self::ApprovalUsed => "approval_used",
            Self::ApprovalExpired => "approval_expired",
            Self::ApprovalForOtherAction => "approval_for_other_action",
            Self::ApprovalForOtherVersion => "approval_for_other_version",
            Self::ApprovalForOtherGoal => "approval_for_other_goal",
            Self::ApprovalForOtherGeneration => "approval_for_other_generation",
            Self::LifetimeTooLong => "lifetime_too_long",
            Self::SamePerson => "same_person",
            Self::WiderNotAcknowledged => "wider_authority_not_acknowledged",
            Self::AlreadyInForce => "already_in_force",
            Self::NothingInForce => "nothing_in_force",
            Self::AlreadyPaused => "already_paused",
            Self::NotPaused => "not_paused",
            Self::OtherVersionInForce => "other_version_in_force",
            Self::RollbackOnlyFromQuarantine => "rollback_only_from_quarantine",
            Self::UseRollback => "use_rollback",
            Self::NotAPriorVersion => "not_a_prior_version",
            Self::AlreadyRevoked => "already_revoked",
            Self::AlreadyQuarantined => "already_quarantined",
            Self::NothingInstalled => "nothing_installed",
        }
    }

    /// Every code of this machine's own; those of sessions and Goals are theirs.
    pub const OWN_CODES: &'static [&'static str] = &[
        "generation_moved",
        "generation_exhausted",
        "other_package",
        "version_unknown",
        "not_installed",
        "already_installed",
        "version_name_taken",
        "digests_differ",
        "tombstoned",
        "fixed_identity_other_bytes",
        "capability_reserved",
        "capability_not_derived",
        "unsigned_not_acknowledged",
        "review_unknown",
        "review_exists",
        "review_not_newest",
        "review_not_fresh",
        "review_not_delta",
        "delta_from_other_version",
        "delta_misstates",
        "approval_unknown",
        "approval_exists",
        "approval_answered",
        "approval_not_granted",
        "approval_denied",
        "approval_used",
        "approval_expired",
        "approval_for_other_action",
        "approval_for_other_version",
        "approval_for_other_goal",
        "approval_for_other_generation",
        "lifetime_too_long",
        "same_person",
        "wider_authority_not_acknowledged",
        "already_in_force",
        "nothing_in_force",
        "already_paused",
        "not_paused",
        "other_version_in_force",
        "rollback_only_from_quarantine",
        "use_rollback",
        "not_a_prior_version",
        "already_revoked",
        "already_quarantined",
        "nothing_installed",
    ];
}
