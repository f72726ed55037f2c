//! Whether a job still has its authority, at each stage of its life (DESIGN sections 3 and 5).
//!
//! One function serves the claim, arming, release, adoption and reading, and the watcher between
//! them, so that no stage can forget a check that another makes. It looks at canonical rows only;
//! files and processes are other people's proofs.
//!
//! A job is checked against its own pin. Until release the pin must also be what the pointer
//! says; afterwards an update does not stop it, and pause, revocation, quarantine,
//! uninstallation, cancellation and a change of Root, session or Goal do.

use crate::approval::{Approval, ApprovalState};
use crate::authority::{Goal, GoalRefusal, Root, Session, SessionRefusal};
use crate::binding::{Binding, Stage};
use crate::numbers::Generation;
use crate::package::{Pointer, Standing, Target, Version, VersionState};
use crate::time::{Deadline, Now};
use crate::tombstone::{Denial, TombstoneCause};

/// The canonical rows of one job, as they stand at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Canonical<'a> {
    /// The clocks.
    pub now: &'a Now,
    /// Whether the job was cancelled.
    pub cancelled: bool,
    /// The Root.
    pub root: &'a Root,
    /// Whether the owner was removed.
    pub owner_removed: bool,
    /// The job's session; for a reading the reader's.
    pub session: Option<&'a Session>,
    /// The job's Goal.
    pub goal: Option<&'a Goal>,
    /// The job's version.
    pub version: Option<&'a Version>,
    /// The package's pointer.
    pub pointer: &'a Pointer,
    /// The Goal for which the version in force was approved.
    pub package_goal: Option<&'a Goal>,
    /// The job's approval.
    pub approval: Option<&'a Approval>,
    /// A tombstone that denies the job's version.
    pub denial: Option<&'a Denial>,
    /// When the attempt's lease ends.
    pub lease_deadline: Option<&'a Deadline>,
}

/// Why a job may not go on, or its output not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityRefusal {
    /// It was cancelled, and that was committed first.
    #[error("the task was cancelled")]
    Cancelled,
    /// The first absolute deadline is past.
    #[error("the first deadline is past")]
    DeadlinePast,
    /// The lease is past, or there is none.
    #[error("the lease is past")]
    LeasePast,
    /// The Root is another one, or of another epoch.
    #[error("the Root was rotated")]
    RootRotated,
    /// The owner was removed.
    #[error("the owner was removed")]
    OwnerRemoved,
    /// The session gives no authority.
    #[error(transparent)]
    Session(SessionRefusal),
    /// The Goal gives no authority.
    #[error(transparent)]
    Goal(GoalRefusal),
    /// The version is not known.
    #[error("the package version is not known")]
    VersionUnknown,
    /// The stored version is not the one that the job is bound to.
    #[error("the stored version's digests are not those of the job")]
    VersionDiffers,
    /// A tombstone, or the version's own state, says revoked.
    #[error("the package version was revoked")]
    Revoked,
    /// A tombstone, or the version's own state, says quarantined.
    #[error("the package version is quarantined")]
    Quarantined,
    /// The package was uninstalled, now or since the release.
    #[error("the package was uninstalled")]
    Uninstalled,
    /// The package is paused, or was since the release.
    #[error("the package is paused")]
    Paused,
    /// Nothing is in force, or another version or review is.
    #[error("the pinned version is no longer the active one")]
    NotActive,
    /// The pointer has moved between claim and release.
    #[error("the pointer has moved since the claim")]
    GenerationMoved,
    /// The version in force was approved for a Goal that is closed.
    #[error("the Goal for which the package was approved is closed")]
    PackageGoalClosed,
    /// The approval is unknown, unused, or for other digests.
    #[error("the approval of the package does not hold")]
    ApprovalInvalid,
}

/// What becomes of a queued task that is refused at the claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It waits; what stands in its way can be taken back.
    Waits,
    /// Its pin is out of date: it never runs.
    Stale,
    /// What it asks for must never run.
    Blocked,
    /// Somebody cancelled it.
    Cancelled,
    /// It is too late.
    Expired,
}

impl AuthorityRefusal {
    /// A stable code for receipts and interfaces.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::DeadlinePast => "deadline_past",
            Self::LeasePast => "lease_past",
            Self::RootRotated => "root_rotated",
            Self::OwnerRemoved => "owner_removed",
            Self::Session(refusal) => refusal.code(),
            Self::Goal(refusal) => refusal.code(),
            Self::VersionUnknown => "version_unknown",
            Self::VersionDiffers => "version_differs",
            Self::Revoked => "version_revoked",
            Self::Quarantined => "version_quarantined",
            Self::Uninstalled => "package_uninstalled",
            Self::Paused => "package_paused",
            Self::NotActive => "version_not_active",
            Self::GenerationMoved => "pointer_moved",
            Self::PackageGoalClosed => "package_goal_closed",
            Self::ApprovalInvalid => "approval_invalid",
        }
    }

    /// What becomes of a queued task that is refused so.
    pub const fn fate(&self) -> Fate {
        match self {
            Self::Cancelled => Fate::Cancelled,
            Self::DeadlinePast | Self::LeasePast => Fate::Expired,
            Self::Paused => Fate::Waits,
            Self::RootRotated
            | Self::OwnerRemoved
            | Self::Session(_)
            | Self::Goal(_)
            | Self::NotActive
            | Self::GenerationMoved
            | Self::PackageGoalClosed => Fate::Stale,
            Self::VersionUnknown
            | Self::VersionDiffers
            | Self::Revoked
            | Self::Quarantined
            | Self::Uninstalled
            | Self::ApprovalInvalid => Fate::Blocked,
        }
    }
}

/// The first reason why the job may not pass `stage`, if there is one. A cancellation that was
/// committed is named before everything else.
pub fn first_refusal(
    stage: Stage,
    binding: &Binding,
    rows: &Canonical<'_>,
) -> Option<AuthorityRefusal> {
    refusals(stage, binding, rows).next()
}

/// Every reason why the job's output may not be read; none if it may.
///
/// Neither a pause, an update, a closed or revised Goal nor the deadline takes reads away.
pub fn reading_refusals(binding: &Binding, rows: &Canonical<'_>) -> Vec<AuthorityRefusal> {
    refusals(Stage::Reading, binding, rows).collect()
}

type Check = fn(Stage, &Binding, &Canonical<'_>) -> Option<AuthorityRefusal>;

/// The checks in the order in which their refusals are named.
const CHECKS: &[Check] = &[
    check_cancelled,
    check_root,
    check_session,
    check_goal,
    check_denial,
    check_version,
    check_uninstalled,
    check_paused,
    check_pointer,
    check_package_goal,
    check_approval,
    check_times,
];

fn refusals<'a>(
    stage: Stage,
    binding: &'a Binding,
    rows: &'a Canonical<'a>,
) -> impl Iterator<Item = AuthorityRefusal> + 'a {
    CHECKS
        .iter()
        .filter_map(move |check| check(stage, binding, rows))
}

fn check_cancelled(stage: Stage, _: &Binding, rows: &Canonical<'_>) -> Option<AuthorityRefusal> {
    (rows.cancelled && stage != Stage::Reading).then_some(AuthorityRefusal::Cancelled)
}

fn check_root(_: Stage, binding: &Binding, rows: &Canonical<'_>) -> Option<AuthorityRefusal> {
    let same = binding.root == rows.root.id && binding.root_epoch == rows.root.epoch;
    (!same).then_some(AuthorityRefusal::RootRotated)
}

/// Before and during a run the session that asked must be alive; for a reading, the reader's.
fn check_session(
    stage: Stage,
    binding: &Binding,
    rows: &Canonical<'_>,
) -> Option<AuthorityRefusal> {
    if rows.owner_removed {
        return Some(AuthorityRefusal::OwnerRemoved);
    }
    let session = match stage {
        Stage::Reading => rows.session,
        _ => rows.session.filter(|session| session.id == binding.session),
    };
    let live = Session::check_live_for(session, &binding.owner, rows.root, rows.now);
    live.err().map(AuthorityRefusal::Session)
}

fn check_goal(stage: Stage, binding: &Binding, rows: &Canonical<'_>) -> Option<AuthorityRefusal> {
    if stage == Stage::Reading {
        return None;
    }
    let revision = binding.goal_revision;
    let current = Goal::check_current(rows.goal, &binding.goal, &binding.owner, revision);
    current.err().map(AuthorityRefusal::Goal)
}

fn check_denial(_: Stage, _: &Binding, rows: &Canonical<'_>) -> Option<AuthorityRefusal> {
    rows.denial.map(|denial| match denial.cause {
        TombstoneCause::Revocation => AuthorityRefusal::Revoked,
        TombstoneCause::DigestMismatch => AuthorityRefusal::Quarantined,
    })
}

fn check_version(_: Stage, binding: &Binding, rows: &Canonical<'_>) -> Option<AuthorityRefusal> {
    let Some(version) = rows.version else {
        return Some(AuthorityRefusal::VersionUnknown);
    };
    if !is_pinned_version(binding, version) {
        return Some(AuthorityRefusal::VersionDiffers);
    }
    match version.state {
        VersionState::Revoked => Some(AuthorityRefusal::Revoked),
        VersionState::Quarantined => Some(AuthorityRefusal::Quarantined),
        VersionState::Uninstalled => Some(AuthorityRefusal::Uninstalled),
        _ => None,
    }
}

fn is_pinned_version(binding: &Binding, version: &Version) -> bool {
    let (identity, runtime) = (&version.identity, &version.runtime);
    identity.package == binding.package
        && identity.version == binding.package_version
        && identity.content == binding.content
        && identity.authority == binding.authority
        && identity.dependency == binding.dependency
        && runtime.profile == binding.profile
        && runtime.closure == binding.closure
        && runtime.policy == binding.policy
        && version.capability == binding.capability
}

/// What was released before an uninstallation stays without authority and unread, also if the
/// same bytes are installed anew.
fn check_uninstalled(
    _: Stage,
    binding: &Binding,
    rows: &Canonical<'_>,
) -> Option<AuthorityRefusal> {
    let since = was_since(rows.pointer.uninstalled_at, binding.pointer_generation);
    let now = rows.pointer.standing == Standing::Uninstalled;
    (now || since).then_some(AuthorityRefusal::Uninstalled)
}

/// A pause stops what runs for good: the package may have been resumed since.
fn check_paused(stage: Stage, binding: &Binding, rows: &Canonical<'_>) -> Option<AuthorityRefusal> {
    let since = was_since(rows.pointer.paused_at, binding.pointer_generation);
    let stopped = rows.pointer.standing == Standing::Paused || since;
    (stopped && stage != Stage::Reading).then_some(AuthorityRefusal::Paused)
}

fn was_since(event: Option<Generation>, claimed: Option<Generation>) -> bool {
    matches!((event, claimed), (Some(event), Some(claimed)) if event > claimed)
}

/// Until release the pin is what the pointer says; between claim and release it did not move.
fn check_pointer(
    stage: Stage,
    binding: &Binding,
    rows: &Canonical<'_>,
) -> Option<AuthorityRefusal> {
    if matches!(stage, Stage::Adoption | Stage::Reading) {
        return None;
    }
    if !rows
        .pointer
        .in_force()
        .is_some_and(|target| is_pinned(binding, target))
    {
        return Some(AuthorityRefusal::NotActive);
    }
    let moved = binding
        .pointer_generation
        .is_some_and(|g| g != rows.pointer.generation);
    moved.then_some(AuthorityRefusal::GenerationMoved)
}

fn is_pinned(binding: &Binding, target: &Target) -> bool {
    target.content == binding.content
        && target.review == binding.review
        && target.approval == binding.approval
}

/// A new launch needs the Goal for which the package was approved to be open.
fn check_package_goal(stage: Stage, _: &Binding, rows: &Canonical<'_>) -> Option<AuthorityRefusal> {
    if matches!(stage, Stage::Adoption | Stage::Reading) {
        return None;
    }
    let open = rows.package_goal.is_some_and(|goal| !goal.closed);
    (!open).then_some(AuthorityRefusal::PackageGoalClosed)
}

fn check_approval(
    stage: Stage,
    binding: &Binding,
    rows: &Canonical<'_>,
) -> Option<AuthorityRefusal> {
    if stage == Stage::Reading {
        return None;
    }
    let holds = rows.approval.is_some_and(|approval| {
        approval.id == binding.approval
            && approval.review == binding.review
            && approval.identity.content == binding.content
            && matches!(approval.state, ApprovalState::Used(_))
    });
    (!holds).then_some(AuthorityRefusal::ApprovalInvalid)
}

/// Deadline and lease exist from the claim on and cover everything up to adoption.
fn check_times(stage: Stage, binding: &Binding, rows: &Canonical<'_>) -> Option<AuthorityRefusal> {
    let past = |deadline: &Deadline| deadline.is_past(rows.now);
    match stage {
        Stage::Admission | Stage::Reading => None,
        // A task that had an attempt keeps its first deadline; a new one gets its own now.
        Stage::Claim => {
            let late = binding.first_deadline.as_ref().is_some_and(past);
            late.then_some(AuthorityRefusal::DeadlinePast)
        }
        Stage::Arming | Stage::Release | Stage::Adoption => {
            if binding.first_deadline.as_ref().is_none_or(past) {
                return Some(AuthorityRefusal::DeadlinePast);
            }
            rows.lease_deadline
                .is_none_or(past)
                .then_some(AuthorityRefusal::LeasePast)
        }
    }
}
