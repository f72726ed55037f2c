//! Which bytes are a filter, and whether the walk over every path says of any
//! program, compiled or not, what running it says.

use lazaret_profile::filter::{
    AcceptedSet, Filter, INSTRUCTIONS_MAX, Instruction, Operation, Test, VerifyError,
    VerifyErrorKind, Walk,
};
use lazaret_profile::policy::{AUDIT_ARCH_X86_64, Action, Call, Errno, X32_SYSCALL_BIT};
use proptest::prelude::*;

fn refused(operations: &[Operation]) -> VerifyError {
    let instructions = operations
        .iter()
        .map(|&operation| Instruction::from_operation(operation))
        .collect();
    Filter::from_instructions(instructions).expect_err("this is no filter")
}

fn equal(operand: u32, then: u8, otherwise: u8) -> Operation {
    Operation::Branch {
        test: Test::Equal,
        operand,
        then,
        otherwise,
    }
}

const ALLOW: Operation = Operation::Return(Action::Allow);

#[test]
fn a_program_that_could_leave_itself_or_has_dead_parts_is_refused() {
    let at = |at, kind| VerifyError { at, kind };
    let cases: &[(&[Operation], VerifyError)] = &[
        (&[], at(0, VerifyErrorKind::Length)),
        (&[Operation::Load(0)], at(0, VerifyErrorKind::End)),
        (
            &[Operation::Load(0), Operation::And(1)],
            at(1, VerifyErrorKind::End),
        ),
        (&[Operation::Skip(0)], at(0, VerifyErrorKind::Jump)),
        (&[Operation::Skip(1), ALLOW], at(0, VerifyErrorKind::Jump)),
        (
            &[Operation::Skip(u32::MAX), ALLOW],
            at(0, VerifyErrorKind::Jump),
        ),
        (
            &[Operation::Skip(1), ALLOW, ALLOW],
            at(1, VerifyErrorKind::Unreachable),
        ),
        (&[ALLOW, ALLOW], at(1, VerifyErrorKind::Unreachable)),
        (
            &[Operation::Load(0), equal(1, 0, 1), ALLOW],
            at(1, VerifyErrorKind::Jump),
        ),
        (
            &[Operation::Load(0), equal(1, 255, 0), ALLOW],
            at(1, VerifyErrorKind::Jump),
        ),
        (&[equal(1, 0, 0), ALLOW], at(0, VerifyErrorKind::Unset)),
        (&[Operation::And(1), ALLOW], at(0, VerifyErrorKind::Unset)),
    ];
    for (program, error) in cases {
        assert_eq!(&refused(program), error, "{program:?}");
    }
}

#[test]
fn a_load_from_elsewhere_than_number_architecture_and_arguments_is_refused() {
    let loadable: Vec<u32> = (0..=80)
        .filter(|&offset| {
            let program = [Operation::Load(offset), ALLOW];
            let instructions = program.map(Instruction::from_operation).to_vec();
            Filter::from_instructions(instructions).is_ok()
        })
        .collect();
    // Neither the instruction pointer (8, 12) nor anything between words.
    let mut expected = vec![0, 4];
    expected.extend((16..64).step_by(4));
    assert_eq!(loadable, expected);
}

#[test]
fn a_return_of_any_other_value_is_refused() {
    let returns = |k| {
        Filter::from_instructions(vec![Instruction {
            code: 0x06,
            jt: 0,
            jf: 0,
            k,
        }])
    };
    // KILL_THREAD, TRAP, USER_NOTIF, TRACE, LOG, ALLOW with data, ERRNO 0,
    // ERRNO out of the table, KILL_PROCESS with data.
    for k in [
        0,
        0x0003_0000,
        0x7fc0_0000,
        0x7ff0_0000,
        0x7ffc_0000,
        0x7fff_0001,
        0x0005_0000,
        0x0005_0fff,
        0x0005_ffff,
        0x8000_0001,
        u32::MAX,
    ] {
        assert!(returns(k).is_err(), "{k:#x}");
    }
    for k in [0x7fff_0000, 0x8000_0000, 0x0005_0026] {
        assert!(returns(k).is_ok(), "{k:#x}");
    }
}

#[test]
fn unused_fields_must_be_zero_and_unknown_operations_are_refused() {
    let ends = Instruction::from_operation(ALLOW);
    for code in 0..=u16::MAX {
        let strange = Instruction {
            code,
            jt: 0,
            jf: 0,
            k: 0,
        };
        let known = [0x20, 0x54, 0x05, 0x15, 0x25, 0x35, 0x45].contains(&code);
        let load = Instruction::from_operation(Operation::Load(0));
        let accepted = Filter::from_instructions(vec![load, strange, ends]).is_ok();
        assert_eq!(accepted, known, "{code:#x}");
    }
    for (jt, jf) in [(1, 0), (0, 1)] {
        for code in [0x20, 0x05, 0x06] {
            let strange = Instruction { code, jt, jf, k: 0 };
            assert!(Filter::from_instructions(vec![strange, ends]).is_err());
        }
    }
}

#[test]
fn a_program_is_at_most_as_long_as_the_kernel_takes() {
    let program = |length: usize| {
        let mut instructions = vec![Instruction::from_operation(Operation::Load(0)); length - 1];
        instructions.push(Instruction::from_operation(ALLOW));
        Filter::from_instructions(instructions)
    };
    assert!(program(INSTRUCTIONS_MAX).is_ok());
    assert!(program(INSTRUCTIONS_MAX + 1).is_err());
}

#[test]
fn bytes_that_end_in_the_middle_of_an_instruction_are_refused() {
    let filter = Filter::from_instructions(vec![Instruction::from_operation(ALLOW)]);
    let bytes = filter.expect("a filter").to_bytes();
    assert_eq!(bytes, [6, 0, 0, 0, 0, 0, 0xff, 0x7f]);
    for length in [1, 7, 9, 15] {
        let cut: Vec<u8> = bytes.iter().cycle().take(length).copied().collect();
        let error = Filter::from_bytes(&cut).expect_err("cut");
        assert_eq!(error.kind, VerifyErrorKind::Truncated, "{length}");
    }
    assert!(Filter::from_bytes(&[]).is_err());
}

#[test]
fn each_comparison_of_each_word_is_walked_as_it_is_run() {
    let values = [
        0,
        1,
        2,
        0x7fff_ffff,
        0x8000_0000,
        0x8000_0001,
        u32::MAX,
        0x5a5a_5a5a,
    ];
    for test in [Test::Equal, Test::Above, Test::AtLeast, Test::AnyBit] {
        for (operand, mask) in values.iter().flat_map(|&k| values.map(|mask| (k, mask))) {
            for (word, offset) in [0, 4].into_iter().chain((16..64).step_by(4)).enumerate() {
                let program = [
                    Operation::Load(offset),
                    Operation::And(mask),
                    Operation::Branch {
                        test,
                        operand,
                        then: 0,
                        otherwise: 1,
                    },
                    ALLOW,
                    Operation::Return(Action::KillProcess),
                ];
                let instructions = program.map(Instruction::from_operation).to_vec();
                let filter = Filter::from_instructions(instructions).expect("a filter");
                let walk = Walk::of_filter(&filter);
                for value in values {
                    // The one word that is looked at, and all others the opposite.
                    let mut words = [!value; 14];
                    words[word] = value;
                    let [number, architecture, halves @ ..] = words;
                    let mut arguments = [0; 6];
                    for (argument, half) in arguments.iter_mut().zip(halves.chunks(2)) {
                        *argument = u64::from(half[1]) << 32 | u64::from(half[0]);
                    }
                    let call = Call {
                        number,
                        architecture,
                        arguments,
                    };
                    let masked = value & mask;
                    let holds = match test {
                        Test::Equal => masked == operand,
                        Test::Above => masked > operand,
                        Test::AtLeast => masked >= operand,
                        Test::AnyBit => masked & operand != 0,
                    };
                    assert_eq!(filter.run(&call) == Action::Allow, holds, "{program:?}");
                    assert_eq!(walk.answer(&call), filter.run(&call), "{program:?}");
                }
            }
        }
    }
}

#[test]
fn a_filter_without_the_architecture_check_is_seen_in_its_listing() {
    // G06: the numbers of another table read as if they were of this one.
    let program = [
        Operation::Load(0),
        equal(102, 0, 1),
        ALLOW,
        Operation::Return(Action::KillProcess),
    ];
    let filter = Filter::from_instructions(program.map(Instruction::from_operation).to_vec());
    let listing = AcceptedSet::of_filter(&filter.expect("a filter")).expect("short");
    assert!(!listing.is_native_only());
    assert_eq!(listing.answer(&Call::i386(102, [0; 6])), Action::Allow);
}

/// Any operation, with operands that meet often.
fn operation() -> impl Strategy<Value = Operation> {
    let operand = prop_oneof![
        Just(0_u32),
        Just(1),
        Just(AUDIT_ARCH_X86_64),
        Just(X32_SYSCALL_BIT),
        Just(u32::MAX),
        Just(0x8000_0000),
        any::<u32>(),
    ];
    let offset = prop_oneof![Just(0_u32), Just(4), (4_u32..16).prop_map(|word| word * 4)];
    let test = prop_oneof![
        Just(Test::Equal),
        Just(Test::Above),
        Just(Test::AtLeast),
        Just(Test::AnyBit)
    ];
    let action = prop_oneof![
        Just(Action::Allow),
        Just(Action::KillProcess),
        Just(Action::Errno(Errno::by_name("ENOSYS").expect("known"))),
        Just(Action::Errno(Errno::by_name("EPERM").expect("known"))),
    ];
    prop_oneof![
        3 => offset.prop_map(Operation::Load),
        1 => operand.clone().prop_map(Operation::And),
        1 => (0_u32..3).prop_map(Operation::Skip),
        6 => (test, operand, 0_u8..6, 0_u8..6).prop_map(|(test, operand, then, otherwise)| {
            Operation::Branch { test, operand, then, otherwise }
        }),
        2 => action.prop_map(Operation::Return),
    ]
}

/// A program that passes the verifier: dead instructions are left out by
/// making each jump that leaves the program return instead.
fn program() -> impl Strategy<Value = Filter> {
    proptest::collection::vec(operation(), 1..24).prop_filter_map("verified", |mut body| {
        body.insert(0, Operation::Load(0));
        body.extend([ALLOW; 7]);
        // Drop what cannot be reached until nothing is left to drop.
        for _ in 0..64 {
            let instructions = body
                .iter()
                .map(|&it| Instruction::from_operation(it))
                .collect();
            match Filter::from_instructions(instructions) {
                Ok(filter) => return Some(filter),
                Err(VerifyError {
                    at,
                    kind: VerifyErrorKind::Unreachable,
                }) => {
                    body.remove(at);
                }
                Err(_) => return None,
            }
        }
        None
    })
}

fn any_call() -> impl Strategy<Value = Call> {
    let word = prop_oneof![Just(0_u32), Just(1), Just(u32::MAX), 0_u32..8, any::<u32>()];
    let architecture = prop_oneof![Just(AUDIT_ARCH_X86_64), word.clone()];
    let argument = prop_oneof![word.clone().prop_map(u64::from), any::<u64>()];
    (architecture, word, proptest::array::uniform6(argument)).prop_map(
        |(architecture, number, arguments)| Call {
            architecture,
            number,
            arguments,
        },
    )
}

proptest! {
    #[test]
    fn the_walk_over_every_path_says_what_running_says(
        filter in program(),
        calls in proptest::collection::vec(any_call(), 64),
    ) {
        let walk = Walk::of_filter(&filter);
        for call in &calls {
            prop_assert_eq!(walk.answer(call), filter.run(call));
        }
        // Programs with more cases than a page can hold have no listing.
        if let Ok(listing) = AcceptedSet::of_filter(&filter) {
            for call in &calls {
                prop_assert_eq!(listing.answer(call), filter.run(call));
            }
        }
    }

    #[test]
    fn any_bytes_are_a_filter_or_refused_and_a_filter_has_one_spelling(
        bytes in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        if let Ok(filter) = Filter::from_bytes(&bytes) {
            prop_assert_eq!(filter.to_bytes(), bytes);
        }
    }
}
