//! The receipt of a refusal: a request that was turned down for what it asked or
//! for whom it came from. Type `https://lazaret.invalid/receipt/refusal/v1`.
//!
//! Refusals of lifecycle transitions are lifecycle receipts; a run that its profile
//! could not bear is Blocked. It must never repeat what the request said: the
//! request is a digest.

use lazaret_contract::digest::Sha256Digest;

use super::Predicate;
use super::run::OutputClaim;
use super::shared::{
    Authority, Establishes, NoLearning, NotEstablished, Platform, Reach, check_only_subjects,
    check_subject,
};
use crate::part::{At, FormError, record};
use crate::statement::{Statement, StatementError, Subject};
use crate::text::{Id, Word};

/// The subject that is the request as it came.
pub const REQUEST_SUBJECT: &str = "request/body";

record! {
    /// What was turned down.
    pub struct Refusal {
        /// Under which authority it was asked, as far as there was one.
        "authority" => authority: Authority,
        /// The capability that was asked for, if one was.
        "capability" => capability: Option<Id>,
        /// What this receipt does not establish.
        "does_not_establish" => does_not_establish: Vec<NotEstablished>,
        /// What it does.
        "establishes" => establishes: Vec<Establishes>,
        /// Always true.
        "no_learning" => no_learning: NoLearning,
        /// Always none.
        "output_claim" => output_claim: OutputClaim,
        /// Where.
        "platform" => platform: Platform,
        /// Why, as a reason code.
        "reason" => reason: Word,
        /// What was asked, as a word, for example `execute-local`.
        "request" => request: Word,
        /// Digest of the request as it came.
        "request_sha256" => request_sha256: Sha256Digest,
    }
}

/// A request that was turned down, to make a receipt of.
#[derive(Debug, Clone)]
pub struct RefusedRequest {
    /// Under which authority it was asked.
    pub authority: Authority,
    /// The capability that was asked for.
    pub capability: Option<Id>,
    /// Where.
    pub platform: Platform,
    /// Why.
    pub reason: Word,
    /// What was asked.
    pub request: Word,
    /// Digest of the request as it came.
    pub request_sha256: Sha256Digest,
}

impl RefusedRequest {
    /// The receipt.
    ///
    /// # Errors
    /// When it breaks a rule.
    pub fn statement(self) -> Result<Statement, StatementError> {
        let reach = reach();
        let subject = REQUEST_SUBJECT
            .parse()
            .map(|name| Subject::new(name, self.request_sha256));
        let refusal = Refusal {
            authority: self.authority,
            capability: self.capability,
            does_not_establish: reach.does_not_establish,
            establishes: reach.establishes,
            no_learning: NoLearning,
            output_claim: OutputClaim::None,
            platform: self.platform,
            reason: self.reason,
            request: self.request,
            request_sha256: self.request_sha256,
        };
        Statement::new(subject.into_iter().collect(), Predicate::Refusal(refusal))
    }
}

fn reach() -> Reach {
    Reach::new(
        vec![Establishes::NothingRan, Establishes::RequestRefused],
        vec![
            NotEstablished::IsolatedExecution,
            NotEstablished::OperatorHonesty,
        ],
    )
}

impl Refusal {
    pub(crate) fn check(&self, subjects: &[Subject]) -> Result<(), FormError> {
        let root = At::Root;
        let at = root.member("predicate");
        check_subject(subjects, REQUEST_SUBJECT, self.request_sha256, &at)?;
        check_only_subjects(subjects, &[REQUEST_SUBJECT])?;
        if self.output_claim != OutputClaim::None {
            return Err(at.member("output_claim").error("a refusal has no output"));
        }
        reach().check(&self.establishes, &self.does_not_establish, &at)
    }
}
