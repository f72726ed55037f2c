//! The binding: the one list of facts to which a job is bound (DESIGN section 3, ADR-013).
//!
//! The list is written once, below. Admission, claim, arming, release, adoption and reading all
//! compare two bindings with [`Binding::check_against`], which names the first field that differs.
//! Comparing some of the fields by hand elsewhere is a fault.

use std::fmt;

use lazaret_contract::digest::Sha256Digest;

use crate::ids::{
    ApprovalId, AttemptId, Capability, GoalId, LeaseId, OutputSlot, OwnerId, PackageId,
    PackageVersion, ProfileId, ReviewId, RootId, SessionId, TaskId,
};
use crate::numbers::{Epoch, Fence, Generation, Priority, Revision};
use crate::time::Deadline;

/// How a field reads in receipts and messages.
trait FieldText {
    fn field_text(&self) -> Option<String>;
}

macro_rules! always_there {
    ($($type:ty),+) => {$(
        impl FieldText for $type {
            fn field_text(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )+};
}

always_there!(
    OwnerId,
    RootId,
    Epoch,
    SessionId,
    GoalId,
    Revision,
    TaskId,
    Capability,
    PackageId,
    PackageVersion,
    Sha256Digest,
    ReviewId,
    ApprovalId,
    ProfileId,
    Priority
);

impl<T: fmt::Display> FieldText for Option<T> {
    fn field_text(&self) -> Option<String> {
        self.as_ref().map(ToString::to_string)
    }
}

macro_rules! binding {
    ($($(#[$doc:meta])* $field:ident, $variant:ident: $type:ty;)+) => {
        /// What a job is bound to. Fields that are optional do not exist before the claim.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Binding {
            $($(#[$doc])* pub $field: $type,)+
        }

        /// A field of the [`Binding`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum BindingField {
            $($(#[$doc])* $variant,)+
        }

        impl BindingField {
            /// Every field, in the order of comparison.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The field's name.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($field),)+
                }
            }
        }

        impl Binding {
            /// The first field in which the two differ, if they do.
            pub fn first_difference(&self, other: &Self) -> Option<BindingField> {
                $(if self.$field != other.$field {
                    return Some(BindingField::$variant);
                })+
                None
            }

            /// Every field with its text; none for a field that does not exist yet.
            pub fn entries(&self) -> Vec<(BindingField, Option<String>)> {
                vec![$((BindingField::$variant, self.$field.field_text()),)+]
            }
        }
    };
}

binding! {
    /// The principal whose work it is.
    owner, Owner: OwnerId;
    /// The deployment's Root.
    root, Root: RootId;
    /// The Root's epoch at admission.
    root_epoch, RootEpoch: Epoch;
    /// The session that asked.
    session, Session: SessionId;
    /// What the work is for.
    goal, Goal: GoalId;
    /// The exact revision of the Goal.
    goal_revision, GoalRevision: Revision;
    /// The task.
    task, Task: TaskId;
    /// The attempt at it.
    attempt, Attempt: Option<AttemptId>;
    /// The right to act on the attempt.
    lease, Lease: Option<LeaseId>;
    /// The number of that right.
    fence, Fence: Option<Fence>;
    /// The one stable capability identity (ADR-013).
    capability, Capability: Capability;
    /// The package.
    package, Package: PackageId;
    /// Its version.
    package_version, PackageVersion: PackageVersion;
    /// Digest of the exact package bytes.
    content, Content: Sha256Digest;
    /// Digest of the declared permissions.
    authority, Authority: Sha256Digest;
    /// Digest over profile, closure and policy.
    dependency, Dependency: Sha256Digest;
    /// The review that stands behind the version.
    review, Review: ReviewId;
    /// The approval by which the version came into force.
    approval, Approval: ApprovalId;
    /// The pointer's generation at the claim; at release it is still that one.
    pointer_generation, PointerGeneration: Option<Generation>;
    /// The way of isolating.
    profile, Profile: ProfileId;
    /// The closure's digest.
    closure, Closure: Sha256Digest;
    /// The filter policy's digest.
    policy, Policy: Sha256Digest;
    /// The input's digest.
    input, Input: Sha256Digest;
    /// The one reserved place for output.
    output_slot, OutputSlot: Option<OutputSlot>;
    /// The task's priority.
    priority, Priority: Priority;
    /// The first absolute deadline; never renewed.
    first_deadline, FirstDeadline: Option<Deadline>;
}

impl fmt::Display for BindingField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Where a job stands when its binding is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// A request becomes a task.
    Admission,
    /// An attempt begins.
    Claim,
    /// The warden may start bwrap.
    Arming,
    /// Package code may run.
    Release,
    /// Output becomes the task's result.
    Adoption,
    /// Output is handed out.
    Reading,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Self; 6] = [
        Self::Admission,
        Self::Claim,
        Self::Arming,
        Self::Release,
        Self::Adoption,
        Self::Reading,
    ];

    /// The stage's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admission => "admission",
            Self::Claim => "claim",
            Self::Arming => "arming",
            Self::Release => "release",
            Self::Adoption => "adoption",
            Self::Reading => "reading",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a presented binding does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BindingRefusal {
    /// The presented value differs from the stored one.
    #[error("at {stage} the binding differs in {field}")]
    Differs {
        /// Where it was checked.
        stage: Stage,
        /// The first field that differs.
        field: BindingField,
    },
    /// A field that must exist at this stage does not.
    #[error("at {stage} the binding lacks {field}")]
    Lacks {
        /// Where it was checked.
        stage: Stage,
        /// The first field that is missing.
        field: BindingField,
    },
}

impl BindingRefusal {
    /// A stable code for receipts and interfaces.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Differs { .. } => "binding_differs",
            Self::Lacks { .. } => "binding_incomplete",
        }
    }

    /// The field in question.
    pub const fn field(self) -> BindingField {
        match self {
            Self::Differs { field, .. } | Self::Lacks { field, .. } => field,
        }
    }
}

impl Binding {
    /// Whether every field that must exist at `stage` does. Only admission may lack some.
    ///
    /// # Errors
    /// The first field that is missing.
    pub fn check_complete(&self, stage: Stage) -> Result<(), BindingRefusal> {
        if stage == Stage::Admission {
            return Ok(());
        }
        match self.entries().into_iter().find(|(_, text)| text.is_none()) {
            Some((field, _)) => Err(BindingRefusal::Lacks { stage, field }),
            None => Ok(()),
        }
    }

    /// Whether this binding, as presented, is complete and equal to the `stored` one.
    ///
    /// # Errors
    /// The first field that is missing, else the first that differs.
    pub fn check_against(&self, stored: &Self, stage: Stage) -> Result<(), BindingRefusal> {
        self.check_complete(stage)?;
        match self.first_difference(stored) {
            Some(field) => Err(BindingRefusal::Differs { stage, field }),
            None => Ok(()),
        }
    }
}
