//! Approvals and the four transitions that give authority.

use lazaret_contract::digest::Sha256Digest;

use super::{PackageState, check_named, check_not_denied};
use crate::approval::{Approval, ApprovalState, GivingAction, Grant};
use crate::command::{Actor, Answer, Context, Decline, Named, NewApproval, Use};
use crate::event::Change;
use crate::package::{Pointer, Standing, Target, Version, VersionState};
use crate::refusal::Refusal;
use crate::review::{Review, ReviewKind};
use crate::time::Deadline;

pub fn ask(
    state: &PackageState,
    context: &Context<'_>,
    actor: &Actor,
    new: &NewApproval,
) -> Result<Vec<Change>, Refusal> {
    check_named(state, context, &new.named)?;
    let version = state.version(&new.shown.content)?;
    if version.identity != new.shown {
        return Err(Refusal::DigestsDiffer);
    }
    check_possible(
        state,
        context,
        new.action,
        version,
        review_of(state, &new.review, version)?,
    )?;
    if state.approvals.contains_key(&new.id) {
        return Err(Refusal::ApprovalExists);
    }
    if new.answer_ms > context.policy.answer_ms_max {
        return Err(Refusal::LifetimeTooLong);
    }
    Ok(vec![Change::InsertApproval(Approval {
        id: new.id.clone(),
        action: new.action,
        identity: version.identity.clone(),
        from: state.pointer.target.as_ref().map(|target| target.content),
        review: new.review.clone(),
        generation: state.pointer.generation,
        goal: new.named.goal.clone(),
        goal_revision: new.named.goal_revision,
        requester: actor.owner.clone(),
        session: actor.session.clone(),
        answer_deadline: Deadline::after(context.now, new.answer_ms),
        state: ApprovalState::Requested,
    })])
}

pub fn approve(
    state: &PackageState,
    context: &Context<'_>,
    actor: &Actor,
    answer: &Answer,
) -> Result<Vec<Change>, Refusal> {
    check_named(state, context, &answer.named)?;
    let approval = state
        .approvals
        .get(&answer.approval)
        .ok_or(Refusal::ApprovalUnknown)?;
    if approval.state != ApprovalState::Requested {
        return Err(Refusal::ApprovalAnswered);
    }
    if approval.answer_deadline.is_past(context.now) {
        return Err(Refusal::ApprovalExpired);
    }
    check_bindings(state, approval, &answer.named)?;
    if approval.identity != answer.shown {
        return Err(Refusal::ApprovalForOtherVersion);
    }
    if context.policy.two_people && approval.requester == actor.owner {
        return Err(Refusal::SamePerson);
    }
    if answer.lifetime_ms > context.policy.lifetime_ms_max {
        return Err(Refusal::LifetimeTooLong);
    }
    let version = state.version(&approval.identity.content)?;
    let review = review_of(state, &approval.review, version)?;
    check_possible(state, context, approval.action, version, review)?;
    check_wider(review, answer.wider_acknowledged)?;
    let grant = Grant {
        by: actor.owner.clone(),
        session: actor.session.clone(),
        at: *context.now,
        deadline: Deadline::after(context.now, answer.lifetime_ms),
        wider_acknowledged: answer.wider_acknowledged,
    };
    let mut changes = vec![Change::SetApproval {
        id: approval.id.clone(),
        state: ApprovalState::Granted(grant),
    }];
    if version.state == VersionState::Reviewed {
        let approved = Version {
            state: VersionState::Approved,
            ..version.clone()
        };
        changes.push(Change::UpdateVersion(approved));
    }
    Ok(changes)
}

pub fn deny(
    state: &PackageState,
    actor: &Actor,
    decline: &Decline,
) -> Result<Vec<Change>, Refusal> {
    let approval = state
        .approvals
        .get(&decline.approval)
        .ok_or(Refusal::ApprovalUnknown)?;
    if approval.state != ApprovalState::Requested {
        return Err(Refusal::ApprovalAnswered);
    }
    let denied = ApprovalState::Denied {
        by: actor.owner.clone(),
        reason: decline.reason.clone(),
    };
    Ok(vec![Change::SetApproval {
        id: approval.id.clone(),
        state: denied,
    }])
}

pub fn activate(
    state: &PackageState,
    context: &Context<'_>,
    using: &Use,
) -> Result<Vec<Change>, Refusal> {
    bring_into_force(state, context, GivingAction::Activate, using)
}

pub fn update(
    state: &PackageState,
    context: &Context<'_>,
    using: &Use,
) -> Result<Vec<Change>, Refusal> {
    bring_into_force(state, context, GivingAction::Update, using)
}

pub fn rollback(
    state: &PackageState,
    context: &Context<'_>,
    using: &Use,
) -> Result<Vec<Change>, Refusal> {
    bring_into_force(state, context, GivingAction::Rollback, using)
}

pub fn resume(
    state: &PackageState,
    context: &Context<'_>,
    using: &Use,
) -> Result<Vec<Change>, Refusal> {
    let (approval, grant, version) = usable(state, context, GivingAction::Resume, using)?;
    let pointer = Pointer {
        generation: state.next_generation()?,
        standing: Standing::Active,
        ..state.pointer.clone()
    };
    Ok(vec![
        Change::SetApproval {
            id: approval.id.clone(),
            state: ApprovalState::Used(grant.clone()),
        },
        Change::UpdateVersion(Version {
            state: VersionState::Active,
            ..version.clone()
        }),
        Change::SetPointer(pointer),
    ])
}

fn bring_into_force(
    state: &PackageState,
    context: &Context<'_>,
    action: GivingAction,
    using: &Use,
) -> Result<Vec<Change>, Refusal> {
    let (approval, grant, version) = usable(state, context, action, using)?;
    let mut changes = vec![Change::SetApproval {
        id: approval.id.clone(),
        state: ApprovalState::Used(grant.clone()),
    }];
    let replaced = state
        .pointer
        .in_force()
        .filter(|target| target.content != using.content);
    if let Some(replaced) = replaced {
        let old = state.version(&replaced.content)?;
        let superseded = Version {
            state: VersionState::Superseded,
            ..old.clone()
        };
        changes.push(Change::UpdateVersion(superseded));
    }
    changes.push(Change::UpdateVersion(Version {
        state: VersionState::Active,
        was_active: true,
        ..version.clone()
    }));
    changes.push(Change::SetPointer(Pointer {
        generation: state.next_generation()?,
        standing: Standing::Active,
        target: Some(Target {
            content: using.content,
            review: approval.review.clone(),
            approval: approval.id.clone(),
            goal: approval.goal.clone(),
            goal_revision: approval.goal_revision,
        }),
        ..state.pointer.clone()
    }));
    Ok(changes)
}

/// The approval that is used, its grant and the version, if everything about them holds.
///
/// This check is load-bearing: it is the only way to authority.
fn usable<'s>(
    state: &'s PackageState,
    context: &Context<'_>,
    action: GivingAction,
    using: &Use,
) -> Result<(&'s Approval, &'s Grant, &'s Version), Refusal> {
    check_named(state, context, &using.named)?;
    let approval = state
        .approvals
        .get(&using.approval)
        .ok_or(Refusal::ApprovalUnknown)?;
    let grant = match &approval.state {
        ApprovalState::Granted(grant) => grant,
        ApprovalState::Requested => return Err(Refusal::ApprovalNotGranted),
        ApprovalState::Denied { .. } => return Err(Refusal::ApprovalDenied),
        ApprovalState::Used(_) => return Err(Refusal::ApprovalUsed),
    };
    if approval.action != action {
        return Err(Refusal::ApprovalForOtherAction);
    }
    if approval.identity.content != using.content {
        return Err(Refusal::ApprovalForOtherVersion);
    }
    if grant.deadline.is_past(context.now) {
        return Err(Refusal::ApprovalExpired);
    }
    check_bindings(state, approval, &using.named)?;
    let version = state.version(&using.content)?;
    if approval.identity != version.identity {
        return Err(Refusal::ApprovalForOtherVersion);
    }
    let review = review_of(state, &approval.review, version)?;
    check_possible(state, context, action, version, review)?;
    check_wider(review, grant.wider_acknowledged)?;
    Ok((approval, grant, version))
}

/// The approval is for this state of the pointer and for the Goal that is named.
fn check_bindings(state: &PackageState, approval: &Approval, named: &Named) -> Result<(), Refusal> {
    if approval.generation != state.pointer.generation {
        return Err(Refusal::ApprovalForOtherGeneration);
    }
    if approval.goal != named.goal || approval.goal_revision != named.goal_revision {
        return Err(Refusal::ApprovalForOtherGoal);
    }
    Ok(())
}

/// Wider authority never comes into force by itself.
fn check_wider(review: &Review, acknowledged: bool) -> Result<(), Refusal> {
    match &review.kind {
        ReviewKind::Delta(difference) if difference.authority_widened && !acknowledged => {
            Err(Refusal::WiderNotAcknowledged)
        }
        _ => Ok(()),
    }
}

fn review_of<'s>(
    state: &'s PackageState,
    id: &crate::ids::ReviewId,
    version: &Version,
) -> Result<&'s Review, Refusal> {
    let review = state.reviews.get(id).ok_or(Refusal::ReviewUnknown)?;
    if review.identity == version.identity {
        Ok(review)
    } else {
        Err(Refusal::ReviewUnknown)
    }
}

/// Whether `action` leads from where the pointer stands to `version`, by `review`.
fn check_possible(
    state: &PackageState,
    context: &Context<'_>,
    action: GivingAction,
    version: &Version,
    review: &Review,
) -> Result<(), Refusal> {
    check_not_denied(context.tombstones, &version.identity)?;
    if version.state == VersionState::Uninstalled {
        return Err(Refusal::NotInstalled);
    }
    if action == GivingAction::Resume {
        return check_resume(state, &version.identity.content, review);
    }
    if version.newest_review.as_ref() != Some(&review.id) {
        return Err(Refusal::ReviewNotNewest);
    }
    match action {
        GivingAction::Update => check_update(state, review),
        GivingAction::Rollback => check_rollback(state, version, review),
        GivingAction::Activate | GivingAction::Resume => check_activate(state, version, review),
    }
}

/// What is paused goes on under the review by which it came into force.
fn check_resume(
    state: &PackageState,
    content: &Sha256Digest,
    review: &Review,
) -> Result<(), Refusal> {
    if state.pointer.standing != Standing::Paused {
        return Err(Refusal::NotPaused);
    }
    let target = state.pointer.in_force().ok_or(Refusal::NothingInForce)?;
    if target.content != *content {
        return Err(Refusal::OtherVersionInForce);
    }
    if target.review == review.id {
        Ok(())
    } else {
        Err(Refusal::ReviewUnknown)
    }
}

fn check_activate(state: &PackageState, version: &Version, review: &Review) -> Result<(), Refusal> {
    match state.pointer.standing {
        Standing::Active | Standing::Paused => return Err(Refusal::AlreadyInForce),
        Standing::Revoked if version.was_active => {
            return Err(Refusal::RollbackOnlyFromQuarantine);
        }
        Standing::Quarantined if version.was_active => return Err(Refusal::UseRollback),
        Standing::Vacant | Standing::Uninstalled | Standing::Revoked | Standing::Quarantined => {}
    }
    check_fresh(state, review)
}

fn check_update(state: &PackageState, review: &Review) -> Result<(), Refusal> {
    let target = state.pointer.in_force().ok_or(Refusal::NothingInForce)?;
    match &review.kind {
        ReviewKind::Full => Err(Refusal::ReviewNotDelta),
        ReviewKind::Delta(difference) if difference.from != target.content => {
            Err(Refusal::DeltaFromOtherVersion)
        }
        // A review serves once: what is in force by it needs another to come into force again.
        ReviewKind::Delta(_) if review.id == target.review => Err(Refusal::AlreadyInForce),
        ReviewKind::Delta(_) => Ok(()),
    }
}

fn check_rollback(state: &PackageState, version: &Version, review: &Review) -> Result<(), Refusal> {
    if state.pointer.standing != Standing::Quarantined {
        return Err(Refusal::RollbackOnlyFromQuarantine);
    }
    if !version.was_active {
        return Err(Refusal::NotAPriorVersion);
    }
    check_fresh(state, review)
}

fn check_fresh(state: &PackageState, review: &Review) -> Result<(), Refusal> {
    if review.generation == state.pointer.generation {
        Ok(())
    } else {
        Err(Refusal::ReviewNotFresh)
    }
}
