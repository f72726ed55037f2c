//! The digests that were accepted for each profile.
//!
//! `third_party/profiles/<id>/accepted.json` is compiled into the binary: no
//! flag, variable or file changes it afterwards. Accepted means that somebody
//! ran `cargo xtask accept-closure` and committed the result; whether somebody
//! who did not write the code has looked is another field, `review`, and as
//! long as it is null every text says *accepted, not independently reviewed*.
//! This module must never open a file and never give a default.

use lazaret_contract::digest::Sha256Digest;
use serde::{Deserialize, Serialize};

use crate::pins::{PROFILE_V1, PROFILE_V2_CANDIDATE};

/// The version of the format.
pub const ACCEPTED_SCHEMA: &str = "lazaret-accepted/1";

/// What every text says of an accepted closure without a review.
pub const NOT_REVIEWED: &str = "accepted, not independently reviewed";

/// Why a text is not a valid acceptance.
#[derive(Debug, thiserror::Error)]
pub enum AcceptedError {
    /// Not JSON of the expected shape.
    #[error("acceptance is not of the expected form: {0}")]
    Form(#[from] serde_json::Error),
    /// Another format.
    #[error("acceptance has the schema {0:?} instead of {ACCEPTED_SCHEMA:?}")]
    Schema(String),
    /// Of another profile.
    #[error("acceptance is of profile {found:?} and lies in the place of {wanted:?}")]
    Profile {
        /// The profile in the text.
        found: String,
        /// The profile that was asked for.
        wanted: String,
    },
}

/// The record of a review by somebody who did not write the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// Who looked.
    pub reviewer: String,
    /// When, as `YYYY-MM-DD`.
    pub date: String,
    /// Digest of the reviewer's report.
    pub report_sha256: Sha256Digest,
}

/// The contents of one `accepted.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// [`ACCEPTED_SCHEMA`].
    pub schema: String,
    /// The profile.
    pub profile: String,
    /// Digest of the closure's manifest.
    pub closure: Sha256Digest,
    /// Digest of bubblewrap.
    pub bwrap: Sha256Digest,
    /// Digest of the launcher.
    pub launcher: Sha256Digest,
    /// Digest of the filter.
    pub filter: Sha256Digest,
    /// Digest of the inputs that gave them: pins, options, policy, launcher and build sources.
    pub inputs: Sha256Digest,
    /// The independent review, if there was one.
    pub review: Option<Review>,
}

impl Accepted {
    /// Reads the text of an `accepted.json`. The text `null` means that nothing has been
    /// accepted yet for this profile.
    ///
    /// # Errors
    /// When the text has another form, or is of another profile.
    pub fn parse(text: &str, profile_id: &str) -> Result<Option<Self>, AcceptedError> {
        let Some(accepted) = serde_json::from_str::<Option<Self>>(text)? else {
            return Ok(None);
        };
        if accepted.schema != ACCEPTED_SCHEMA {
            return Err(AcceptedError::Schema(accepted.schema));
        }
        if accepted.profile != profile_id {
            let wanted = profile_id.to_owned();
            return Err(AcceptedError::Profile {
                found: accepted.profile,
                wanted,
            });
        }
        Ok(Some(accepted))
    }

    /// The text of this acceptance, with a newline at the end.
    ///
    /// # Errors
    /// Never for a value of this type; serde's signature asks for it.
    pub fn to_text(&self) -> Result<String, AcceptedError> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// How this acceptance is called in every text.
    pub fn standing(&self) -> &'static str {
        if self.review.is_some() {
            "accepted and independently reviewed"
        } else {
            NOT_REVIEWED
        }
    }
}

/// The acceptance of `profile_id` that is compiled in, or none: an unknown profile, nothing
/// accepted yet, or a text that is not valid (which a test of this module excludes).
pub fn built_in(profile_id: &str) -> Option<Accepted> {
    let text = built_in_text(profile_id)?;
    Accepted::parse(text, profile_id).ok().flatten()
}

fn built_in_text(profile_id: &str) -> Option<&'static str> {
    match profile_id {
        PROFILE_V1 => Some(include_str!(
            "../../../third_party/profiles/json-python-bwrap-v1/accepted.json"
        )),
        PROFILE_V2_CANDIDATE => Some(include_str!(
            "../../../third_party/profiles/json-python-bwrap-v2-candidate/accepted.json"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pins::PROFILE_IDS;

    fn sample() -> Accepted {
        let digest = Sha256Digest::of;
        Accepted {
            schema: ACCEPTED_SCHEMA.to_owned(),
            profile: PROFILE_V1.to_owned(),
            closure: digest(b"closure"),
            bwrap: digest(b"bwrap"),
            launcher: digest(b"launcher"),
            filter: digest(b"filter"),
            inputs: digest(b"inputs"),
            review: None,
        }
    }

    #[test]
    fn every_profile_has_a_valid_acceptance_or_an_explicit_none() {
        for id in PROFILE_IDS {
            let text = built_in_text(id).unwrap();
            let parsed = Accepted::parse(text, id).unwrap();
            assert_eq!(built_in(id), parsed);
        }
        assert_eq!(built_in("json-python-bwrap-v3"), None);
    }

    #[test]
    fn an_acceptance_reads_back_as_it_was_written() {
        let accepted = sample();
        let text = accepted.to_text().unwrap();
        assert_eq!(Accepted::parse(&text, PROFILE_V1).unwrap(), Some(accepted));
        assert_eq!(Accepted::parse("null\n", PROFILE_V1).unwrap(), None);
    }

    #[test]
    fn an_acceptance_of_another_profile_or_format_is_refused() {
        let text = sample().to_text().unwrap();
        let other = Accepted::parse(&text, PROFILE_V2_CANDIDATE);
        assert!(matches!(other, Err(AcceptedError::Profile { .. })));
        let later = text.replace("lazaret-accepted/1", "lazaret-accepted/2");
        assert!(matches!(
            Accepted::parse(&later, PROFILE_V1),
            Err(AcceptedError::Schema(_))
        ));
        let extra = text.replacen('{', "{\"extra\": 1,", 1);
        assert!(matches!(
            Accepted::parse(&extra, PROFILE_V1),
            Err(AcceptedError::Form(_))
        ));
    }

    #[test]
    fn without_a_review_nothing_claims_one() {
        let mut accepted = sample();
        assert_eq!(accepted.standing(), "accepted, not independently reviewed");
        accepted.review = Some(Review {
            reviewer: "A. Reviewer".to_owned(),
            date: "2026-01-01".to_owned(),
            report_sha256: Sha256Digest::of(b"report"),
        });
        assert_eq!(accepted.standing(), "accepted and independently reviewed");
    }
}
