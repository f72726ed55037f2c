//! The accepted closure, found and held to its digest.
//!
//! A closure lies at `<place>/<profile>/<digest>/`. Where it lies is convenience;
//! what decides is that the bytes of its manifest have the accepted digest, and
//! later that each file has the manifest's (the warden opens and hashes them).
//!
//! Nothing here may choose among closures, or accept one for being the only one.

use std::path::{Path, PathBuf};

use lazaret_contract::digest::Sha256Digest;
use lazaret_custody::{FileRules, HeldDir, Refusal, RelativeName, ancestry, filesystem};
use lazaret_profile::accepted::{self, Accepted};
use lazaret_profile::manifest::{ClosureManifest, MANIFEST_BYTES_MAX, MANIFEST_FILE, Role};
use lazaret_profile::pins::{PROFILE_IDS, PROFILE_V1};

use crate::acting::Acting;
use crate::blocked::{Blocked, Cause};

const WHAT: &str = "the closure";

/// How many entries of a profile's directory are looked at for a message.
const OTHERS_SHOWN_MAX: usize = 8;

/// A closure whose manifest has the accepted digest. Its files have not been read.
#[derive(Debug)]
pub struct Closure {
    /// Where it lies.
    pub dir: PathBuf,
    /// Its manifest.
    pub manifest: ClosureManifest,
    /// The digest of the manifest's bytes: the accepted one.
    pub digest: Sha256Digest,
    /// The name of the file system that it is on.
    pub filesystem: &'static str,
}

/// Whether a profile is a candidate: how the next release is rehearsed, never what
/// serves by default (DESIGN.md section 2).
#[must_use]
pub fn is_candidate(profile: &str) -> bool {
    profile != PROFILE_V1
}

/// What this build has accepted for a profile.
///
/// # Errors
/// [`Cause::NotAccepted`] where it has accepted nothing, or does not know it.
pub fn accepted_in_this_build(profile: &str) -> Result<Accepted, Blocked> {
    if !PROFILE_IDS.contains(&profile) {
        let why = format!("there is no profile {profile:?}");
        return Err(Blocked::new(Cause::NotAccepted, "the profile", why)
            .advise(format!("the profiles are: {}", PROFILE_IDS.join(", "))));
    }
    accepted::built_in(profile).ok_or_else(|| {
        let why = format!("this build has accepted no closure of {profile}");
        Blocked::new(Cause::NotAccepted, "the profile", why).advise(format!(
            "cargo xtask build-closure --profile {profile}, then cargo xtask accept-closure, then build again"
        ))
    })
}

/// Finds the accepted closure in the first of `places` that has its digest, and
/// holds it to ancestry, file system and manifest.
///
/// # Errors
/// [`Cause::ClosureMissing`] with the command that builds it; anything else that is
/// wrong with the one that was found.
pub fn find(places: &[PathBuf], accepted: &Accepted, acting: Acting) -> Result<Closure, Blocked> {
    for place in places {
        let dir = place
            .join(&accepted.profile)
            .join(accepted.closure.to_string());
        match HeldDir::open_trusted(&dir, acting.trust()) {
            Ok(held) => return hold(&held, accepted, acting),
            Err(error) if matches!(error.refusal, Refusal::NotFound) => {}
            Err(error) => return Err(Blocked::custody(WHAT, &error)),
        }
    }
    Err(missing(places, accepted))
}

fn hold(held: &HeldDir, accepted: &Accepted, acting: Acting) -> Result<Closure, Blocked> {
    let custody = |error| Blocked::custody(WHAT, &error);
    let filesystem = filesystem::require_fit(held).map_err(custody)?;
    if filesystem::is_noexec(held).map_err(custody)? {
        let why = format!("{} is on a file system mounted noexec", shown(held.path()));
        return Err(Blocked::new(Cause::NoExec, WHAT, why)
            .advise("mount it without noexec, or keep the closure on another file system"));
    }
    if let Some(owner) = acting.run_owner {
        ancestry::check_reachable(held.path(), owner.uid, owner.gid).map_err(|error| {
            Blocked::custody(WHAT, &error).advise(
                "or keep the repository where every user may pass, such as below /srv or /opt; \
                 or start Lazaret as the user whose directory it is",
            )
        })?;
    }
    let name = RelativeName::parse(MANIFEST_FILE.as_bytes())
        .map_err(|error| Blocked::new(Cause::Io, WHAT, error.to_string()))?;
    let rules = FileRules::private(MANIFEST_BYTES_MAX as u64, acting.uid);
    let bytes = held.read_file(&name, rules).map_err(custody)?;
    let digest = Sha256Digest::of(&bytes);
    if digest != accepted.closure {
        let why = format!(
            "{} has a manifest of digest {digest}, accepted is {}",
            shown(held.path()),
            accepted.closure
        );
        return Err(differs(why, accepted));
    }
    let manifest = ClosureManifest::parse(&bytes)
        .map_err(|error| differs(format!("{}: {error}", shown(held.path())), accepted))?;
    require_accepted_files(&manifest, accepted)?;
    Ok(Closure {
        dir: held.path().to_path_buf(),
        manifest,
        digest,
        filesystem,
    })
}

/// The manifest is bound by its digest already; this catches an acceptance that
/// contradicts itself.
fn require_accepted_files(manifest: &ClosureManifest, accepted: &Accepted) -> Result<(), Blocked> {
    let pairs = [
        (Role::Bwrap, accepted.bwrap),
        (Role::Launcher, accepted.launcher),
        (Role::Filter, accepted.filter),
    ];
    for (role, wanted) in pairs {
        let found = manifest.file(role).map(|file| file.sha256);
        if found != Some(wanted) {
            let name = role.file_name();
            let why = format!("its manifest and what was accepted disagree about {name}");
            return Err(differs(why, accepted));
        }
    }
    if manifest.profile != accepted.profile {
        let why = format!("its manifest is of profile {:?}", manifest.profile);
        return Err(differs(why, accepted));
    }
    Ok(())
}

fn differs(why: String, accepted: &Accepted) -> Blocked {
    Blocked::new(Cause::ClosureDiffers, WHAT, why)
        .advise("remove that directory; what is in it was not accepted")
        .advise(build_command(&accepted.profile))
}

fn missing(places: &[PathBuf], accepted: &Accepted) -> Blocked {
    let mut why = format!(
        "the accepted closure {} of {} is not there",
        accepted.closure, accepted.profile
    );
    let others: Vec<String> = places
        .iter()
        .flat_map(|place| others_in(&place.join(&accepted.profile)))
        .collect();
    if !others.is_empty() {
        why.push_str("; what is there was not accepted: ");
        why.push_str(&others.join(", "));
    }
    let mut blocked =
        Blocked::new(Cause::ClosureMissing, WHAT, why).advise(build_command(&accepted.profile));
    let looked: Vec<String> = places.iter().map(|place| shown(place)).collect();
    blocked
        .advice
        .push(format!("it is looked for in: {}", looked.join(", ")));
    blocked
}

/// Names of other closures of the profile, for the message only.
fn others_in(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names
        .filter(|name| name.parse::<Sha256Digest>().is_ok())
        .take(OTHERS_SHOWN_MAX)
        .collect()
}

fn build_command(profile: &str) -> String {
    format!("cargo xtask build-closure --profile {profile}")
}

fn shown(path: &Path) -> String {
    lazaret_custody::error::shown(path)
}

/// `PY_VERSION_HEX` of a final release, from its version (CPython's
/// Include/patchlevel.h).
#[must_use]
pub fn python_version_hex(version: &str) -> Option<u32> {
    const FINAL_RELEASE: u32 = 0xF0;
    let mut hex = 0_u32;
    let mut parts = version.split('.');
    for _ in 0..3 {
        hex = (hex << 8) | u32::from(parts.next()?.parse::<u8>().ok()?);
    }
    if parts.next().is_some() {
        None
    } else {
        Some((hex << 8) | FINAL_RELEASE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_becomes_the_number_that_the_interpreter_reports() {
        assert_eq!(python_version_hex("3.12.8"), Some(0x030c_08f0));
        assert_eq!(python_version_hex("3.13.5"), Some(0x030d_05f0));
        for bad in ["3.12", "3.12.8.1", "3.12.8rc1", "", "3.256.0"] {
            assert_eq!(python_version_hex(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_the_first_profile_is_no_candidate() {
        assert!(!is_candidate(PROFILE_V1));
        assert!(PROFILE_IDS.iter().filter(|id| is_candidate(id)).count() == PROFILE_IDS.len() - 1);
        assert!(is_candidate("anything-else"));
    }

    #[test]
    fn an_unknown_profile_is_refused_with_the_known_ones() {
        let refused = accepted_in_this_build("json-python-bwrap-v9").unwrap_err();
        assert_eq!(refused.cause, Cause::NotAccepted);
        assert!(refused.advice[0].contains(PROFILE_V1));
    }
}
