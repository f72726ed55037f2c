//! One instruction of classic BPF, its bytes, and the few operations that a
//! seccomp filter of ours consists of.

use crate::policy::Action;
use crate::policy::Errno;

use super::verify::{VerifyError, VerifyErrorKind};

/// Bytes of one `struct sock_filter`.
pub(super) const INSTRUCTION_BYTES: usize = 8;

/// `struct sock_filter` of `linux/filter.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// What to do.
    pub code: u16,
    /// How many instructions to skip if a comparison holds.
    pub jt: u8,
    /// How many to skip if it does not.
    pub jf: u8,
    /// The operand.
    pub k: u32,
}

/// A 32-bit word of `struct seccomp_data` (seccomp(2)), by its byte offset:
/// 0 the number, 4 the architecture, from 16 on the halves of the arguments,
/// the low one first.
pub(super) const NUMBER_OFFSET: u32 = 0;
/// See [`NUMBER_OFFSET`].
pub(super) const ARCHITECTURE_OFFSET: u32 = 4;
/// See [`NUMBER_OFFSET`].
pub(super) const ARGUMENTS_OFFSET: u32 = 16;
/// The end of `struct seccomp_data`.
pub(super) const DATA_BYTES: u32 = 64;

const LD_W_ABS: u16 = 0x20;
const ALU_AND_K: u16 = 0x54;
const JMP_JA: u16 = 0x05;
const JMP_JEQ_K: u16 = 0x15;
const JMP_JGT_K: u16 = 0x25;
const JMP_JGE_K: u16 = 0x35;
const JMP_JSET_K: u16 = 0x45;
const RET_K: u16 = 0x06;

const RET_KILL_PROCESS: u32 = 0x8000_0000;
const RET_ERRNO: u32 = 0x0005_0000;
const RET_ALLOW: u32 = 0x7fff_0000;
const RET_DATA: u32 = 0x0000_ffff;

/// How the accumulator is compared with the operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Test {
    /// Equal.
    Equal,
    /// Greater, unsigned.
    Above,
    /// Greater or equal, unsigned.
    AtLeast,
    /// Any common bit.
    AnyBit,
}

/// An instruction that a filter of ours may contain. There are no others: no
/// arithmetic but a mask, no scratch memory, no index register, no loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Load the word at this offset of `struct seccomp_data`.
    Load(u32),
    /// Mask the accumulator.
    And(u32),
    /// Skip so many instructions.
    Skip(u32),
    /// Compare, then skip so many or so many.
    Branch {
        /// The comparison.
        test: Test,
        /// Its operand.
        operand: u32,
        /// Skipped if it holds.
        then: u8,
        /// Skipped if not.
        otherwise: u8,
    },
    /// The answer.
    Return(Action),
}

impl Instruction {
    /// The operation, if it is one of ours with no unused field set.
    pub fn operation(self) -> Option<Operation> {
        let Self { code, jt, jf, k } = self;
        let branch = |test| Operation::Branch {
            test,
            operand: k,
            then: jt,
            otherwise: jf,
        };
        match code {
            JMP_JEQ_K => return Some(branch(Test::Equal)),
            JMP_JGT_K => return Some(branch(Test::Above)),
            JMP_JGE_K => return Some(branch(Test::AtLeast)),
            JMP_JSET_K => return Some(branch(Test::AnyBit)),
            _ if jt != 0 || jf != 0 => return None,
            _ => {}
        }
        match code {
            LD_W_ABS => Some(Operation::Load(k)),
            ALU_AND_K => Some(Operation::And(k)),
            JMP_JA => Some(Operation::Skip(k)),
            RET_K => action_of(k).map(Operation::Return),
            _ => None,
        }
    }

    /// The instruction of an operation.
    pub fn from_operation(operation: Operation) -> Self {
        let plain = |code, k| Self {
            code,
            jt: 0,
            jf: 0,
            k,
        };
        match operation {
            Operation::Load(offset) => plain(LD_W_ABS, offset),
            Operation::And(mask) => plain(ALU_AND_K, mask),
            Operation::Skip(count) => plain(JMP_JA, count),
            Operation::Return(action) => plain(RET_K, return_value_of(action)),
            Operation::Branch {
                test,
                operand,
                then,
                otherwise,
            } => Self {
                code: match test {
                    Test::Equal => JMP_JEQ_K,
                    Test::Above => JMP_JGT_K,
                    Test::AtLeast => JMP_JGE_K,
                    Test::AnyBit => JMP_JSET_K,
                },
                jt: then,
                jf: otherwise,
                k: operand,
            },
        }
    }

    /// One line for people; `at` is its place, to name the targets of jumps.
    pub(super) fn describe(self, at: usize) -> String {
        let Some(operation) = self.operation() else {
            return format!("? {self:?}");
        };
        match operation {
            Operation::Load(offset) => format!("ld [{offset}]"),
            Operation::And(mask) => format!("and #0x{mask:x}"),
            Operation::Skip(count) => {
                format!(
                    "ja {}",
                    at + 1 + usize::try_from(count).unwrap_or(usize::MAX / 2)
                )
            }
            Operation::Return(action) => format!("ret {action}"),
            Operation::Branch {
                test,
                operand,
                then,
                otherwise,
            } => {
                let name = match test {
                    Test::Equal => "jeq",
                    Test::Above => "jgt",
                    Test::AtLeast => "jge",
                    Test::AnyBit => "jset",
                };
                format!(
                    "{name} #0x{operand:x}, {}, {}",
                    at + 1 + usize::from(then),
                    at + 1 + usize::from(otherwise)
                )
            }
        }
    }
}

/// The value that a filter returns for an action (`SECCOMP_RET_*`).
fn return_value_of(action: Action) -> u32 {
    match action {
        Action::Allow => RET_ALLOW,
        Action::Errno(errno) => RET_ERRNO | u32::from(errno.number()),
        Action::KillProcess => RET_KILL_PROCESS,
    }
}

/// The action of a returned value, if it is exactly one that we use: the
/// kernel would mask unknown bits away, and we would not see them.
fn action_of(value: u32) -> Option<Action> {
    match value {
        RET_ALLOW => Some(Action::Allow),
        RET_KILL_PROCESS => Some(Action::KillProcess),
        _ if value & !RET_DATA == RET_ERRNO => u16::try_from(value & RET_DATA)
            .ok()
            .and_then(Errno::by_number)
            .map(Action::Errno),
        _ => None,
    }
}

pub(super) fn encode(instructions: &[Instruction]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(instructions.len() * INSTRUCTION_BYTES);
    for Instruction { code, jt, jf, k } in instructions {
        bytes.extend_from_slice(&code.to_le_bytes());
        bytes.extend_from_slice(&[*jt, *jf]);
        bytes.extend_from_slice(&k.to_le_bytes());
    }
    bytes
}

pub(super) fn decode(bytes: &[u8]) -> Result<Vec<Instruction>, VerifyError> {
    let (chunks, rest) = bytes.as_chunks::<INSTRUCTION_BYTES>();
    if !rest.is_empty() {
        return Err(VerifyError {
            at: chunks.len(),
            kind: VerifyErrorKind::Truncated,
        });
    }
    Ok(chunks
        .iter()
        .map(|&[c0, c1, jt, jf, k0, k1, k2, k3]| Instruction {
            code: u16::from_le_bytes([c0, c1]),
            jt,
            jf,
            k: u32::from_le_bytes([k0, k1, k2, k3]),
        })
        .collect())
}
