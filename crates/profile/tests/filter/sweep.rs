//! Every number from 0 to 1023 by each of three conventions, with arguments
//! around what the rules want, in the interpreter (cases G01 to G07). What is
//! expected comes from the policy's own arithmetic.

use lazaret_profile::filter::{
    Filter, NUMBERS_SWEPT, combined_halves, satisfying, sweep_arguments,
};
use lazaret_profile::policy::{
    AUDIT_ARCH_I386, AUDIT_ARCH_X86_64, Action, Call, Syscall, Width, X32_SYSCALL_BIT,
};

use super::built_in;

#[test]
fn every_number_by_every_convention_is_answered_as_the_policy_says() {
    for (id, policy, filter) in built_in() {
        let mut answers = [0_usize; 3];
        for number in NUMBERS_SWEPT {
            for arguments in sweep_arguments(&policy, number) {
                for call in [
                    Call::x86_64(number, arguments),
                    Call::x32(number, arguments),
                    Call::i386(number, arguments),
                ] {
                    let found = filter.run(&call);
                    assert_eq!(found, policy.evaluate(&call), "{id}: {call:x?}");
                    let place = match found {
                        Action::Allow => 0,
                        Action::Errno(_) => 1,
                        Action::KillProcess => 2,
                    };
                    if let Some(count) = answers.get_mut(place) {
                        *count += 1;
                    }
                }
            }
        }
        assert!(
            answers.iter().all(|&count| count > 1000),
            "{id}: {answers:?}"
        );
    }
}

#[test]
fn no_x32_call_and_no_foreign_call_is_answered_but_by_a_kill() {
    // G03, G06: aarch64, arm, riscv64, i386, nothing, and every bit of the right one.
    let mut architectures = vec![
        0xc000_00b7,
        0x4000_0028,
        0xc000_00f3,
        AUDIT_ARCH_I386,
        0,
        u32::MAX,
    ];
    architectures.extend((0..32).map(|bit| AUDIT_ARCH_X86_64 ^ 1 << bit));
    for (id, policy, filter) in built_in() {
        for rule in policy.rules() {
            let native = Call::x86_64(rule.syscall().number, satisfying(rule));
            assert_eq!(filter.run(&native), rule.action(), "{id}: {}", rule.id());
            for architecture in &architectures {
                let foreign = Call {
                    architecture: *architecture,
                    ..native
                };
                assert_eq!(
                    filter.run(&foreign),
                    Action::KillProcess,
                    "{id}: {foreign:x?}"
                );
            }
            for high in [
                X32_SYSCALL_BIT,
                0x8000_0000,
                0xc000_0000,
                0x4100_0000,
                0xffff_fe00,
            ] {
                let marked = Call {
                    number: native.number | high,
                    ..native
                };
                assert_eq!(
                    filter.run(&marked),
                    Action::KillProcess,
                    "{id}: {marked:x?}"
                );
            }
        }
    }
}

#[test]
fn bits_that_the_kernel_does_not_read_change_nothing_and_those_that_it_reads_do() {
    // G01, G02. The first half for every rule with a 32-bit condition, the
    // second for every rule with a 64-bit one.
    let (mut narrow, mut wide) = (0, 0);
    for (id, policy, filter) in built_in() {
        for rule in policy.rules() {
            for condition in rule.conditions() {
                let place = usize::from(condition.index);
                let wanted = satisfying(rule);
                for high in [1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff_u64] {
                    let mut arguments = wanted;
                    arguments[place] |= high << 32;
                    let call = Call::x86_64(rule.syscall().number, arguments);
                    let changed = filter.run(&call) != rule.action();
                    match condition.width {
                        Width::Dword => {
                            narrow += 1;
                            assert!(!changed, "{id}: {}: {call:x?}", rule.id());
                        }
                        Width::Qword => {
                            wide += 1;
                            assert!(changed, "{id}: {}: {call:x?}", rule.id());
                        }
                    }
                }
            }
        }
    }
    assert!(narrow > 0 && wide > 0);
}

#[test]
fn all_thirty_combinations_of_halves_are_compared_as_whole_numbers() {
    // G07, for each condition of the policies, in the installed bytes.
    assert_eq!(combined_halves().len(), 30);
    for (id, policy, filter) in built_in() {
        let installed = Filter::from_bytes(&filter.to_bytes()).expect(id);
        for rule in policy.rules() {
            for condition in rule.conditions() {
                for value in combined_halves() {
                    let mut arguments = satisfying(rule);
                    arguments[usize::from(condition.index)] = value;
                    let call = Call::x86_64(rule.syscall().number, arguments);
                    assert_eq!(
                        installed.run(&call),
                        policy.evaluate(&call),
                        "{id}: {call:x?}"
                    );
                }
            }
        }
    }
}

#[test]
fn terminal_requests_get_enotty_whatever_their_upper_half_is() {
    // G02: TIOCSTI and TIOCLINUX, plain, with a bit above, sign-extended.
    for (id, _, filter) in built_in() {
        for request in [
            0x5412,
            0x1_0000_5412,
            0xffff_ffff_0000_5412,
            0x541c,
            0x1_0000_541c,
        ] {
            let answer = filter.predicted(16, [0, request, 0, 0, 0, 0], AUDIT_ARCH_X86_64);
            assert_eq!(answer.to_string(), "ENOTTY", "{id}: {request:x}");
        }
    }
}

#[test]
fn clone3_and_the_rings_make_nothing() {
    // G04, G05.
    for (id, _, filter) in built_in() {
        let answer = |name: &str| {
            let number = Syscall::by_name(name).expect(name).number;
            filter
                .predicted(number, [0; 6], AUDIT_ARCH_X86_64)
                .to_string()
        };
        assert_eq!(answer("clone3"), "ENOSYS", "{id}");
        for ring in [
            "io_uring_setup",
            "io_uring_enter",
            "io_uring_register",
            "clone",
        ] {
            assert_eq!(answer(ring), "kill_process", "{id}: {ring}");
        }
    }
}

#[test]
fn exit_codes_pass_from_0_to_127_and_no_others() {
    for (id, _, filter) in built_in() {
        for code in 0..=0x1ff_u64 {
            let answer = filter.predicted(231, [code, 0, 0, 0, 0, 0], AUDIT_ARCH_X86_64);
            assert_eq!(answer == Action::Allow, code <= 127, "{id}: {code}");
        }
        for code in [u64::MAX, 0xffff_ffff, 0x8000_0000, 0x1_0000_0080] {
            let answer = filter.predicted(231, [code, 0, 0, 0, 0, 0], AUDIT_ARCH_X86_64);
            assert_eq!(answer, Action::KillProcess, "{id}: {code:x}");
        }
    }
}

#[test]
fn only_the_two_numbers_that_the_kernel_exempts_are_listed_as_exempt() {
    for (id, policy, filter) in built_in() {
        let exempt: Vec<u32> = NUMBERS_SWEPT.filter(|&n| policy.is_exempt(n)).collect();
        assert_eq!(exempt, [335, 336], "{id}");
        // Where the kernel does show them to the filter, they are killed.
        for number in exempt {
            let call = Call::x86_64(number, [0; 6]);
            assert_eq!(filter.run(&call), Action::KillProcess, "{id}");
        }
    }
}
