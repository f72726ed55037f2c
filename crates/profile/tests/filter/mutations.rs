//! No rule could go, and none could be wider without being noticed: each such
//! change of the policy changes what is accepted.

use std::collections::BTreeSet;

use lazaret_profile::filter::equal_policies;
use lazaret_profile::policy::{
    Action, Comparison, Condition, EXERCISES, Policy, Rule, RuleListError, Width,
};

use super::built_in;

#[test]
fn without_any_one_rule_the_accepted_set_is_another() {
    for (id, policy, _) in built_in() {
        for rule in policy.rules() {
            let without = policy.without_rule(rule.id()).expect(id);
            let difference = equal_policies(&without, &policy).expect_err(rule.id());
            assert_eq!(difference.expected, rule.action(), "{}", rule.id());
        }
    }
}

#[test]
fn with_any_one_rule_widened_the_accepted_set_is_another() {
    for (id, policy, _) in built_in() {
        let mut tried = 0;
        for (at, rule) in policy.rules().iter().enumerate() {
            for wider in widened(rule) {
                tried += 1;
                let mut rules = policy.rules().to_vec();
                rules.splice(at..=at, [wider.clone()]);
                match policy.with_rules(rules) {
                    Ok(changed) => assert!(
                        equal_policies(&changed, &policy).is_err(),
                        "{id}: {wider:?} accepts no more than {rule:?}"
                    ),
                    // So wide that the rules behind it could never match: refused.
                    Err(RuleListError::Unreachable(_)) => {}
                    Err(error) => panic!("{id}: {error}"),
                }
            }
        }
        assert!(
            tried > policy.rules().len() * 10,
            "{id}: only {tried} tried"
        );
    }
}

#[test]
fn with_any_one_refusal_turned_into_a_permission_the_accepted_set_is_another() {
    for (id, policy, _) in built_in() {
        let mut tried = 0;
        for (at, rule) in policy.rules().iter().enumerate() {
            if rule.action() == Action::Allow {
                continue;
            }
            tried += 1;
            let permission = with(rule, Action::Allow, rule.conditions().to_vec());
            let mut rules = policy.rules().to_vec();
            rules.splice(at..=at, [permission]);
            let changed = policy.with_rules(rules).expect(id);
            assert!(equal_policies(&changed, &policy).is_err(), "{id}: {rule:?}");
        }
        assert!(tried > 0, "{id}");
    }
}

#[test]
fn each_rule_has_an_exercise_and_each_exercise_a_rule() {
    for (id, policy, _) in built_in() {
        let rules: BTreeSet<&str> = policy.rules().iter().map(Rule::id).collect();
        let exercises: BTreeSet<&str> = EXERCISES.iter().map(|(rule, _)| *rule).collect();
        assert_eq!(rules, exercises, "{id}");
        assert_eq!(
            EXERCISES.len(),
            exercises.len(),
            "an exercise is listed twice"
        );
    }
}

#[test]
fn calls_that_must_never_pass_do_not_even_get_an_error_number() {
    // ADR-013 and DESIGN.md section 3; clone3 is the one that answers ENOSYS.
    let forbidden = [
        "fork",
        "vfork",
        "clone",
        "execve",
        "execveat",
        "socket",
        "socketpair",
        "connect",
        "bind",
        "sendto",
        "recvfrom",
        "sendmsg",
        "recvmsg",
        "mount",
        "umount2",
        "pivot_root",
        "chroot",
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "unshare",
        "setns",
        "prctl",
        "seccomp",
        "splice",
        "tee",
        "vmsplice",
        "sendfile",
        "copy_file_range",
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "memfd_create",
        "memfd_secret",
        "keyctl",
        "add_key",
        "request_key",
        "bpf",
        "userfaultfd",
        "flock",
        "kill",
        "tkill",
        "tgkill",
        "setrlimit",
        "prlimit64",
        "personality",
        "arch_prctl",
        "modify_ldt",
        "mprotect",
        "pkey_mprotect",
        "remap_file_pages",
        "shmat",
        "perf_event_open",
        "openat",
        "openat2",
        "open_by_handle_at",
        "chmod",
        "fchmod",
        "fchmodat2",
        "setxattr",
        "unlink",
        "rename",
        "link",
        "symlink",
        "mkdir",
        "restart_syscall",
        "rt_sigreturn",
        "dup2",
        "dup3",
        "close_range",
        "pidfd_open",
        "pidfd_getfd",
        "landlock_create_ruleset",
        "map_shadow_stack",
        "exit",
    ];
    for (id, policy, filter) in built_in() {
        for name in forbidden {
            let syscall = lazaret_profile::policy::Syscall::by_name(name).expect(name);
            assert!(
                policy.rules().iter().all(|rule| rule.syscall() != syscall),
                "{id}: {name}"
            );
            for arguments in lazaret_profile::filter::sweep_arguments(&policy, syscall.number) {
                let call = lazaret_profile::policy::Call::x86_64(syscall.number, arguments);
                assert_eq!(filter.run(&call), Action::KillProcess, "{id}: {name}");
            }
        }
    }
}

/// Every way to make a rule a little wider: a condition less, a bit less
/// compared, a bound one further.
fn widened(rule: &Rule) -> Vec<Rule> {
    let mut wider = Vec::new();
    for (at, condition) in rule.conditions().iter().enumerate() {
        let mut fewer = rule.conditions().to_vec();
        fewer.remove(at);
        wider.push(with(rule, rule.action(), fewer));
        for comparison in widened_comparisons(condition) {
            let mut conditions = rule.conditions().to_vec();
            if let Some(changed) = conditions.get_mut(at) {
                changed.comparison = comparison;
            }
            wider.push(with(rule, rule.action(), conditions));
        }
    }
    wider
}

fn widened_comparisons(condition: &Condition) -> Vec<Comparison> {
    let width = condition.width.mask();
    let bits = match condition.width {
        Width::Dword => 0..32,
        Width::Qword => 0..64,
    };
    match condition.comparison {
        Comparison::Equal(value) => bits
            .map(|bit| {
                let mask = width & !(1 << bit);
                Comparison::MaskedEqual {
                    mask,
                    value: value & mask,
                }
            })
            .collect(),
        Comparison::MaskedEqual { mask, value } => bits
            .filter(|bit| mask >> bit & 1 == 1 && mask.count_ones() > 1)
            .map(|bit| Comparison::MaskedEqual {
                mask: mask & !(1 << bit),
                value: value & !(1 << bit),
            })
            .collect(),
        Comparison::Within(value) => bits
            .filter(|bit| value >> bit & 1 == 0)
            .map(|bit| Comparison::Within(value | 1 << bit))
            .collect(),
        Comparison::AtMost(bound) => vec![Comparison::AtMost(bound + 1)],
        Comparison::Below(bound) => vec![Comparison::Below(bound + 1)],
        Comparison::AtLeast(bound) => vec![Comparison::AtLeast(bound - 1)],
        Comparison::Above(bound) => vec![Comparison::Above(bound - 1)],
        Comparison::NotEqual(_) => Vec::new(),
    }
}

fn with(rule: &Rule, action: Action, conditions: Vec<Condition>) -> Rule {
    Rule::new(rule.id(), rule.syscall(), action, conditions, rule.reason())
        .unwrap_or_else(|error| panic!("{}: {error}", rule.id()))
}

#[test]
fn the_two_profiles_have_one_policy_or_a_reason_to_differ() {
    let texts: BTreeSet<String> = built_in()
        .iter()
        .map(|(_, policy, _): &(_, Policy, _)| format!("{policy:?}"))
        .collect();
    assert_eq!(
        texts.len(),
        1,
        "the profiles' policies differ: docs/filter.md shows one"
    );
}
