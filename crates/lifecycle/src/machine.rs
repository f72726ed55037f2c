//! The package state machine: a request, judged by canonical rows, becomes changes or a refusal.
//!
//! Authority is given only by an unexpired, unused approval for that very action, those digests
//! and that state of the pointer. Taking it away needs a session and a reason, or, for a digest
//! mismatch, nobody. Whatever is not named as allowed is refused. The functions change nothing
//! themselves.

mod event_facts;
mod giving;
mod reviewing;
mod withdrawing;

use std::collections::BTreeMap;

use lazaret_contract::digest::Sha256Digest;

use crate::approval::Approval;
use crate::authority::{Goal, Session};
use crate::command::{Command, Context, Named, Quarantine, Request};
use crate::event::{Change, Decision};
use crate::ids::{ApprovalId, OwnerId, PackageId, ReviewId};
use crate::numbers::Generation;
use crate::package::{Pointer, Version, VersionIdentity};
use crate::refusal::Refusal;
use crate::review::Review;
use crate::tombstone::{Tombstone, denial};

pub use withdrawing::withdraw_denied;

/// What is known of one owner's package. A caller may leave out reviews and approvals that the
/// command does not name, but no version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageState {
    /// Whose it is.
    pub owner: OwnerId,
    /// Which package.
    pub package: PackageId,
    /// What is in force.
    pub pointer: Pointer,
    /// Every version by its content digest.
    pub versions: BTreeMap<Sha256Digest, Version>,
    /// Reviews by id.
    pub reviews: BTreeMap<ReviewId, Review>,
    /// Approvals by id.
    pub approvals: BTreeMap<ApprovalId, Approval>,
}

impl PackageState {
    /// A package of which nothing is known.
    pub const fn new(owner: OwnerId, package: PackageId) -> Self {
        Self {
            owner,
            package,
            pointer: Pointer::VACANT,
            versions: BTreeMap::new(),
            reviews: BTreeMap::new(),
            approvals: BTreeMap::new(),
        }
    }

    /// Makes the change. Tombstones are the deployment's, and not kept here.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::InstallVersion(version) | Change::UpdateVersion(version) => {
                self.versions
                    .insert(version.identity.content, version.clone());
            }
            Change::InsertReview(review) => {
                self.reviews.insert(review.id.clone(), review.clone());
            }
            Change::InsertApproval(approval) => {
                self.approvals.insert(approval.id.clone(), approval.clone());
            }
            Change::SetApproval { id, state } => {
                if let Some(approval) = self.approvals.get_mut(id) {
                    approval.state = state.clone();
                }
            }
            Change::SetPointer(pointer) => self.pointer = pointer.clone(),
            Change::InsertTombstone(_) => {}
        }
    }

    fn next_generation(&self) -> Result<Generation, Refusal> {
        self.pointer
            .generation
            .next()
            .ok_or(Refusal::GenerationExhausted)
    }

    fn version(&self, content: &Sha256Digest) -> Result<&Version, Refusal> {
        self.versions.get(content).ok_or(Refusal::VersionUnknown)
    }
}

/// Judges what somebody asks for.
pub fn decide(state: &PackageState, context: &Context<'_>, command: &Command) -> Decision {
    let result = judge(state, context, command);
    Decision {
        event: event_facts::of_command(state, context, command, &result),
        result,
    }
}

/// Judges that package bytes no longer match. Needs nobody.
pub fn quarantine(state: &PackageState, context: &Context<'_>, found: &Quarantine) -> Decision {
    let result = withdrawing::quarantine(state, context, found);
    Decision {
        event: event_facts::of_quarantine(state, context, found, &result),
        result,
    }
}

fn judge(
    state: &PackageState,
    context: &Context<'_>,
    command: &Command,
) -> Result<Vec<Change>, Refusal> {
    check_actor(state, context, command)?;
    match &command.request {
        Request::Install(new) => reviewing::install(state, context, new),
        Request::Review(new) => reviewing::review(state, context, &command.actor, new),
        Request::Ask(new) => giving::ask(state, context, &command.actor, new),
        Request::Approve(answer) => giving::approve(state, context, &command.actor, answer),
        Request::Deny(decline) => giving::deny(state, &command.actor, decline),
        Request::Activate(using) => giving::activate(state, context, using),
        Request::Update(using) => giving::update(state, context, using),
        Request::Resume(using) => giving::resume(state, context, using),
        Request::Rollback(using) => giving::rollback(state, context, using),
        Request::Pause(withdrawal) => withdrawing::pause(state, withdrawal),
        Request::Revoke(revocation) => {
            withdrawing::revoke(state, context, &command.actor, revocation)
        }
        Request::Uninstall(withdrawal) => withdrawing::uninstall(state, withdrawal),
    }
}

/// The session is alive and the actor's. It is the package's owner's too, except that another
/// person may answer where the deployment asks for two.
fn check_actor(
    state: &PackageState,
    context: &Context<'_>,
    command: &Command,
) -> Result<(), Refusal> {
    let answers = matches!(command.request, Request::Approve(_) | Request::Deny(_));
    let authority = if answers && context.policy.two_people {
        &command.actor.owner
    } else {
        &state.owner
    };
    let session = context
        .session
        .filter(|session| session.id == command.actor.session);
    Session::check_live_for(session, authority, context.root, context.now)?;
    if command.actor.owner == *authority {
        Ok(())
    } else {
        Err(crate::authority::SessionRefusal::OtherOwner.into())
    }
}

/// The Goal is the package's owner's and current, and the pointer is where the actor saw it.
fn check_named(state: &PackageState, context: &Context<'_>, named: &Named) -> Result<(), Refusal> {
    Goal::check_current(context.goal, &named.goal, &state.owner, named.goal_revision)?;
    check_generation(state, Some(named.generation))
}

fn check_generation(state: &PackageState, named: Option<Generation>) -> Result<(), Refusal> {
    let current = state.pointer.generation;
    match named {
        Some(named) if named != current => Err(Refusal::GenerationMoved { named, current }),
        _ => Ok(()),
    }
}

fn check_not_denied(tombstones: &[Tombstone], identity: &VersionIdentity) -> Result<(), Refusal> {
    match denial(tombstones, identity) {
        Some(denial) => Err(Refusal::Tombstoned { denial }),
        None => Ok(()),
    }
}
