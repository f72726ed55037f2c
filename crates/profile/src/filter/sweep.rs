//! The calls that are tried to see whether a filter does what its policy says:
//! in the interpreter here, and live by the attack suite.
//!
//! For each rule, arguments that satisfy it, and then each argument varied
//! around that: every single bit flipped, sign- and zero-extended, one more and
//! one less, and the 30 combinations of halves that go wrong in comparisons
//! made of 32-bit pieces (cases G01, G02, G07).

use std::collections::BTreeSet;
use std::ops::Range;

use crate::policy::{Comparison, Policy, Rule};

/// The numbers that are tried: all of the table, all x32-only ones (512 to
/// 547), and what later kernels will add.
pub const NUMBERS_SWEPT: Range<u32> = 0..1024;

/// High and low halves of case G07, in all combinations.
pub fn combined_halves() -> Vec<u64> {
    const HIGH: [u64; 5] = [0, 1, 2, 0x7fff_ffff, 0xffff_ffff];
    const LOW: [u64; 6] = [0, 1, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_ffff];
    HIGH.iter()
        .flat_map(|high| LOW.iter().map(move |low| high << 32 | low))
        .collect()
}

/// Values around one: itself, its neighbours, its extensions, each bit flipped.
pub fn variations(value: u64) -> BTreeSet<u64> {
    let low = value & 0xffff_ffff;
    let mut values: BTreeSet<u64> = [
        value,
        value.wrapping_add(1),
        value.wrapping_sub(1),
        !value,
        low,
        low | 0x1_0000_0000,
        low | 0x7fff_ffff_0000_0000,
        low | 0xffff_ffff_0000_0000,
        low | 0x8000_0000,
        low | 0xffff_ffff_8000_0000,
        value.wrapping_add(0x1_0000_0000),
        value.wrapping_sub(0x1_0000_0000),
    ]
    .into();
    values.extend((0..64).map(|bit| value ^ 1 << bit));
    values
}

/// The argument lists to try for one call number: for a number without rules
/// the combined halves in every place, else variations of what its rules want.
pub fn sweep_arguments(policy: &Policy, number: u32) -> Vec<[u64; 6]> {
    let mut lists = BTreeSet::new();
    for halves in combined_halves() {
        lists.insert([halves; 6]);
    }
    let rules = policy.rules().iter();
    for rule in rules.filter(|rule| rule.syscall().number == number) {
        let satisfied = satisfying(rule);
        lists.insert(satisfied);
        for (place, &wanted) in satisfied.iter().enumerate() {
            for value in variations(wanted).into_iter().chain(combined_halves()) {
                let mut varied = satisfied;
                if let Some(argument) = varied.get_mut(place) {
                    *argument = value;
                }
                lists.insert(varied);
            }
        }
    }
    lists.into_iter().collect()
}

/// Arguments that satisfy a rule with at most one condition for each of them.
pub fn satisfying(rule: &Rule) -> [u64; 6] {
    let mut arguments = [0; 6];
    for condition in rule.conditions() {
        if let Some(argument) = arguments.get_mut(usize::from(condition.index)) {
            *argument = match condition.comparison {
                Comparison::Equal(value)
                | Comparison::AtMost(value)
                | Comparison::AtLeast(value)
                | Comparison::Within(value)
                | Comparison::MaskedEqual { value, .. } => value,
                Comparison::NotEqual(value) => value ^ 1,
                Comparison::Below(value) => value.saturating_sub(1),
                Comparison::Above(value) => value.saturating_add(1),
            };
        }
    }
    arguments
}
