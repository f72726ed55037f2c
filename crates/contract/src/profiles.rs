//! The profiles that packages can be bound to.
//!
//! Only their names and standing are known here; what they consist of is the
//! business of the crate `lazaret-profile`.

use crate::digest::Sha256Digest;

/// The standing of a profile (DESIGN.md section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProfileStatus {
    /// Serves by default.
    Accepted,
    /// Rehearses the next release; everything that it touches says so.
    Candidate,
}

impl ProfileStatus {
    /// The word that descriptors, receipts and messages use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Candidate => "candidate",
        }
    }
}

/// The profile of this release.
pub const PROFILE_V1: &str = "json-python-bwrap-v1";

/// The candidate for the next one.
pub const PROFILE_V2_CANDIDATE: &str = "json-python-bwrap-v2-candidate";

/// The ids of all profiles.
pub const PROFILE_IDS: [&str; 2] = [PROFILE_V1, PROFILE_V2_CANDIDATE];

/// The standing of the profile with this id; `None` when there is no such one.
pub fn status_of(profile_id: &str) -> Option<ProfileStatus> {
    match profile_id {
        PROFILE_V1 => Some(ProfileStatus::Accepted),
        PROFILE_V2_CANDIDATE => Some(ProfileStatus::Candidate),
        _ => None,
    }
}

/// What a package is bound to: a profile, and the closure of it that was
/// accepted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The profile's id, one of [`PROFILE_IDS`].
    pub profile: String,
    /// The digest of the closure's manifest.
    pub closure: Sha256Digest,
}
