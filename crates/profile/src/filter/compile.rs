//! From a policy to one seccomp program.
//!
//! The order is fixed: the architecture (anything but x86_64 kills), the x32
//! bit (kills), then call after call by ascending number, each with its rules
//! in the policy's order, and at the end the kill.
//!
//! The chains that compare the arguments of one rule are seccompiler's, taken
//! rule by rule: there are public, and the 64-bit comparisons made of 32-bit
//! halves are the part where filters usually go wrong. Its whole filters cannot
//! be used: they have one action for a match and one for the rest, so errno
//! answers would need a second filter, and they do not look at the x32 bit.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule, sock_filter,
};

use super::instruction::{ARCHITECTURE_OFFSET, Instruction, NUMBER_OFFSET, Operation, Test};
use super::verify::VerifyError;
use crate::policy::{
    AUDIT_ARCH_X86_64, Action, Comparison, Condition, Policy, Rule, Width, X32_SYSCALL_BIT,
};

/// Why a checked policy has no program.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The library refused a rule or built another chain than it is known to.
    #[error("rule {rule:?}: {cause}")]
    Chain {
        /// The rule's id.
        rule: String,
        /// What was unexpected.
        cause: String,
    },
    /// The result does not pass our own verifier, or is too long.
    #[error("the compiled program is refused: {0}")]
    Verify(#[from] VerifyError),
}

pub(super) fn compile(policy: &Policy) -> Result<Vec<Instruction>, CompileError> {
    let mut calls: BTreeMap<u32, Vec<&Rule>> = BTreeMap::new();
    for rule in policy.rules() {
        calls.entry(rule.syscall().number).or_default().push(rule);
    }
    let mut program = prologue();
    for (number, rules) in calls {
        let block = block(&rules)?;
        append_dispatch(&mut program, number, block.len());
        program.extend(block);
    }
    program.push(returns(Action::KillProcess));
    Ok(program)
}

/// Architecture, then number, then x32 bit; leaves the number loaded.
fn prologue() -> Vec<Instruction> {
    [
        Operation::Load(ARCHITECTURE_OFFSET),
        branch(Test::Equal, AUDIT_ARCH_X86_64, 1, 0),
        Operation::Return(Action::KillProcess),
        Operation::Load(NUMBER_OFFSET),
        branch(Test::AnyBit, X32_SYSCALL_BIT, 0, 1),
        Operation::Return(Action::KillProcess),
    ]
    .into_iter()
    .map(Instruction::from_operation)
    .collect()
}

/// Enters the block that follows if the number is this one, else skips it. A
/// conditional jump reaches 255 instructions, an unconditional one any number.
fn append_dispatch(program: &mut Vec<Instruction>, number: u32, block_length: usize) {
    if let Ok(skipped) = u8::try_from(block_length) {
        program.push(Instruction::from_operation(branch(
            Test::Equal,
            number,
            0,
            skipped,
        )));
        return;
    }
    let skipped = u32::try_from(block_length).unwrap_or(u32::MAX);
    program.push(Instruction::from_operation(branch(
        Test::Equal,
        number,
        1,
        0,
    )));
    program.push(Instruction::from_operation(Operation::Skip(skipped)));
}

/// The rules of one call. The block always returns: a call that no rule matches
/// is killed here, because the number is no longer in the accumulator.
fn block(rules: &[&Rule]) -> Result<Vec<Instruction>, CompileError> {
    let mut block = Vec::new();
    for rule in rules {
        block.extend(chain(rule)?);
        block.push(returns(rule.action()));
        if rule.conditions().is_empty() {
            return Ok(block);
        }
    }
    block.push(returns(Action::KillProcess));
    Ok(block)
}

/// The comparisons of one rule: falls through to the next instruction if all
/// hold, and skips that one instruction if one does not.
fn chain(rule: &Rule) -> Result<Vec<Instruction>, CompileError> {
    let fail = |cause: String| CompileError::Chain {
        rule: rule.id().to_owned(),
        cause,
    };
    if rule.conditions().is_empty() {
        return Ok(Vec::new());
    }
    let conditions = rule
        .conditions()
        .iter()
        .map(condition)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| fail(error.to_string()))?;
    let compiled: BpfProgram = SeccompRule::new(conditions)
        .map_err(|error| fail(error.to_string()))?
        .into();
    let chain: Vec<Instruction> = compiled.iter().map(from_library).collect();
    // Two jumps precede each chain, for the library's own way from rule to rule:
    // one into the chain, one past it. Ours needs neither, and nothing else may
    // stand there.
    match chain.split_at_checked(2) {
        Some(([enter, leave], comparisons))
            if enter.operation() == Some(Operation::Skip(1))
                && leave.operation() == u32::try_from(chain.len()).ok().map(Operation::Skip) =>
        {
            Ok(comparisons.to_vec())
        }
        _ => Err(fail(
            "the chain does not begin as it is known to".to_owned(),
        )),
    }
}

fn condition(condition: &Condition) -> Result<SeccompCondition, seccompiler::BackendError> {
    let length = match condition.width {
        Width::Dword => SeccompCmpArgLen::Dword,
        Width::Qword => SeccompCmpArgLen::Qword,
    };
    let (operator, value) = match condition.comparison {
        Comparison::Equal(value) => (SeccompCmpOp::Eq, value),
        Comparison::NotEqual(value) => (SeccompCmpOp::Ne, value),
        Comparison::Below(value) => (SeccompCmpOp::Lt, value),
        Comparison::AtMost(value) => (SeccompCmpOp::Le, value),
        Comparison::Above(value) => (SeccompCmpOp::Gt, value),
        Comparison::AtLeast(value) => (SeccompCmpOp::Ge, value),
        Comparison::MaskedEqual { mask, value } => (SeccompCmpOp::MaskedEq(mask), value),
        Comparison::Within(value) => (SeccompCmpOp::MaskedEq(!value & condition.width.mask()), 0),
    };
    SeccompCondition::new(condition.index, length, operator, value)
}

fn from_library(instruction: &sock_filter) -> Instruction {
    Instruction {
        code: instruction.code,
        jt: instruction.jt,
        jf: instruction.jf,
        k: instruction.k,
    }
}

fn branch(test: Test, operand: u32, then: u8, otherwise: u8) -> Operation {
    Operation::Branch {
        test,
        operand,
        then,
        otherwise,
    }
}

fn returns(action: Action) -> Instruction {
    Instruction::from_operation(Operation::Return(action))
}
