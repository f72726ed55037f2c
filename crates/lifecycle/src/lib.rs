//! The package state machine of a deployment, and the one list of facts that binds a job
//! (DESIGN sections 3 and 5).
//!
//! Everything here is a function of values: rows come in, changes and facts go out. The board
//! keeps the rows, the engine reads clocks and files, receipts are made from the [`Event`]s.
//!
//! This crate does no I/O. It must never read a clock, open a file, draw a random number, or know
//! how rows are stored; ids, times and digests are given to it.

#![forbid(unsafe_code)]

mod approval;
mod authority;
mod binding;
mod command;
mod event;
mod execution;
mod ids;
mod machine;
mod numbers;
mod package;
mod refusal;
mod review;
mod standing;
mod time;
mod tombstone;

pub use approval::{Approval, ApprovalState, GivingAction, Grant};
pub use authority::{Goal, GoalRefusal, Root, Session, SessionEnd, SessionRefusal};
pub use binding::{Binding, BindingField, BindingRefusal, Stage};
pub use command::{
    Actor, Answer, Command, Context, Decline, FixedIdentity, Named, NewApproval, NewReview,
    NewVersion, Policy, Quarantine, Request, Revocation, Use, Withdrawal,
};
pub use event::{Action, Change, Decision, Event, Outcome};
pub use execution::{ExecutionPath, ExecutionRefusal, check_execution};
pub use ids::{
    ApprovalId, ArtifactId, AttemptId, BoardId, Capability, GoalId, IdempotencyKey, InstanceId,
    LeaseId, NameError, OutputSlot, OwnerId, PackageId, PackageVersion, ProfileId, Reason,
    ReceiptId, ReviewId, RootId, SessionId, TaskId, TombstoneId,
};
pub use machine::{PackageState, decide, quarantine, withdraw_denied};
pub use numbers::{Epoch, Fence, Generation, Priority, Revision};
pub use package::{
    Pointer, Provenance, RuntimePin, Standing, Target, Version, VersionIdentity, VersionState,
};
pub use refusal::Refusal;
pub use review::{Difference, Review, ReviewKind};
pub use standing::{AuthorityRefusal, Canonical, Fate, first_refusal, reading_refusals};
pub use time::{BOOTTIME_NS_MAX, BootId, Deadline, Now};
pub use tombstone::{Denial, DeniedBy, Tombstone, TombstoneCause, denial};
