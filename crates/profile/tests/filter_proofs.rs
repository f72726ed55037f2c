//! The filters of this tree against their policies.
#![cfg(all(target_os = "linux", not(lazaret_no_profile)))]

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

#[test]
fn every_path_of_the_compiled_program_gives_what_the_policy_says() {
    for (id, policy, filter) in built_in() {
        let installed = Filter::from_bytes(&filter.to_bytes()).expect(id);
        assert_eq!(installed.prove(&policy), Ok(()), "{id}");
    }
}
