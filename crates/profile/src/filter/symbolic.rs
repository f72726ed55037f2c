//! The walk over every path of a program, and the comparison with the policy.
//!
//! The program's diagram is made from its instructions alone, backwards: what
//! an instruction comes to is known once all that it can lead to is known, and
//! jumps only go forwards. Each comparison becomes a choice between the two
//! things that follow it, so every path is in the result, with exactly the
//! calls that take it. The policy's diagram is made from its rules, with
//! arithmetic on whole arguments instead of halves. The two share nothing but
//! the diagrams' own operations.

use std::collections::HashMap;

use super::Filter;
use super::diagram::{Diagrams, Node, NodeId, Word};
use super::instruction::{ARCHITECTURE_OFFSET, ARGUMENTS_OFFSET, NUMBER_OFFSET, Operation, Test};
use super::verify::{Loaded, reached, targets};
use crate::policy::{
    AUDIT_ARCH_X86_64, Action, Call, Comparison, Condition, Policy, Rule, Width, X32_SYSCALL_BIT,
};

/// A call on which a program and a policy, or two policies, do not agree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "call {} of architecture {:#x} with arguments {:x?}: {found} instead of {expected}",
    call.number, call.architecture, call.arguments
)]
pub struct Disagreement {
    /// The call; bits that do not matter are 0.
    pub call: Call,
    /// What the program does.
    pub found: Action,
    /// What the policy says.
    pub expected: Action,
}

/// The function from calls to answers that the walk over a program found.
#[derive(Debug)]
pub struct Walk {
    diagrams: Diagrams,
    root: NodeId,
}

impl Walk {
    /// Walks over every path of a program.
    pub fn of_filter(filter: &Filter) -> Self {
        let mut diagrams = Diagrams::new();
        let root = of_filter(&mut diagrams, filter);
        Self { diagrams, root }
    }

    /// What the walk says about a call, without running anything.
    pub fn answer(&self, call: &Call) -> Action {
        action_at(&self.diagrams, self.root, call)
    }
}

pub(super) fn prove(filter: &Filter, policy: &Policy) -> Result<(), Disagreement> {
    let mut diagrams = Diagrams::new();
    let found = of_filter(&mut diagrams, filter);
    let expected = of_policy(&mut diagrams, policy);
    compare(&diagrams, found, expected)
}

/// Whether two policies say the same about every call; the error is one about
/// which they do not.
pub fn equal_policies(found: &Policy, expected: &Policy) -> Result<(), Disagreement> {
    let mut diagrams = Diagrams::new();
    let found = of_policy(&mut diagrams, found);
    let expected = of_policy(&mut diagrams, expected);
    compare(&diagrams, found, expected)
}

fn compare(diagrams: &Diagrams, found: NodeId, expected: NodeId) -> Result<(), Disagreement> {
    let Some(call) = diagrams.difference(found, expected) else {
        return Ok(());
    };
    Err(Disagreement {
        call,
        found: action_at(diagrams, found, &call),
        expected: action_at(diagrams, expected, &call),
    })
}

fn action_at(diagrams: &Diagrams, root: NodeId, call: &Call) -> Action {
    match diagrams.follow(root, call) {
        Node::Action(action) => action,
        _ => Action::KillProcess,
    }
}

/// The diagram of a program.
pub(super) fn of_filter(diagrams: &mut Diagrams, filter: &Filter) -> NodeId {
    let kill = diagrams.action(Action::KillProcess);
    // A Filter is verified, so neither this nor a lookup below can fail; were
    // it otherwise, the walk would say "kill" and differ from the policy.
    let Ok(reached) = reached(filter.instructions()) else {
        return kill;
    };
    let mut known: HashMap<(usize, Option<Loaded>), NodeId> = HashMap::new();
    for (at, states) in reached.iter().enumerate().rev() {
        let Some(operation) = filter.instructions().get(at).and_then(|it| it.operation()) else {
            return kill;
        };
        let after =
            |target: usize, accumulator| known.get(&(target, accumulator)).copied().unwrap_or(kill);
        let mut found = Vec::with_capacity(states.len());
        for &accumulator in states {
            let followers = targets(operation, at);
            let node = match (operation, followers.as_slice()) {
                (Operation::Return(action), _) => diagrams.action(action),
                (Operation::Load(offset), &[next]) => after(
                    next,
                    Some(Loaded {
                        offset,
                        mask: u32::MAX,
                    }),
                ),
                (Operation::And(mask), &[next]) => after(
                    next,
                    accumulator.map(|loaded| Loaded {
                        mask: loaded.mask & mask,
                        ..loaded
                    }),
                ),
                (Operation::Skip(_), &[next]) => after(next, accumulator),
                (Operation::Branch { test, operand, .. }, &[then, otherwise]) => {
                    let (then, otherwise) =
                        (after(then, accumulator), after(otherwise, accumulator));
                    match accumulator {
                        Some(Loaded { offset, mask }) => {
                            let condition = diagrams.test(word_at(offset), mask, test, operand);
                            diagrams.select(condition, then, otherwise)
                        }
                        None => kill,
                    }
                }
                _ => kill,
            };
            found.push(((at, accumulator), node));
        }
        known.extend(found);
    }
    known.get(&(0, None)).copied().unwrap_or(kill)
}

/// The diagram's word for an offset in `struct seccomp_data`.
fn word_at(offset: u32) -> Word {
    match offset {
        NUMBER_OFFSET => Word::NUMBER,
        ARCHITECTURE_OFFSET => Word::ARCHITECTURE,
        _ => {
            let at = offset.saturating_sub(ARGUMENTS_OFFSET);
            let argument = u8::try_from(at / 8).unwrap_or(u8::MAX);
            if at.is_multiple_of(8) {
                Word::low(argument)
            } else {
                Word::high(argument)
            }
        }
    }
}

/// The diagram of a policy.
pub(super) fn of_policy(diagrams: &mut Diagrams, policy: &Policy) -> NodeId {
    let kill = diagrams.action(Action::KillProcess);
    let mut node = kill;
    // The first rule that matches decides: the last one is laid down first.
    for rule in policy.rules().iter().rev() {
        let matches = of_rule(diagrams, rule);
        let action = diagrams.action(rule.action());
        node = diagrams.select(matches, action, node);
    }
    let x32 = diagrams.test(Word::NUMBER, u32::MAX, Test::AnyBit, X32_SYSCALL_BIT);
    node = diagrams.select(x32, kill, node);
    let native = diagrams.test(Word::ARCHITECTURE, u32::MAX, Test::Equal, AUDIT_ARCH_X86_64);
    diagrams.select(native, node, kill)
}

fn of_rule(diagrams: &mut Diagrams, rule: &Rule) -> NodeId {
    let number = rule.syscall().number;
    let mut matches = diagrams.test(Word::NUMBER, u32::MAX, Test::Equal, number);
    for condition in rule.conditions() {
        let holds = of_condition(diagrams, condition);
        matches = diagrams.both(matches, holds);
    }
    matches
}

/// A condition on one argument, high half and low half.
fn of_condition(diagrams: &mut Diagrams, condition: &Condition) -> NodeId {
    let argument = Argument {
        index: condition.index,
        width: condition.width,
    };
    match condition.comparison {
        Comparison::Equal(value) => argument.bits_are(diagrams, u64::MAX, value),
        Comparison::NotEqual(value) => {
            let equal = argument.bits_are(diagrams, u64::MAX, value);
            diagrams.not(equal)
        }
        Comparison::Above(value) => argument.above(diagrams, value),
        Comparison::AtMost(value) => {
            let above = argument.above(diagrams, value);
            diagrams.not(above)
        }
        Comparison::AtLeast(value) => argument.at_least(diagrams, value),
        Comparison::Below(value) => {
            let at_least = argument.at_least(diagrams, value);
            diagrams.not(at_least)
        }
        Comparison::MaskedEqual { mask, value } => argument.bits_are(diagrams, mask, value),
        Comparison::Within(value) => argument.bits_are(diagrams, !value, 0),
    }
}

#[derive(Clone, Copy)]
struct Argument {
    index: u8,
    width: Width,
}

fn halves(value: u64) -> (u32, u32) {
    let half = |bits: u64| u32::try_from(bits & 0xffff_ffff).unwrap_or_default();
    (half(value >> 32), half(value))
}

impl Argument {
    fn bits_are(self, diagrams: &mut Diagrams, mask: u64, value: u64) -> NodeId {
        let ((mask_high, mask_low), (high, low)) = (halves(mask), halves(value));
        let low = diagrams.test(Word::low(self.index), mask_low, Test::Equal, low & mask_low);
        if self.width == Width::Dword {
            return low;
        }
        let high = diagrams.test(
            Word::high(self.index),
            mask_high,
            Test::Equal,
            high & mask_high,
        );
        diagrams.both(high, low)
    }

    fn above(self, diagrams: &mut Diagrams, value: u64) -> NodeId {
        self.magnitude(diagrams, Test::Above, value)
    }

    fn at_least(self, diagrams: &mut Diagrams, value: u64) -> NodeId {
        self.magnitude(diagrams, Test::AtLeast, value)
    }

    /// Greater in the high half; or equal there, and so in the low half.
    fn magnitude(self, diagrams: &mut Diagrams, test: Test, value: u64) -> NodeId {
        let (high, low) = halves(value);
        let by_low = diagrams.test(Word::low(self.index), u32::MAX, test, low);
        if self.width == Width::Dword {
            return by_low;
        }
        let greater = diagrams.test(Word::high(self.index), u32::MAX, Test::Above, high);
        let equal = diagrams.test(Word::high(self.index), u32::MAX, Test::Equal, high);
        let equal_and_low = diagrams.both(equal, by_low);
        diagrams.either(greater, equal_and_low)
    }
}
