//! The formatter that comes with Lazaret, bound to the accepted closure and held to
//! the contract, as everything else that is to be approved.

use lazaret_contract::bundled::{Bundled, Verb, guard_formatter};
use lazaret_contract::identity::FORMATTER_ID;
use lazaret_contract::package::{BindingCheck, Package, inspect};
use lazaret_engine::approval::binding;
use lazaret_engine::{Blocked, Cause};
use lazaret_profile::accepted::Accepted;

const WHAT: &str = "the bundled formatter";

/// The formatter in the form that is bound to what was accepted. Its id has exactly
/// one content for each closure, and no other bytes run under it.
pub fn formatter(accepted: &Accepted) -> Result<Package, Blocked> {
    let refuse = |why: String| Blocked::new(Cause::ApprovalDiffers, WHAT, why);
    let bound = binding(accepted);
    let files = Bundled::find(FORMATTER_ID)
        .and_then(|bundled| bundled.bound_to(&bound))
        .ok_or_else(|| refuse(format!("it cannot be bound to {}", accepted.profile)))?;
    let package = inspect(&files, BindingCheck::Accepted(std::slice::from_ref(&bound)))
        .map_err(|problems| refuse(format!("it breaks the contract: {problems:?}")))?;
    guard_formatter(
        &package.manifest.id,
        package.digests.content,
        &bound,
        Verb::Admit,
    )
    .map_err(|error| refuse(error.to_string()))?;
    Ok(package)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lazaret_contract::digest::Sha256Digest;
    use lazaret_profile::accepted::ACCEPTED_SCHEMA;
    use lazaret_profile::pins::PROFILE_IDS;

    fn accepted(profile: &str) -> Accepted {
        let digest = Sha256Digest::of;
        Accepted {
            schema: ACCEPTED_SCHEMA.to_owned(),
            profile: profile.to_owned(),
            closure: digest(b"closure"),
            bwrap: digest(b"bwrap"),
            launcher: digest(b"launcher"),
            filter: digest(b"filter"),
            inputs: digest(b"inputs"),
            review: None,
        }
    }

    #[test]
    fn it_can_be_bound_to_every_profile() {
        for profile in PROFILE_IDS {
            let package = formatter(&accepted(profile)).unwrap();
            assert_eq!(package.descriptor.binding, binding(&accepted(profile)));
            assert_eq!(package.capability.to_string(), "work.json-format.v1");
        }
        assert!(formatter(&accepted("json-python-bwrap-v9")).is_err());
    }
}
