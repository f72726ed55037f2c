//! What somebody asks of the machine, and the facts that the machine is given with it.

use lazaret_contract::digest::Sha256Digest;

use crate::approval::GivingAction;
use crate::authority::{Goal, Root, Session};
use crate::ids::{
    ApprovalId, Capability, GoalId, OwnerId, PackageId, Reason, ReviewId, SessionId, TombstoneId,
};
use crate::numbers::{Generation, Revision};
use crate::package::{Provenance, RuntimePin, VersionIdentity};
use crate::review::ReviewKind;
use crate::time::Now;
use crate::tombstone::Tombstone;

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The principal.
    pub owner: OwnerId,
    /// The session in which they ask.
    pub session: SessionId,
}

/// What every transition that gives authority names (DESIGN section 5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The Goal for which it is.
    pub goal: GoalId,
    /// That Goal's revision.
    pub goal_revision: Revision,
    /// The pointer's generation that the actor has seen.
    pub generation: Generation,
}

/// Inspected bytes were copied into the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVersion {
    /// Goal and generation.
    pub named: Named,
    /// What was copied.
    pub identity: VersionIdentity,
    /// What it runs with.
    pub runtime: RuntimePin,
    /// The derived capability.
    pub capability: Capability,
    /// Where the bytes come from.
    pub provenance: Provenance,
}

/// Somebody has reviewed a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReview {
    /// Goal and generation.
    pub named: Named,
    /// The review's id.
    pub id: ReviewId,
    /// The digests that were shown.
    pub shown: VersionIdentity,
    /// What was looked at.
    pub kind: ReviewKind,
    /// That nobody signed the bytes was acknowledged.
    pub unsigned_acknowledged: bool,
}

/// Somebody asks for permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewApproval {
    /// Goal and generation.
    pub named: Named,
    /// The approval's id.
    pub id: ApprovalId,
    /// For what.
    pub action: GivingAction,
    /// The digests that were shown.
    pub shown: VersionIdentity,
    /// The review that stands behind it.
    pub review: ReviewId,
    /// How long it may wait for an answer, in milliseconds.
    pub answer_ms: u64,
}

/// Somebody says yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Goal and generation.
    pub named: Named,
    /// The approval.
    pub approval: ApprovalId,
    /// The digests that were shown.
    pub shown: VersionIdentity,
    /// How long the yes holds, in milliseconds.
    pub lifetime_ms: u64,
    /// That the permissions become wider was acknowledged.
    pub wider_acknowledged: bool,
}

/// Somebody says no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decline {
    /// The approval.
    pub approval: ApprovalId,
    /// Why.
    pub reason: Reason,
}

/// An approval is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// Goal and generation.
    pub named: Named,
    /// The approval.
    pub approval: ApprovalId,
    /// The version that is meant.
    pub content: Sha256Digest,
}

/// Authority is taken away from a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdrawal {
    /// The pointer's generation that the actor has seen; none takes it as it is, so that a
    /// concurrent change cannot hold a withdrawal up.
    pub generation: Option<Generation>,
    /// Why.
    pub reason: Reason,
}

/// A version is never to run again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    /// The pointer's generation that the actor has seen, or none.
    pub generation: Option<Generation>,
    /// The version.
    pub content: Sha256Digest,
    /// The id of the tombstone that it gets.
    pub tombstone: TombstoneId,
    /// Why.
    pub reason: Reason,
}

/// Package bytes no longer match their digest. Needs nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantine {
    /// The version whose bytes were looked for.
    pub content: Sha256Digest,
    /// The digest of what was there instead; none if nothing could be read.
    pub observed: Option<Sha256Digest>,
    /// The id of the tombstone that it gets.
    pub tombstone: TombstoneId,
    /// What was seen.
    pub reason: Reason,
}

/// One of the transitions that people ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Inspected bytes were copied into the store.
    Install(NewVersion),
    /// A version was reviewed.
    Review(NewReview),
    /// An approval is asked for.
    Ask(NewApproval),
    /// An approval is granted.
    Approve(Answer),
    /// An approval is denied.
    Deny(Decline),
    /// A first version comes into force.
    Activate(Use),
    /// Another version comes into force.
    Update(Use),
    /// A paused version goes on.
    Resume(Use),
    /// A prior version comes into force after a quarantine.
    Rollback(Use),
    /// Nothing new may start.
    Pause(Withdrawal),
    /// A version is never to run again.
    Revoke(Revocation),
    /// The package's authority and reads end.
    Uninstall(Withdrawal),
}

/// A request with who makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Who.
    pub actor: Actor,
    /// What.
    pub request: Request,
}

/// A package id of which the deployment knows exactly one content (ADR-013).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedIdentity {
    /// The reserved id.
    pub package: PackageId,
    /// The only bytes that may bear it.
    pub content: Sha256Digest,
    /// Its own capability, which no other package may have.
    pub capability: Capability,
}

/// What a deployment asks for. The identities are part of the program, the rest is a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Who grants an approval must not be who asked for it.
    pub two_people: bool,
    /// Longest wait for an answer, in milliseconds.
    pub answer_ms_max: u64,
    /// Longest life of a granted approval, in milliseconds.
    pub lifetime_ms_max: u64,
    /// Reserved package ids.
    pub fixed: Vec<FixedIdentity>,
}

impl Policy {
    /// The reservation of `package`, if there is one.
    pub fn fixed_for(&self, package: &PackageId) -> Option<&FixedIdentity> {
        self.fixed.iter().find(|fixed| fixed.package == *package)
    }
}

/// The canonical rows and the clock with which a command is judged.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The clocks.
    pub now: &'a Now,
    /// The Root.
    pub root: &'a Root,
    /// The actor's session, if its id is known.
    pub session: Option<&'a Session>,
    /// The Goal that the command names, if it is known.
    pub goal: Option<&'a Goal>,
    /// Every tombstone that could deny a version of the package.
    pub tombstones: &'a [Tombstone],
    /// What the deployment asks for.
    pub policy: &'a Policy,
}
