//! Where the profile does not exist, everything else works and the profile is
//! *unsupported, Blocked*.

#![cfg(not(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile))))]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use support::{DOCUMENT, Place};

#[test]
fn format_is_blocked_and_makes_nothing() {
    let place = Place::new();
    let said = place.call_with_input(&["format", "-"], DOCUMENT.as_bytes());
    assert_eq!((said.code, said.out.as_str()), (Some(3), ""));
    assert!(said.err.contains("Blocked: the profile"), "{}", said.err);
    assert!(said.err.contains("unsupported"), "{}", said.err);
    assert_eq!(place.home_entries(), Vec::<String>::new());
}

#[test]
fn doctor_says_unsupported_and_blocked() {
    let place = Place::new();
    let said = place.call(&["doctor"]);
    assert_eq!(said.code, Some(3));
    assert!(said.out.contains("Blocked  platform"), "{}", said.out);
    assert!(said.out.contains("unsupported"), "{}", said.out);
    let said = place.call(&["doctor", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["ready"], false);
    assert_eq!(report["probes"][0]["cause"], "unsupported");
}

#[test]
fn bad_input_is_still_told_by_its_reason() {
    let said = Place::new().call_with_input(&["format", "-"], b"{\"a\":1,\"a\":1}");
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("duplicate_key"), "{}", said.err);
}
