//! The system call policy as data: what the package's process may ask of the
//! kernel, rule by rule, each with its reason.
//!
//! `third_party/profiles/<id>/policy.toml` is the source; the filter that the
//! launcher installs is compiled from it ([`crate::filter`]), and the table in
//! `docs/filter.md` is printed from it. This module says what a policy means
//! ([`Policy::evaluate`]). It must never know how a filter is built, and it has
//! no way to make a policy that allows by default, ignores the architecture or
//! lets an x32 call through: those three are not in the file.

mod call;
pub mod constants;
mod errno;
mod exercises;
#[cfg(all(target_os = "linux", not(lazaret_no_profile)))]
mod markdown;
mod parse;
mod rule;
pub mod signatures;
mod syscalls;

use std::collections::BTreeSet;

pub use call::{ARGUMENT_COUNT, AUDIT_ARCH_I386, AUDIT_ARCH_X86_64, Call, X32_SYSCALL_BIT};
pub use errno::Errno;
pub use exercises::{EXERCISES, Exercise};
#[cfg(all(target_os = "linux", not(lazaret_no_profile)))]
pub use markdown::{MarkdownError, policy_markdown};
pub use parse::{PolicyError, PolicyErrorKind};
pub use rule::{Action, CONDITIONS_MAX, Comparison, Condition, Rule, RuleError};
pub use signatures::{Parameter, Width, parameters_of};
pub use syscalls::Syscall;

/// The most rules a policy may have.
pub const RULES_MAX: usize = 256;

/// The policies of the profiles of this tree, by profile id.
pub const BUILT_IN: &[(&str, &str)] = &[
    (
        "json-python-bwrap-v1",
        include_str!("../../../third_party/profiles/json-python-bwrap-v1/policy.toml"),
    ),
    (
        "json-python-bwrap-v2-candidate",
        include_str!("../../../third_party/profiles/json-python-bwrap-v2-candidate/policy.toml"),
    ),
];

/// The text of a profile's `policy.toml`, as it is in this tree.
pub fn built_in(profile_id: &str) -> Option<&'static str> {
    BUILT_IN
        .iter()
        .find(|(id, _)| *id == profile_id)
        .map(|&(_, text)| text)
}

/// A call number that the kernel does not show to filters at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exemption {
    /// The call.
    pub syscall: Syscall,
    /// Why the kernel exempts it, and why that is no way out.
    pub reason: String,
}

/// A checked policy. Everything that no rule matches is killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    default_reason: String,
    rules: Vec<Rule>,
    exemptions: Vec<Exemption>,
}

/// Why a list of rules is not a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleListError {
    /// A filter that allows nothing is a mistake.
    #[error("a policy of 1 to {RULES_MAX} rules is wanted")]
    Count,
    /// Two rules would answer to one name.
    #[error("the id {0:?} is used twice")]
    DuplicateId(String),
    /// The rules of one call are read from top to bottom; scattered, nobody would see the order.
    #[error("rule {0:?} does not stand with the other rules of its call")]
    Scattered(String),
    /// A rule behind one without conditions.
    #[error("rule {0:?} can never match, because an earlier rule of its call has no conditions")]
    Unreachable(String),
    /// An exempted call is not shown to the filter, so a rule for it would be a lie.
    #[error("rule {0:?} is about a call that the kernel exempts from filters")]
    Exempt(String),
    /// One line for each exempted number.
    #[error("{0} is listed as exempt twice")]
    DuplicateExemption(&'static str),
    /// An exemption or the default without a reason.
    #[error("a reason is missing or not one line of visible text")]
    Reason,
}

impl Policy {
    /// Reads `policy.toml`. Unknown keys, names and values are refused.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        parse::parse(text)
    }

    /// The policy of a profile of this tree.
    pub fn of_profile(profile_id: &str) -> Option<Result<Self, PolicyError>> {
        built_in(profile_id).map(Self::parse)
    }

    /// A policy from parts that are checked one by one already.
    pub fn new(
        default_reason: &str,
        rules: Vec<Rule>,
        exemptions: Vec<Exemption>,
    ) -> Result<Self, RuleListError> {
        if rules.is_empty() || rules.len() > RULES_MAX {
            return Err(RuleListError::Count);
        }
        let reasons = exemptions.iter().map(|exemption| exemption.reason.as_str());
        if !reasons.chain([default_reason]).all(rule::is_reason) {
            return Err(RuleListError::Reason);
        }
        let mut exempt = BTreeSet::new();
        for exemption in &exemptions {
            if !exempt.insert(exemption.syscall) {
                return Err(RuleListError::DuplicateExemption(exemption.syscall.name));
            }
        }
        check_order(&rules, &exempt)?;
        Ok(Self {
            default_reason: default_reason.to_owned(),
            rules,
            exemptions,
        })
    }

    /// The rules in the order of the file. The first one that matches decides.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Why everything else is killed.
    pub fn default_reason(&self) -> &str {
        &self.default_reason
    }

    /// The calls that never reach a filter.
    pub fn exemptions(&self) -> &[Exemption] {
        &self.exemptions
    }

    /// Whether the kernel may exempt this native call from filters.
    pub fn is_exempt(&self, number: u32) -> bool {
        self.exemptions
            .iter()
            .any(|exemption| exemption.syscall.number == number)
    }

    /// What the policy says about a call: a foreign architecture and the x32
    /// bit kill; then the first rule that matches; else the call kills.
    pub fn evaluate(&self, call: &Call) -> Action {
        if call.architecture != AUDIT_ARCH_X86_64 || call.number & X32_SYSCALL_BIT != 0 {
            return Action::KillProcess;
        }
        self.rules
            .iter()
            .find(|rule| rule.matches(call))
            .map_or(Action::KillProcess, Rule::action)
    }

    /// The same policy with its rules changed, checked again. Tests use it to
    /// show that each rule is needed and none is wider than it must be.
    pub fn with_rules(&self, rules: Vec<Rule>) -> Result<Self, RuleListError> {
        Self::new(&self.default_reason, rules, self.exemptions.clone())
    }

    /// The same policy without one rule; nothing if there is no such rule.
    pub fn without_rule(&self, id: &str) -> Option<Self> {
        let rules: Vec<Rule> = self
            .rules
            .iter()
            .filter(|rule| rule.id() != id)
            .cloned()
            .collect();
        if rules.len() == self.rules.len() {
            return None;
        }
        self.with_rules(rules).ok()
    }
}

fn check_order(rules: &[Rule], exempt: &BTreeSet<Syscall>) -> Result<(), RuleListError> {
    let mut ids = BTreeSet::new();
    let mut left_behind = BTreeSet::new();
    let mut previous: Option<&Rule> = None;
    for rule in rules {
        if !ids.insert(rule.id()) {
            return Err(RuleListError::DuplicateId(rule.id().to_owned()));
        }
        if exempt.contains(&rule.syscall()) {
            return Err(RuleListError::Exempt(rule.id().to_owned()));
        }
        if let Some(before) = previous {
            if before.syscall() != rule.syscall() {
                left_behind.insert(before.syscall());
            } else if before.conditions().is_empty() {
                return Err(RuleListError::Unreachable(rule.id().to_owned()));
            }
        }
        if left_behind.contains(&rule.syscall()) {
            return Err(RuleListError::Scattered(rule.id().to_owned()));
        }
        previous = Some(rule);
    }
    Ok(())
}
