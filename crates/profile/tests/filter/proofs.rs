//! The compiled programs against their policies, by proof.

use lazaret_profile::filter::{AcceptedSet, Filter, INSTRUCTIONS_MAX, Operation, Test};
use lazaret_profile::policy::{AUDIT_ARCH_X86_64, Action, Policy, RuleListError, X32_SYSCALL_BIT};

use super::built_in;

#[test]
fn every_path_of_the_installed_bytes_gives_what_the_policy_says() {
    for (id, policy, filter) in built_in() {
        let installed = Filter::from_bytes(&filter.to_bytes()).expect(id);
        assert_eq!(installed.prove(&policy), Ok(()), "{id}");
        assert_eq!(installed.sha256(), filter.sha256(), "{id}");
    }
}

#[test]
fn the_listing_decompiled_from_the_bytes_is_the_policys_own_listing() {
    for (id, policy, filter) in built_in() {
        let decompiled = AcceptedSet::of_filter(&filter).expect(id);
        assert_eq!(decompiled, AcceptedSet::of_policy(&policy).expect(id));
        assert!(decompiled.is_native_only(), "{id}");
        assert!(!decompiled.entries.is_empty(), "{id}");
    }
}

#[test]
fn the_architecture_is_looked_at_first_and_the_x32_bit_second() {
    for (id, _, filter) in built_in() {
        let operations: Vec<Operation> = filter
            .instructions()
            .iter()
            .take(6)
            .filter_map(|instruction| instruction.operation())
            .collect();
        let branch = |test, operand, then, otherwise| Operation::Branch {
            test,
            operand,
            then,
            otherwise,
        };
        let expected = [
            Operation::Load(4),
            branch(Test::Equal, AUDIT_ARCH_X86_64, 1, 0),
            Operation::Return(Action::KillProcess),
            Operation::Load(0),
            branch(Test::AnyBit, X32_SYSCALL_BIT, 0, 1),
            Operation::Return(Action::KillProcess),
        ];
        assert_eq!(operations, expected, "{id}");
    }
}

#[test]
fn the_program_is_small() {
    for (id, _, filter) in built_in() {
        let count = filter.instructions().len();
        assert!(count < INSTRUCTIONS_MAX / 16, "{id}: {count} instructions");
    }
}

#[test]
fn the_same_policy_gives_the_same_bytes_in_any_order_of_its_calls() {
    for (id, policy, filter) in built_in() {
        let mut rules = policy.rules().to_vec();
        // A stable sort moves whole calls and keeps the order within each.
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.syscall().name));
        let reordered = policy.with_rules(rules).expect(id);
        assert_ne!(reordered, policy, "{id}");
        let recompiled = Filter::compile(&reordered).expect(id);
        assert_eq!(recompiled.to_bytes(), filter.to_bytes(), "{id}");
    }
}

#[test]
fn a_program_of_another_policy_is_found_out_with_a_call_that_shows_it() {
    for (id, policy, filter) in built_in() {
        let other = policy.without_rule("exit_group").expect(id);
        let difference = filter.prove(&other).expect_err(id);
        assert_eq!(difference.found, filter.run(&difference.call));
        assert_eq!(difference.expected, other.evaluate(&difference.call));
        assert_ne!(difference.found, difference.expected);
    }
}

#[test]
fn one_changed_bit_in_the_bytes_is_refused_or_found_out() {
    for (id, policy, filter) in built_in() {
        let bytes = filter.to_bytes();
        let mut proved_equal = Vec::new();
        for place in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            if let Some(byte) = changed.get_mut(place / 8) {
                *byte ^= 1 << (place % 8);
            }
            let Ok(read) = Filter::from_bytes(&changed) else {
                continue;
            };
            if read.prove(&policy).is_ok() {
                proved_equal.push(place);
            }
        }
        // A few bits change a program and not its meaning: a jump to one kill
        // instead of another, or more bits of the number that kill (bytes 4 to 7
        // of instruction 4). The digest differs all the same.
        for place in proved_equal {
            let (instruction, field) = (place / 64, place % 64 / 8);
            assert!(
                (2..4).contains(&field) || (instruction == 4 && field >= 4),
                "{id}: bit {place} has no meaning"
            );
        }
    }
}

#[test]
fn the_c_header_holds_the_very_instructions() {
    for (id, _, filter) in built_in() {
        let header = filter.to_c_header();
        let mut bytes = Vec::new();
        for line in header.lines().filter(|line| line.starts_with("    {")) {
            let inner = line.trim().trim_start_matches('{').trim_end_matches("},");
            let fields: Vec<&str> = inner.split(',').map(str::trim).collect();
            let [code, jt, jf, k] = fields.as_slice() else {
                panic!("{id}: {line}");
            };
            let hexadecimal = |text: &str| {
                u32::from_str_radix(text.trim_start_matches("0x"), 16).expect("a number")
            };
            let code = u16::try_from(hexadecimal(code)).expect("a code");
            bytes.extend_from_slice(&code.to_le_bytes());
            bytes.push(jt.parse().expect("jt"));
            bytes.push(jf.parse().expect("jf"));
            bytes.extend_from_slice(&hexadecimal(k).to_le_bytes());
        }
        assert_eq!(bytes, filter.to_bytes(), "{id}");
        assert!(header.contains(&format!(
            "#define LZ_FILTER_SHA256 \"{}\"\n",
            filter.sha256()
        )));
        assert!(header.contains(&format!(
            "#define LZ_FILTER_INSTRUCTIONS {}\n",
            filter.instructions().len()
        )));
    }
}

#[test]
fn a_rule_behind_an_unconditional_one_or_away_from_its_call_is_refused() {
    let (id, policy, _) = built_in().swap_remove(0);
    let rules = policy.rules();
    let mut scattered = rules.to_vec();
    let first = scattered.remove(2);
    assert_eq!(first.id(), "open-for-reading");
    scattered.push(first);
    assert_eq!(
        policy.with_rules(scattered).expect_err(id),
        RuleListError::Scattered("open-for-reading".to_owned())
    );
    let mut shadowed = rules.to_vec();
    shadowed.swap(3, 4);
    assert_eq!(
        policy.with_rules(shadowed).expect_err(id),
        RuleListError::Unreachable("open-for-writing".to_owned())
    );
    let mut twice = rules.to_vec();
    twice.extend(rules.last().cloned());
    assert!(matches!(
        policy.with_rules(twice).expect_err(id),
        RuleListError::DuplicateId(_)
    ));
    assert!(policy.with_rules(Vec::new()).is_err());
    assert_eq!(
        Policy::new(" ", rules.to_vec(), Vec::new()),
        Err(RuleListError::Reason)
    );
}
