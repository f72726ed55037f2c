//! The compiler for policies of any kind: what it makes is proved equal to
//! them, and answers every call as they do.

use lazaret_profile::filter::{AcceptedSet, Filter, sweep_arguments};
use lazaret_profile::policy::signatures;
use lazaret_profile::policy::{
    Action, Call, Comparison, Condition, Errno, Policy, Rule, Syscall, Width,
};
use proptest::prelude::*;

/// Values at which halves, signs and widths go wrong.
fn value(width: Width) -> impl Strategy<Value = u64> {
    let low = prop_oneof![
        Just(0_u64),
        Just(1),
        Just(0x7fff_ffff),
        Just(0x8000_0000),
        Just(0xffff_ffff),
        0_u64..16,
        any::<u32>().prop_map(u64::from),
    ];
    let high = prop_oneof![
        Just(0_u64),
        Just(1),
        Just(0x7fff_ffff),
        Just(0xffff_ffff),
        any::<u32>().prop_map(u64::from),
    ];
    (high, low).prop_map(move |(high, low)| (high << 32 | low) & width.mask())
}

fn comparison(width: Width) -> impl Strategy<Value = Comparison> {
    (0..8, value(width), value(width)).prop_map(|(kind, value, mask)| match kind {
        0 => Comparison::Equal(value),
        1 => Comparison::NotEqual(value),
        2 => Comparison::Below(value),
        3 => Comparison::AtMost(value),
        4 => Comparison::Above(value),
        5 => Comparison::AtLeast(value),
        6 => Comparison::Within(value),
        _ => Comparison::MaskedEqual {
            mask,
            value: value & mask,
        },
    })
}

fn action() -> impl Strategy<Value = Action> {
    let errnos: Vec<Errno> = Errno::all().collect();
    prop_oneof![
        3 => Just(Action::Allow),
        2 => proptest::sample::select(errnos).prop_map(Action::Errno),
        1 => Just(Action::KillProcess),
    ]
}

/// One call with up to four rules, of up to `conditions_max` conditions each.
fn rules_of_one_call(
    conditions_max: usize,
) -> impl Strategy<Value = Vec<(Syscall, Action, Vec<Condition>)>> {
    let calls: Vec<_> = signatures::all().collect();
    proptest::sample::select(calls).prop_flat_map(move |(name, parameters)| {
        let syscall = Syscall::by_name(name).expect("a known call");
        let condition = (0..parameters.len()).prop_flat_map(move |index| {
            let width = parameters[index].width;
            comparison(width).prop_map(move |comparison| Condition {
                index: u8::try_from(index).expect("at most six"),
                width,
                comparison,
            })
        });
        let conditions = proptest::collection::vec(condition, 0..=conditions_max);
        proptest::collection::vec((Just(syscall), action(), conditions), 1..5)
    })
}

/// A policy of up to ten calls. Rules that the checks refuse are left out.
fn policy(conditions_max: usize) -> impl Strategy<Value = Policy> {
    proptest::collection::vec(rules_of_one_call(conditions_max), 1..10).prop_filter_map(
        "at least one rule",
        |calls| {
            let mut rules: Vec<Rule> = Vec::new();
            let mut closed = std::collections::BTreeSet::new();
            for (syscall, action, conditions) in calls.into_iter().flatten() {
                let behind = rules
                    .last()
                    .is_some_and(|rule| rule.syscall() == syscall && rule.conditions().is_empty());
                let returns = closed.contains(&syscall)
                    && rules.last().is_none_or(|rule| rule.syscall() != syscall);
                let id = format!("rule-{}", rules.len());
                let made = Rule::new(&id, syscall, action, conditions, "A reason.");
                if let (Ok(rule), false, false) = (made, behind, returns) {
                    closed.insert(syscall);
                    rules.push(rule);
                }
            }
            Policy::new("A reason.", rules, Vec::new()).ok()
        },
    )
}

#[test]
fn a_call_with_more_rules_than_a_conditional_jump_can_skip_is_compiled_too() {
    let prctl = Syscall::by_name("prctl").expect("a known call");
    let rules = (0..200_u32)
        .map(|number| {
            let conditions = [
                (0, Width::Dword, u64::from(number)),
                (4, Width::Qword, 1 << 40),
            ]
            .map(|(index, width, value)| Condition {
                index,
                width,
                comparison: Comparison::Equal(value),
            });
            Rule::new(
                &format!("rule-{number}"),
                prctl,
                Action::Allow,
                conditions.to_vec(),
                "A reason.",
            )
            .expect("a rule")
        })
        .chain([Rule::new(
            "after",
            Syscall::by_name("clone3").expect("a known call"),
            Action::Errno(Errno::by_name("ENOSYS").expect("known")),
            Vec::new(),
            "A reason.",
        )
        .expect("a rule")])
        .collect();
    let policy = Policy::new("A reason.", rules, Vec::new()).expect("a policy");
    let filter = Filter::compile(&policy).expect("a program");
    assert!(filter.instructions().len() > 1000);
    assert_eq!(filter.prove(&policy), Ok(()));
    let after = Call::x86_64(435, [0; 6]);
    assert_eq!(filter.run(&after), policy.evaluate(&after));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn any_policy_compiles_to_a_program_that_is_proved_equal_to_it(policy in policy(6)) {
        let filter = Filter::compile(&policy).expect("a program");
        let installed = Filter::from_bytes(&filter.to_bytes()).expect("verified");
        prop_assert_eq!(installed.prove(&policy), Ok(()));
    }

    #[test]
    fn any_policys_program_answers_each_call_as_the_policy_does(
        policy in policy(4),
        random in proptest::collection::vec(any::<[u64; 6]>(), 4),
    ) {
        let filter = Filter::compile(&policy).expect("a program");
        for rule in policy.rules() {
            let number = rule.syscall().number;
            for arguments in sweep_arguments(&policy, number).into_iter().chain(random.clone()) {
                for call in [
                    Call::x86_64(number, arguments),
                    Call::x32(number, arguments),
                    Call::i386(number, arguments),
                    Call::x86_64(number + 1, arguments),
                ] {
                    prop_assert_eq!(filter.run(&call), policy.evaluate(&call), "{:x?}", call);
                }
            }
        }
    }

    #[test]
    fn any_policys_listing_is_that_of_its_program(policy in policy(2)) {
        let filter = Filter::compile(&policy).expect("a program");
        let decompiled = AcceptedSet::of_filter(&filter);
        prop_assert_eq!(&decompiled, &AcceptedSet::of_policy(&policy));
        if let Ok(listing) = decompiled {
            for rule in policy.rules() {
                for arguments in sweep_arguments(&policy, rule.syscall().number).into_iter().step_by(7) {
                    let call = Call::x86_64(rule.syscall().number, arguments);
                    prop_assert_eq!(listing.answer(&call), policy.evaluate(&call));
                }
            }
        }
    }

    #[test]
    fn a_proof_fails_exactly_where_two_policies_differ(one in policy(2), other in policy(2)) {
        let filter = Filter::compile(&one).expect("a program");
        match filter.prove(&other) {
            Ok(()) => prop_assert_eq!(
                AcceptedSet::of_policy(&one),
                AcceptedSet::of_policy(&other)
            ),
            Err(difference) => {
                prop_assert_eq!(difference.found, one.evaluate(&difference.call));
                prop_assert_eq!(difference.expected, other.evaluate(&difference.call));
                prop_assert_ne!(difference.found, difference.expected);
            }
        }
    }
}
