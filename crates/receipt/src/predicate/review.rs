//! The receipt of a review: SLSA verification summary v1 of a closure.
//!
//! `ci/review/README.md` says who may sign one and what has to be looked at; its
//! digest is the policy. The key's purpose is `review`, which no key of the authors
//! has. A review that failed is a receipt too. It claims no SLSA level.

use lazaret_contract::digest::Sha256Digest;

use super::Predicate;
use super::build::check_closure;
use super::shared::{CLOSURE_SUBJECT, Descriptor, NotEstablished, check_only_subjects};
use crate::part::{At, FormError, constant, record, words};
use crate::statement::{DigestSet, Statement, StatementError, Subject};
use crate::text::{Id, Time, Uri, UserText};

/// The policy that a review follows; the digest beside it is that of the page.
pub const REVIEW_POLICY: &str = "https://lazaret.invalid/review/policy/v1";

constant! {
    /// [`REVIEW_POLICY`].
    pub struct ReviewPolicyUri = REVIEW_POLICY;
}

constant! {
    /// The version of the SLSA form.
    pub struct SlsaVersion = "1.0";
}

constant! {
    /// Always true: who wrote any of the code may not sign (ADR-013).
    pub struct WroteNoneOfIt = true;
}

words! {
    /// The result.
    pub enum ReviewResult {
        /// Nothing stands against using the closure.
        Passed = "PASSED",
        /// Something does.
        Failed = "FAILED",
    }
}

words! {
    /// What was verified. Ours, not a level of SLSA.
    pub enum VerifiedLevel {
        /// The closure was rebuilt to the same bytes and reviewed whole.
        ClosureReviewed = "LAZARET_CLOSURE_REVIEWED",
        /// The review failed.
        Failed = "FAILED",
    }
}

record! {
    /// A text by its name and digest.
    pub struct PolicyReference {
        /// Digest of the page.
        "digest" => digest: DigestSet,
        /// The name of the policy.
        "uri" => uri: ReviewPolicyUri,
    }
}

record! {
    /// Who verified.
    pub struct Verifier {
        /// A name of theirs under `https://lazaret.invalid/reviewer/`.
        "id" => id: Uri,
    }
}

record! {
    /// A receipt that the reviewer looked at.
    pub struct InputAttestation {
        /// Digest of the receipt's bytes.
        "digest" => digest: DigestSet,
    }
}

record! {
    /// What is ours of the summary.
    pub struct ReviewDetails {
        /// What the review does not establish.
        "does_not_establish" => does_not_establish: Vec<NotEstablished>,
        /// The profile.
        "profile_id" => profile_id: Id,
        /// The reviewer's report.
        "report" => report: Descriptor,
        /// Who looked, in their own words.
        "reviewer" => reviewer: UserText,
        /// Always true.
        "wrote_none_of_it" => wrote_none_of_it: WroteNoneOfIt,
    }
}

record! {
    /// SLSA verification summary v1.
    pub struct Review {
        /// The receipts that were looked at, by digest in order.
        "inputAttestations" => input_attestations: Vec<InputAttestation>,
        /// What is ours.
        "lazaret" => details: ReviewDetails,
        /// What was followed.
        "policy" => policy: PolicyReference,
        /// The closure as a package URL.
        "resourceUri" => resource_uri: Uri,
        /// The version of the SLSA form.
        "slsaVersion" => slsa_version: SlsaVersion,
        /// When the review ended.
        "timeVerified" => time_verified: Time,
        /// The result.
        "verificationResult" => verification_result: ReviewResult,
        /// What was verified.
        "verifiedLevels" => verified_levels: Vec<VerifiedLevel>,
        /// Who verified.
        "verifier" => verifier: Verifier,
    }
}

/// A review, to make a receipt of.
#[derive(Debug, Clone)]
pub struct ReviewFacts {
    /// The profile.
    pub profile_id: Id,
    /// Digest of the closure's manifest.
    pub closure_sha256: Sha256Digest,
    /// Digest of `ci/review/README.md` as it was followed.
    pub policy_sha256: Sha256Digest,
    /// The receipts that were looked at.
    pub looked_at: Vec<Sha256Digest>,
    /// The reviewer's report.
    pub report: Descriptor,
    /// Who looked.
    pub reviewer: UserText,
    /// A name of theirs under `https://lazaret.invalid/reviewer/`.
    pub reviewer_id: Uri,
    /// When the review ended.
    pub reviewed_at: Time,
    /// The result.
    pub result: ReviewResult,
}

impl ReviewFacts {
    /// The receipt.
    ///
    /// # Errors
    /// When it breaks a rule.
    pub fn statement(mut self) -> Result<Statement, StatementError> {
        self.looked_at.sort();
        let root = At::Root;
        let resource_uri = resource_uri(&self.profile_id, self.closure_sha256)
            .parse()
            .map_err(|error: crate::text::TextError| root.error(error.to_string()))?;
        let review = Review {
            input_attestations: self
                .looked_at
                .into_iter()
                .map(|sha256| InputAttestation {
                    digest: sha256.into(),
                })
                .collect(),
            details: ReviewDetails {
                does_not_establish: NOT_BY_A_REVIEW.to_vec(),
                profile_id: self.profile_id,
                report: self.report,
                reviewer: self.reviewer,
                wrote_none_of_it: WroteNoneOfIt,
            },
            policy: PolicyReference {
                digest: self.policy_sha256.into(),
                uri: ReviewPolicyUri,
            },
            resource_uri,
            slsa_version: SlsaVersion,
            time_verified: self.reviewed_at,
            verification_result: self.result,
            verified_levels: vec![level_of(self.result)],
            verifier: Verifier {
                id: self.reviewer_id,
            },
        };
        let subject = CLOSURE_SUBJECT
            .parse()
            .map(|name| Subject::new(name, self.closure_sha256));
        Statement::new(subject.into_iter().collect(), Predicate::Review(review))
    }
}

const NOT_BY_A_REVIEW: &[NotEstablished] = &[
    NotEstablished::NoPlatformFaults,
    NotEstablished::OtherAttacks,
];

fn level_of(result: ReviewResult) -> VerifiedLevel {
    match result {
        ReviewResult::Passed => VerifiedLevel::ClosureReviewed,
        ReviewResult::Failed => VerifiedLevel::Failed,
    }
}

fn resource_uri(profile_id: &Id, closure: Sha256Digest) -> String {
    format!("pkg:generic/{profile_id}@{closure}")
}

impl Review {
    pub(crate) fn check(&self, subjects: &[Subject]) -> Result<(), FormError> {
        let root = At::Root;
        let at = root.member("predicate");
        check_only_subjects(subjects, &[CLOSURE_SUBJECT])?;
        // That the subject is the closure of the resource's name ties both together.
        let closure = crate::statement::find(subjects, CLOSURE_SUBJECT)
            .ok_or_else(|| root.member("subject").error("lacks the closure"))?;
        check_closure(subjects, closure, &at)?;
        if self.resource_uri.as_str() != resource_uri(&self.details.profile_id, closure) {
            return Err(at
                .member("resourceUri")
                .error("is not the name of the subject"));
        }
        if self.verified_levels != [level_of(self.verification_result)] {
            return Err(at
                .member("verifiedLevels")
                .error("is not what the result says"));
        }
        if !self
            .verifier
            .id
            .as_str()
            .starts_with("https://lazaret.invalid/reviewer/")
        {
            return Err(at.member("verifier").error("is not the name of a reviewer"));
        }
        let attestations = &self.input_attestations;
        if !attestations.is_sorted_by(|a, b| a.digest.sha256 < b.digest.sha256) {
            let problem = "wants every receipt once and in order";
            return Err(at.member("inputAttestations").error(problem));
        }
        if self.details.does_not_establish != NOT_BY_A_REVIEW {
            let problem = "is not what a review leaves open";
            return Err(at
                .member("lazaret")
                .member("does_not_establish")
                .error(problem));
        }
        Ok(())
    }
}
