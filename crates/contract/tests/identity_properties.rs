//! Properties of ids, capabilities, digests and pointers.

use lazaret_contract::digest::Sha256Digest;
use lazaret_contract::identity::{AdapterId, Capability, FORMATTER_CAPABILITY, PackageId};
use lazaret_contract::package::{authority_digest, check_path, dependency_digest};
use lazaret_contract::pointer::Pointer;
use lazaret_contract::profiles::Binding;
use proptest::prelude::*;

fn package_ids() -> impl Strategy<Value = PackageId> {
    "[a-c][a-c0-1]{0,2}(-[a-c0-1]{1,2})?(\\.[a-c][a-c0-1]{0,2}){1,4}"
        .prop_filter_map("not an id", |text| text.parse().ok())
}

fn adapter_ids() -> impl Strategy<Value = AdapterId> {
    "[a-c][a-c0-1]{0,3}(-[a-c0-1])?".prop_filter_map("not an id", |text| text.parse().ok())
}

fn digests() -> impl Strategy<Value = Sha256Digest> {
    any::<[u8; 32]>().prop_map(Sha256Digest::from_bytes)
}

proptest! {
    #[test]
    fn different_adapters_derive_different_capabilities(
        one in (package_ids(), adapter_ids()),
        two in (package_ids(), adapter_ids()),
    ) {
        let derived = [&one, &two].map(|(package, adapter)| Capability::derive(package, adapter));
        let texts = derived.clone().map(|capability| capability.to_string());
        prop_assert_eq!(one == two, texts[0] == texts[1]);
        prop_assert_eq!(texts[0].parse::<Capability>(), Ok(derived[0].clone()));
        prop_assert_eq!(one == two, authority_digest(&derived[0]) == authority_digest(&derived[1]));
    }

    #[test]
    fn no_adapter_derives_a_built_in_capability(package in package_ids(), adapter in adapter_ids()) {
        prop_assert_ne!(Capability::derive(&package, &adapter).to_string(), FORMATTER_CAPABILITY);
    }

    #[test]
    fn a_text_that_is_an_id_is_its_own_and_only_spelling(text in any::<String>()) {
        if let Ok(id) = text.parse::<PackageId>() {
            prop_assert_eq!(id.as_str(), &text);
            prop_assert!(text.is_ascii());
        }
        if let Ok(capability) = text.parse::<Capability>() {
            prop_assert_eq!(capability.to_string(), text);
        }
    }

    #[test]
    fn every_part_of_a_dependency_is_in_its_digest(
        closures in (digests(), digests()),
        policies in (digests(), digests()),
        profiles in ("[ab]{1,3}", "[ab]{1,3}"),
    ) {
        let one = (Binding { profile: profiles.0, closure: closures.0 }, policies.0);
        let two = (Binding { profile: profiles.1, closure: closures.1 }, policies.1);
        let same = dependency_digest(&one.0, &one.1) == dependency_digest(&two.0, &two.1);
        prop_assert_eq!(one == two, same);
    }

    #[test]
    fn a_digest_reads_back(digest in digests()) {
        prop_assert_eq!(digest.to_string().parse(), Ok(digest));
    }

    #[test]
    fn a_path_that_passes_cannot_leave_the_package(path in "[a./_-]{0,12}|adapters/[a./]{0,8}|evals/[a./]{0,4}json") {
        if check_path(&path).is_ok() {
            prop_assert!(!path.starts_with('/') && !path.contains("//") && path.split('/').count() <= 2);
            prop_assert!(path.split('/').all(|component| !component.is_empty() && !component.starts_with('.')));
        }
    }

    #[test]
    fn different_places_have_different_pointers(one in prop::collection::vec("[a~/01]{0,3}", 0..4), two in prop::collection::vec("[a~/01]{0,3}", 0..4)) {
        let pointer = |tokens: &[String]| tokens.iter().fold(Pointer::root(), |place, token| place.member(token));
        prop_assert_eq!(one == two, pointer(&one) == pointer(&two));
    }
}
