//! The compiled programs against whole filters made by another compiler.
//!
//! For each rule alone, seccompiler builds a complete filter with its own
//! prologue and dispatch, and a second, plain interpreter runs it. The first
//! rule whose filter matches must have the action that the program gives.

use std::collections::BTreeMap;

use lazaret_profile::filter::{NUMBERS_SWEPT, sweep_arguments};
use lazaret_profile::policy::{Action, Call, Comparison, Condition, Rule, Width, X32_SYSCALL_BIT};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::built_in;

const RET_ALLOW: u32 = 0x7fff_0000;

#[test]
fn each_answer_is_that_of_the_first_rule_that_another_compiler_finds_matching() {
    for (id, policy, filter) in built_in() {
        let oracles: Vec<(Action, BpfProgram)> = policy
            .rules()
            .iter()
            .map(|rule| (rule.action(), whole_filter(rule)))
            .collect();
        for number in NUMBERS_SWEPT {
            for arguments in sweep_arguments(&policy, number) {
                for call in [
                    Call::x86_64(number, arguments),
                    Call::i386(number, arguments),
                ] {
                    let expected = oracles
                        .iter()
                        .find(|(_, program)| run(program, &call) == RET_ALLOW)
                        .map_or(Action::KillProcess, |&(action, _)| action);
                    assert_eq!(filter.run(&call), expected, "{id}: {call:x?}");
                }
            }
        }
    }
}

#[test]
fn the_other_compiler_alone_would_let_x32_numbers_reach_its_rules() {
    // Why the x32 bit is ours to look at: in its filters such a number is only
    // one that no rule names. Were it the default that allows, it would pass.
    let permissive = SeccompFilter::new(
        BTreeMap::from([(41, Vec::new())]),
        SeccompAction::Allow,
        SeccompAction::KillProcess,
        TargetArch::x86_64,
    )
    .expect("a filter");
    let program: BpfProgram = permissive.try_into().expect("a program");
    let socket = Call::x86_64(41, [0; 6]);
    let marked = Call {
        number: 41 | X32_SYSCALL_BIT,
        ..socket
    };
    assert_ne!(run(&program, &socket), RET_ALLOW);
    assert_eq!(run(&program, &marked), RET_ALLOW);
}

fn whole_filter(rule: &Rule) -> BpfProgram {
    let conditions: Vec<SeccompCondition> = rule.conditions().iter().map(condition).collect();
    let rules = if conditions.is_empty() {
        Vec::new()
    } else {
        vec![SeccompRule::new(conditions).expect("a rule")]
    };
    SeccompFilter::new(
        BTreeMap::from([(i64::from(rule.syscall().number), rules)]),
        SeccompAction::KillProcess,
        SeccompAction::Allow,
        TargetArch::x86_64,
    )
    .and_then(BpfProgram::try_from)
    .expect("a filter")
}

fn condition(condition: &Condition) -> SeccompCondition {
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
        Comparison::Within(value) => (SeccompCmpOp::MaskedEq(!value), 0),
    };
    SeccompCondition::new(condition.index, length, operator, value).expect("a condition")
}

/// Classic BPF as in the kernel's own description, with the data as bytes.
fn run(program: &BpfProgram, call: &Call) -> u32 {
    let mut data = Vec::new();
    data.extend_from_slice(&call.number.to_le_bytes());
    data.extend_from_slice(&call.architecture.to_le_bytes());
    data.extend_from_slice(&[0; 8]);
    for argument in call.arguments {
        data.extend_from_slice(&argument.to_le_bytes());
    }
    let (mut at, mut accumulator) = (0_usize, 0_u32);
    loop {
        let instruction = &program[at];
        let k = instruction.k;
        let jump = |holds: bool| {
            usize::from(if holds {
                instruction.jt
            } else {
                instruction.jf
            })
        };
        at += 1;
        match instruction.code {
            0x20 => {
                let from = usize::try_from(k).expect("an offset");
                let word = data[from..from + 4].try_into().expect("four bytes");
                accumulator = u32::from_le_bytes(word);
            }
            0x54 => accumulator &= k,
            0x05 => at += usize::try_from(k).expect("a distance"),
            0x15 => at += jump(accumulator == k),
            0x25 => at += jump(accumulator > k),
            0x35 => at += jump(accumulator >= k),
            0x06 => return k,
            other => panic!("instruction {other:#x}"),
        }
    }
}
