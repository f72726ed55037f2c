//! `docs/filter.md` is what the policy prints.

use std::path::Path;

use lazaret_profile::policy::policy_markdown;

use super::built_in;

#[test]
fn the_committed_page_is_the_one_that_the_policy_prints() {
    let profiles: Vec<&str> = built_in().iter().map(|(id, ..)| *id).collect();
    let (_, policy, _) = built_in().swap_remove(0);
    let page = policy_markdown(&policy, &profiles).expect("a page");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/filter.md");
    if std::env::var_os("LAZARET_BLESS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == page,
        "docs/filter.md is not what the policy prints; \
         LAZARET_BLESS=1 cargo test -p lazaret-profile --test filter writes it"
    );
}
