//! The parts of a policy: actions, conditions and rules.
//!
//! A value of these types is checked: a rule names a call that exists, compares
//! each argument at the width at which the kernel reads it, and says why it is
//! there. What a rule means is [`Rule::matches`], plain arithmetic on 64-bit
//! values; the compiler and the proofs are measured against it.

use std::fmt;

use super::call::Call;
use super::errno::Errno;
use super::signatures::{Width, parameters_of};
use super::syscalls::Syscall;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// The kernel carries it out.
    Allow,
    /// The kernel does nothing and answers with this error.
    Errno(Errno),
    /// The whole process dies by SIGSYS, which it cannot catch or block.
    KillProcess,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow => f.pad("allow"),
            Self::Errno(errno) => f.pad(errno.name()),
            Self::KillProcess => f.pad("kill_process"),
        }
    }
}

/// How an argument is compared. Values hold only bits of the argument's width;
/// all comparisons are unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Equal to the value.
    Equal(u64),
    /// Any value but this.
    NotEqual(u64),
    /// Less than the value.
    Below(u64),
    /// Less than the value or equal to it.
    AtMost(u64),
    /// Greater than the value.
    Above(u64),
    /// Greater than the value or equal to it.
    AtLeast(u64),
    /// The bits of the mask are exactly those of the value.
    MaskedEqual {
        /// The bits that are compared.
        mask: u64,
        /// What they must be; no bit outside the mask.
        value: u64,
    },
    /// No bit is set but bits of the value.
    Within(u64),
}

impl Comparison {
    /// Whether `argument`, already cut to its width, satisfies the comparison.
    pub const fn holds(self, argument: u64) -> bool {
        match self {
            Self::Equal(value) => argument == value,
            Self::NotEqual(value) => argument != value,
            Self::Below(value) => argument < value,
            Self::AtMost(value) => argument <= value,
            Self::Above(value) => argument > value,
            Self::AtLeast(value) => argument >= value,
            Self::MaskedEqual { mask, value } => argument & mask == value,
            Self::Within(value) => argument & !value == 0,
        }
    }

    /// The largest value that it holds, to check against a width.
    const fn widest(self) -> u64 {
        match self {
            Self::Equal(value)
            | Self::NotEqual(value)
            | Self::Below(value)
            | Self::AtMost(value)
            | Self::Above(value)
            | Self::AtLeast(value)
            | Self::Within(value) => value,
            Self::MaskedEqual { mask, value } => mask | value,
        }
    }

    /// Whether it is true of every value of that width, or of none: then it is
    /// a mistake, not a condition.
    const fn is_constant(self, width: Width) -> bool {
        match self {
            Self::Equal(_) | Self::NotEqual(_) => false,
            Self::Below(value) | Self::AtLeast(value) => value == 0,
            Self::AtMost(value) | Self::Above(value) | Self::Within(value) => value == width.mask(),
            Self::MaskedEqual { mask, value } => mask == 0 || value & !mask != 0,
        }
    }
}

/// A condition on one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Condition {
    /// Which argument, from 0.
    pub index: u8,
    /// How many of its bits the kernel reads.
    pub width: Width,
    /// What must be true of them.
    pub comparison: Comparison,
}

impl Condition {
    /// Whether the call's argument satisfies the condition.
    pub fn holds(&self, call: &Call) -> bool {
        self.comparison
            .holds(call.argument(self.index) & self.width.mask())
    }
}

/// Why a rule is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A rule's name is its handle in tests and in the attack suite.
    #[error("an id of lower-case letters, digits, hyphens and underscores is wanted")]
    Id,
    /// A rule that nobody can explain is not reviewed.
    #[error("a reason is wanted, of one line and at most 400 characters")]
    Reason,
    /// To kill is the default already.
    #[error("a rule that kills needs conditions, since everything else is killed anyway")]
    UnconditionalKill,
    /// The width of no argument is known.
    #[error("the parameters of {syscall} are not in the table of signatures")]
    NoSignature {
        /// The call that was named.
        syscall: &'static str,
    },
    /// More arguments than the call has.
    #[error("{syscall} has no argument {index} that can be compared")]
    NoSuchArgument {
        /// The call that was named.
        syscall: &'static str,
        /// The index that was given.
        index: u8,
    },
    /// Cases G01, G02: the comparison and the kernel would look at other bits.
    #[error("the kernel reads argument {index} of {syscall} as a {}", kernel.name())]
    Width {
        /// The call that was named.
        syscall: &'static str,
        /// The argument's index.
        index: u8,
        /// What the kernel reads.
        kernel: Width,
    },
    /// A 64-bit value for a 32-bit argument.
    #[error("the value for argument {index} has bits that the kernel does not read")]
    ValueTooWide {
        /// The argument's index.
        index: u8,
    },
    /// True of every value, or of none.
    #[error("the condition on argument {index} does not depend on it")]
    Constant {
        /// The argument's index.
        index: u8,
    },
    /// The compiler's chains have a bounded length.
    #[error("more than {CONDITIONS_MAX} conditions in one rule")]
    TooManyConditions,
}

/// How many conditions one rule may have: two for each argument.
pub const CONDITIONS_MAX: usize = 12;

/// The longest reason, in characters.
const REASON_CHARACTERS_MAX: usize = 400;

/// One line of the policy: which calls, what happens to them, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    id: String,
    syscall: Syscall,
    action: Action,
    conditions: Vec<Condition>,
    reason: String,
}

impl Rule {
    /// A checked rule.
    pub fn new(
        id: &str,
        syscall: Syscall,
        action: Action,
        conditions: Vec<Condition>,
        reason: &str,
    ) -> Result<Self, RuleError> {
        let id_grammar = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
        if id.is_empty() || id.len() > 64 || !id.bytes().all(id_grammar) {
            return Err(RuleError::Id);
        }
        if !is_reason(reason) {
            return Err(RuleError::Reason);
        }
        if action == Action::KillProcess && conditions.is_empty() {
            return Err(RuleError::UnconditionalKill);
        }
        if conditions.len() > CONDITIONS_MAX {
            return Err(RuleError::TooManyConditions);
        }
        for condition in &conditions {
            check_condition(syscall.name, condition)?;
        }
        Ok(Self {
            id: id.to_owned(),
            syscall,
            action,
            conditions,
            reason: reason.to_owned(),
        })
    }

    /// Its handle, unique in the policy.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The call that it is about.
    pub fn syscall(&self) -> Syscall {
        self.syscall
    }

    /// What happens to a call that matches.
    pub fn action(&self) -> Action {
        self.action
    }

    /// What must be true of the arguments; all of them together.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// Why the rule is there: what needs it.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether the rule is about this native call and all conditions hold.
    pub fn matches(&self, call: &Call) -> bool {
        self.syscall.number == call.number
            && self
                .conditions
                .iter()
                .all(|condition| condition.holds(call))
    }
}

/// One line of visible text.
pub(super) fn is_reason(text: &str) -> bool {
    !text.trim().is_empty()
        && text.chars().count() <= REASON_CHARACTERS_MAX
        && !text.chars().any(char::is_control)
}

fn check_condition(syscall: &'static str, condition: &Condition) -> Result<(), RuleError> {
    let index = condition.index;
    let parameters = parameters_of(syscall).ok_or(RuleError::NoSignature { syscall })?;
    let parameter = parameters
        .get(usize::from(index))
        .ok_or(RuleError::NoSuchArgument { syscall, index })?;
    if parameter.width != condition.width {
        return Err(RuleError::Width {
            syscall,
            index,
            kernel: parameter.width,
        });
    }
    if condition.comparison.widest() & !condition.width.mask() != 0 {
        return Err(RuleError::ValueTooWide { index });
    }
    if condition.comparison.is_constant(condition.width) {
        return Err(RuleError::Constant { index });
    }
    Ok(())
}
