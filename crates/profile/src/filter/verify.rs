//! What makes a list of instructions a filter of ours, and its interpreter.
//!
//! The kernel has its own verifier; this one is stricter, because here a
//! strange program is not merely useless but a sign that the bytes are not what
//! the build made. It demands: known operations only, jumps that stay inside,
//! loads of the number, the architecture or an argument, nothing that cannot be
//! reached, and no comparison before a load.

use std::collections::BTreeSet;

use super::instruction::{
    ARCHITECTURE_OFFSET, ARGUMENTS_OFFSET, DATA_BYTES, Instruction, NUMBER_OFFSET, Operation, Test,
};
use crate::policy::{Action, Call};

/// `BPF_MAXINSNS`: the kernel installs no longer program.
pub const INSTRUCTIONS_MAX: usize = 4096;

/// Why some bytes are not a filter of ours, and at which instruction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("instruction {at}: {kind}")]
pub struct VerifyError {
    /// The place, from 0.
    pub at: usize,
    /// What is wrong there.
    pub kind: VerifyErrorKind,
}

/// What is wrong with an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VerifyErrorKind {
    /// The last instruction is cut off.
    #[error("the bytes end in the middle of it")]
    Truncated,
    /// No program at all, or more than the kernel takes.
    #[error("a program of 1 to {INSTRUCTIONS_MAX} instructions is wanted")]
    Length,
    /// Not one of the operations that our filters consist of.
    #[error("an operation that no filter of ours contains")]
    Operation,
    /// A load from elsewhere than number, architecture and arguments.
    #[error("a load from a place that no filter of ours looks at")]
    Load,
    /// A jump to behind the end.
    #[error("a jump out of the program")]
    Jump,
    /// The last instruction does not return.
    #[error("the program runs out at its end")]
    End,
    /// No path leads there.
    #[error("no path leads to it")]
    Unreachable,
    /// The accumulator is used before anything was loaded.
    #[error("it uses the accumulator before a load")]
    Unset,
}

/// What the accumulator holds: a masked word of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Loaded {
    /// Its offset in `struct seccomp_data`.
    pub(super) offset: u32,
    /// The bits that were kept.
    pub(super) mask: u32,
}

/// What the accumulator can hold before each instruction.
pub(super) type Reached = Vec<BTreeSet<Option<Loaded>>>;

pub(super) fn verify(instructions: &[Instruction]) -> Result<(), VerifyError> {
    reached(instructions).map(|_| ())
}

/// Follows every path forwards. Jumps only go forwards, so one pass is enough.
pub(super) fn reached(instructions: &[Instruction]) -> Result<Reached, VerifyError> {
    let count = instructions.len();
    let fail = |at, kind| Err(VerifyError { at, kind });
    if count == 0 || count > INSTRUCTIONS_MAX {
        return fail(count, VerifyErrorKind::Length);
    }
    let mut reached: Reached = vec![BTreeSet::new(); count];
    if let Some(first) = reached.first_mut() {
        first.insert(None);
    }
    for (at, instruction) in instructions.iter().enumerate() {
        let Some(operation) = instruction.operation() else {
            return fail(at, VerifyErrorKind::Operation);
        };
        let before = reached.get(at).cloned().unwrap_or_default();
        if before.is_empty() {
            return fail(at, VerifyErrorKind::Unreachable);
        }
        for accumulator in before {
            let after = step(operation, accumulator).map_err(|kind| VerifyError { at, kind })?;
            for target in targets(operation, at) {
                let kind = if target == count
                    && matches!(operation, Operation::Load(_) | Operation::And(_))
                {
                    VerifyErrorKind::End
                } else {
                    VerifyErrorKind::Jump
                };
                match reached.get_mut(target) {
                    Some(states) => states.insert(after),
                    None => return fail(at, kind),
                };
            }
        }
    }
    Ok(reached)
}

/// The accumulator after an operation.
fn step(
    operation: Operation,
    accumulator: Option<Loaded>,
) -> Result<Option<Loaded>, VerifyErrorKind> {
    match operation {
        Operation::Load(offset) if is_loadable(offset) => Ok(Some(Loaded {
            offset,
            mask: u32::MAX,
        })),
        Operation::Load(_) => Err(VerifyErrorKind::Load),
        Operation::And(mask) => accumulator
            .map(|loaded| {
                Some(Loaded {
                    mask: loaded.mask & mask,
                    ..loaded
                })
            })
            .ok_or(VerifyErrorKind::Unset),
        Operation::Branch { .. } if accumulator.is_none() => Err(VerifyErrorKind::Unset),
        Operation::Branch { .. } | Operation::Skip(_) | Operation::Return(_) => Ok(accumulator),
    }
}

/// Where an operation at `at` can go on.
pub(super) fn targets(operation: Operation, at: usize) -> Vec<usize> {
    match operation {
        Operation::Load(_) | Operation::And(_) => vec![at + 1],
        Operation::Skip(count) => {
            vec![at + 1 + usize::try_from(count).unwrap_or(INSTRUCTIONS_MAX)]
        }
        Operation::Branch {
            then, otherwise, ..
        } => vec![at + 1 + usize::from(then), at + 1 + usize::from(otherwise)],
        Operation::Return(_) => Vec::new(),
    }
}

fn is_loadable(offset: u32) -> bool {
    offset.is_multiple_of(4)
        && (offset == NUMBER_OFFSET
            || offset == ARCHITECTURE_OFFSET
            || (ARGUMENTS_OFFSET..DATA_BYTES).contains(&offset))
}

/// The word of a call at an offset that [`is_loadable`] accepts.
fn word(call: &Call, offset: u32) -> u32 {
    match offset {
        NUMBER_OFFSET => call.number,
        ARCHITECTURE_OFFSET => call.architecture,
        _ => {
            let at = offset.saturating_sub(ARGUMENTS_OFFSET);
            let argument = call.argument(u8::try_from(at / 8).unwrap_or(u8::MAX));
            let half = if at.is_multiple_of(8) {
                argument
            } else {
                argument >> 32
            };
            u32::try_from(half & 0xffff_ffff).unwrap_or_default()
        }
    }
}

/// Whether a comparison holds.
pub(super) fn holds(test: Test, accumulator: u32, operand: u32) -> bool {
    match test {
        Test::Equal => accumulator == operand,
        Test::Above => accumulator > operand,
        Test::AtLeast => accumulator >= operand,
        Test::AnyBit => accumulator & operand != 0,
    }
}

/// Runs a verified program. The loop ends because every step goes forwards; a
/// program that did not pass [`verify`] would be answered with a kill.
pub(super) fn run(instructions: &[Instruction], call: &Call) -> Action {
    let mut at = 0;
    let mut accumulator = 0;
    while let Some(operation) = instructions.get(at).and_then(|found| found.operation()) {
        at += 1;
        match operation {
            Operation::Load(offset) => accumulator = word(call, offset),
            Operation::And(mask) => accumulator &= mask,
            Operation::Skip(count) => at += usize::try_from(count).unwrap_or(INSTRUCTIONS_MAX),
            Operation::Branch {
                test,
                operand,
                then,
                otherwise,
            } => {
                let taken = holds(test, accumulator, operand);
                at += usize::from(if taken { then } else { otherwise });
            }
            Operation::Return(action) => return action,
        }
    }
    Action::KillProcess
}
