//! The facts of a request, for the log and for a receipt.

use lazaret_contract::digest::Sha256Digest;

use super::PackageState;
use crate::command::{Command, Context, Named, Quarantine, Request};
use crate::event::{Action, Change, Event, Outcome};
use crate::ids::{ApprovalId, GoalId, ReviewId};
use crate::numbers::Revision;
use crate::package::VersionIdentity;
use crate::refusal::Refusal;
use crate::tombstone::Tombstone;

type Judged = Result<Vec<Change>, Refusal>;

pub fn of_command(
    state: &PackageState,
    context: &Context<'_>,
    command: &Command,
    result: &Judged,
) -> Event {
    let mut event = blank(state, context, action_of(&command.request), result);
    event.actor = Some(command.actor.clone());
    match &command.request {
        Request::Install(new) => {
            event.name(&new.named);
            event.show(&new.identity);
        }
        Request::Review(new) => {
            event.name(&new.named);
            event.show(&new.shown);
            event.review = Some(new.id.clone());
        }
        Request::Ask(new) => {
            event.name(&new.named);
            event.show(&new.shown);
            event.review = Some(new.review.clone());
            event.approval = Some(new.id.clone());
        }
        Request::Approve(answer) => {
            event.name(&answer.named);
            event.approve(state, &answer.approval);
            event.show(&answer.shown);
        }
        Request::Deny(decline) => {
            event.approve(state, &decline.approval);
            event.reason = Some(decline.reason.clone());
        }
        Request::Activate(using)
        | Request::Update(using)
        | Request::Resume(using)
        | Request::Rollback(using) => {
            event.name(&using.named);
            event.approve(state, &using.approval);
            event.know(state, &using.content);
        }
        Request::Pause(withdrawal) | Request::Uninstall(withdrawal) => {
            event.withdraw(state);
            event.generation_named = withdrawal.generation;
            event.reason = Some(withdrawal.reason.clone());
        }
        Request::Revoke(revocation) => {
            event.withdraw(state);
            event.know(state, &revocation.content);
            event.generation_named = revocation.generation;
            event.tombstone = Some(revocation.tombstone.clone());
            event.reason = Some(revocation.reason.clone());
        }
    }
    event
}

pub fn of_quarantine(
    state: &PackageState,
    context: &Context<'_>,
    found: &Quarantine,
    result: &Judged,
) -> Event {
    let mut event = blank(state, context, Action::Quarantine, result);
    event.withdraw(state);
    event.know(state, &found.content);
    event.tombstone = Some(found.tombstone.clone());
    event.reason = Some(found.reason.clone());
    event
}

/// Another owner's words and identity stay out: owners see nothing of each other.
pub fn of_withdrawal(
    state: &PackageState,
    context: &Context<'_>,
    tombstone: &Tombstone,
    result: &Judged,
) -> Event {
    let mut event = blank(state, context, Action::Withdraw, result);
    event.withdraw(state);
    event.tombstone = Some(tombstone.id.clone());
    event
}

const fn action_of(request: &Request) -> Action {
    match request {
        Request::Install(_) => Action::Install,
        Request::Review(_) => Action::Review,
        Request::Ask(_) => Action::Request,
        Request::Approve(_) => Action::Approve,
        Request::Deny(_) => Action::Deny,
        Request::Activate(_) => Action::Activate,
        Request::Update(_) => Action::Update,
        Request::Resume(_) => Action::Resume,
        Request::Rollback(_) => Action::Rollback,
        Request::Pause(_) => Action::Pause,
        Request::Revoke(_) => Action::Revoke,
        Request::Uninstall(_) => Action::Uninstall,
    }
}

fn blank(state: &PackageState, context: &Context<'_>, action: Action, result: &Judged) -> Event {
    let moved = result.iter().flatten().find_map(|change| match change {
        Change::SetPointer(pointer) => Some(pointer),
        _ => None,
    });
    let after = moved.unwrap_or(&state.pointer);
    Event {
        action,
        outcome: match result {
            Ok(_) => Outcome::Accepted,
            Err(refusal) => Outcome::Refused(refusal.clone()),
        },
        at: *context.now,
        owner: state.owner.clone(),
        package: state.package.clone(),
        actor: None,
        root_epoch: context.root.epoch,
        version: None,
        content: None,
        from: state.pointer.target.as_ref().map(|target| target.content),
        goal: None,
        review: None,
        approval: None,
        tombstone: None,
        reason: None,
        generation_named: None,
        generation_before: state.pointer.generation,
        generation_after: after.generation,
        standing_after: after.standing,
    }
}

impl Event {
    fn name(&mut self, named: &Named) {
        self.goal = Some((named.goal.clone(), named.goal_revision));
        self.generation_named = Some(named.generation);
    }

    fn show(&mut self, identity: &VersionIdentity) {
        self.version = Some(identity.clone());
        self.content = Some(identity.content);
    }

    fn know(&mut self, state: &PackageState, content: &Sha256Digest) {
        self.content = Some(*content);
        self.version = state
            .versions
            .get(content)
            .map(|version| version.identity.clone());
    }

    /// The facts that the approval holds, if it is known.
    fn approve(&mut self, state: &PackageState, id: &ApprovalId) {
        self.approval = Some(id.clone());
        if let Some(approval) = state.approvals.get(id) {
            self.review = Some(approval.review.clone());
            if self.goal.is_none() {
                self.goal = Some((approval.goal.clone(), approval.goal_revision));
            }
            self.show(&approval.identity);
        }
    }

    /// The facts of what is, or was last, in force.
    fn withdraw(&mut self, state: &PackageState) {
        if let Some(target) = &state.pointer.target {
            let (goal, revision): (GoalId, Revision) = (target.goal.clone(), target.goal_revision);
            let review: ReviewId = target.review.clone();
            self.goal = Some((goal, revision));
            self.review = Some(review);
            self.approval = Some(target.approval.clone());
            self.know(state, &target.content);
        }
    }
}
