//! The filters of this tree, proved and tried: they are what their policies
//! say, nothing in them could be left out or narrowed, and the compiler is
//! right for other policies too.
#![cfg(all(target_os = "linux", not(lazaret_no_profile)))]
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests may stop the test"
)]

mod documentation;
mod mutations;
mod oracle;
mod programs;
mod proofs;
mod properties;
mod sweep;

use lazaret_profile::filter::Filter;
use lazaret_profile::policy::{BUILT_IN, Policy};

/// The policies of this tree with their compiled filters.
fn built_in() -> Vec<(&'static str, Policy, Filter)> {
    BUILT_IN
        .iter()
        .map(|(id, text)| {
            let policy = Policy::parse(text).unwrap_or_else(|error| panic!("{id}: {error}"));
            let filter = Filter::compile(&policy).unwrap_or_else(|error| panic!("{id}: {error}"));
            (*id, policy, filter)
        })
        .collect()
}
