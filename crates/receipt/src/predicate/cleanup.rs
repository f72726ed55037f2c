//! The receipt of a cleanup: positive proof that the processes of an earlier
//! attempt are gone, or that there is none. Type
//! `https://lazaret.invalid/receipt/cleanup/v1`.
//!
//! It is written by recovery, apart from the run's own receipt, and says nothing
//! of the output. Absence of a process in some table is no proof and has no word
//! here.

use lazaret_contract::digest::Sha256Digest;

use super::Predicate;
use super::shared::{
    Authority, Descriptor, Establishes, NoLearning, NotEstablished, Platform, Reach, check_names,
    check_only_subjects, check_subject,
};
use crate::part::{At, FormError, record, words};
use crate::statement::{Statement, StatementError, Subject};

/// The subject that is the launch record of the attempt.
pub const LAUNCH_SUBJECT: &str = "run/launched.json";

words! {
    /// What proves that nothing is left (DESIGN section 3, after a crash).
    pub enum CleanupProof {
        /// The warden's authenticated record.
        WardenRecord = "warden-record",
        /// Same machine, boot and time namespace: the recorded process is gone, by
        /// pidfd and start time.
        SameBootProcessGone = "same-boot-process-gone",
        /// Same machine, another boot.
        OtherBoot = "other-boot",
        /// Nothing did: the attempt stays Unknown and holds its capacity.
        None = "none",
    }
}

record! {
    /// What was found of an earlier attempt.
    pub struct Cleanup {
        /// Whose attempt it was.
        "authority" => authority: Authority,
        /// What this receipt does not establish.
        "does_not_establish" => does_not_establish: Vec<NotEstablished>,
        /// What it does.
        "establishes" => establishes: Vec<Establishes>,
        /// Private originals, by name in order.
        "evidence" => evidence: Vec<Descriptor>,
        /// Digest of the launch record.
        "launched_sha256" => launched_sha256: Sha256Digest,
        /// Always true.
        "no_learning" => no_learning: NoLearning,
        /// Where it was observed.
        "platform" => platform: Platform,
        /// The proof.
        "proof" => proof: CleanupProof,
    }
}

impl Cleanup {
    /// The receipt.
    ///
    /// # Errors
    /// When it breaks a rule.
    pub fn statement(
        authority: Authority,
        launched_sha256: Sha256Digest,
        proof: CleanupProof,
        platform: Platform,
        mut evidence: Vec<Descriptor>,
    ) -> Result<Statement, StatementError> {
        evidence.sort_by(|a, b| a.name.cmp(&b.name));
        let reach = reach(proof);
        let cleanup = Self {
            authority,
            does_not_establish: reach.does_not_establish,
            establishes: reach.establishes,
            evidence,
            launched_sha256,
            no_learning: NoLearning,
            platform,
            proof,
        };
        let subject = LAUNCH_SUBJECT
            .parse()
            .map(|name| Subject::new(name, launched_sha256));
        Statement::new(subject.into_iter().collect(), Predicate::Cleanup(cleanup))
    }

    pub(crate) fn check(&self, subjects: &[Subject]) -> Result<(), FormError> {
        let root = At::Root;
        let at = root.member("predicate");
        check_subject(subjects, LAUNCH_SUBJECT, self.launched_sha256, &at)?;
        check_only_subjects(subjects, &[LAUNCH_SUBJECT])?;
        check_names(
            self.evidence.iter().map(|one| &one.name),
            &at.member("evidence"),
        )?;
        reach(self.proof).check(&self.establishes, &self.does_not_establish, &at)
    }
}

fn reach(proof: CleanupProof) -> Reach {
    let open = vec![NotEstablished::OutputTruth, NotEstablished::OperatorHonesty];
    match proof {
        CleanupProof::None => Reach::new(vec![], [open, vec![NotEstablished::Cleanup]].concat()),
        _ => Reach::new(vec![Establishes::CleanupProved], open),
    }
}
