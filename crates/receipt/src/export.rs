//! Everything that concerns one task or package, as files that verify elsewhere.
//!
//! The receipts of the task or package, and those of every closure and package that
//! they name: builds, bills of materials, attack runs, reviews, lifecycle. Beside
//! each its proof of inclusion and its bundle, and the log with the checkpoint. No
//! trust file is among them: whom to believe has to come another way. Nothing here
//! verifies; a receipt that cannot be read is an error, never left out.

use std::collections::{BTreeMap, BTreeSet};

use lazaret_contract::digest::Sha256Digest;

use crate::bundle;
use crate::envelope::{Envelope, EnvelopeError};
use crate::expect::{authority_of, closure_of, package_of};
use crate::log::entry::EntryKind;
use crate::log::file::LogFile;
use crate::predicate::Kind;
use crate::statement::{Statement, StatementError};
use crate::text::Id;

/// What an export is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// One task.
    Task(Id),
    /// One package, in all its versions.
    Package(Id),
}

/// The log as it is, with its newest checkpoint.
#[derive(Debug, Clone, Copy)]
pub struct LogAndCheckpoint<'a> {
    /// The log.
    pub log: &'a LogFile,
    /// The signed checkpoint.
    pub checkpoint: &'a [u8],
    /// How many entries it covers.
    pub covered: u64,
}

/// Why nothing is exported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// A receipt cannot be read.
    #[error("receipt {digest}: {problem}")]
    Envelope {
        /// Digest of its bytes.
        digest: Sha256Digest,
        /// What is wrong.
        problem: EnvelopeError,
    },
    /// A receipt's statement cannot be read.
    #[error("receipt {digest}: {problem}")]
    Statement {
        /// Digest of its bytes.
        digest: Sha256Digest,
        /// What is wrong.
        problem: StatementError,
    },
    /// No receipt is about that.
    #[error("no receipt is about it")]
    Nothing,
}

struct Candidate<'a> {
    bytes: &'a [u8],
    digest: Sha256Digest,
    envelope: Envelope,
    statement: Statement,
}

/// The files of an export by their relative names.
///
/// # Errors
/// When a receipt cannot be read, or none is about it.
pub fn export<'a>(
    about: &About,
    receipts: impl IntoIterator<Item = &'a [u8]>,
    log: Option<LogAndCheckpoint<'_>>,
) -> Result<BTreeMap<String, Vec<u8>>, ExportError> {
    let candidates = receipts
        .into_iter()
        .map(read)
        .collect::<Result<Vec<_>, _>>()?;
    let chosen = choose(about, &candidates);
    if chosen.is_empty() {
        return Err(ExportError::Nothing);
    }
    let mut files = BTreeMap::new();
    for candidate in chosen {
        let name = format!("{}-{}", candidate.statement.kind(), candidate.digest);
        files.insert(format!("{name}.json"), candidate.bytes.to_vec());
        files.insert(
            format!("{name}.sigstore.json"),
            bundle::to_bytes(&candidate.envelope),
        );
        if let Some(proof) = log.and_then(|log| proof_of(candidate.digest, log)) {
            files.insert(format!("{name}.tlog-proof"), proof);
        }
    }
    if let Some(log) = log {
        files.insert("log".to_owned(), log.log.to_bytes());
        files.insert("checkpoint".to_owned(), log.checkpoint.to_vec());
    }
    Ok(files)
}

fn read(bytes: &[u8]) -> Result<Candidate<'_>, ExportError> {
    let digest = Sha256Digest::of(bytes);
    let envelope =
        Envelope::parse(bytes).map_err(|problem| ExportError::Envelope { digest, problem })?;
    let statement = Statement::parse(&envelope.payload)
        .map_err(|problem| ExportError::Statement { digest, problem })?;
    Ok(Candidate {
        bytes,
        digest,
        envelope,
        statement,
    })
}

fn choose<'a, 'b>(about: &About, candidates: &'b [Candidate<'a>]) -> Vec<&'b Candidate<'a>> {
    let is_direct = |candidate: &&Candidate<'_>| match about {
        About::Task(task) => {
            let authority = authority_of(&candidate.statement);
            authority.is_some_and(|authority| authority.task.as_ref() == Some(task))
        }
        About::Package(package) => package_of(&candidate.statement) == Some(package),
    };
    let direct: Vec<_> = candidates.iter().filter(is_direct).collect();
    let closures: BTreeSet<_> = direct
        .iter()
        .filter_map(|candidate| closure_of(&candidate.statement))
        .collect();
    let packages: BTreeSet<_> = direct
        .iter()
        .filter_map(|candidate| package_of(&candidate.statement))
        .collect();
    let is_context = |candidate: &&Candidate<'_>| {
        let statement = &candidate.statement;
        match statement.kind() {
            Kind::Build | Kind::Bom | Kind::Attack | Kind::Review => {
                closure_of(statement).is_some_and(|closure| closures.contains(&closure))
            }
            Kind::Lifecycle => {
                package_of(statement).is_some_and(|package| packages.contains(package))
            }
            Kind::Run | Kind::Cleanup | Kind::Refusal | Kind::Blocked | Kind::Host => false,
        }
    };
    candidates
        .iter()
        .filter(|one| is_direct(one) || is_context(one))
        .collect()
}

fn proof_of(receipt: Sha256Digest, log: LogAndCheckpoint<'_>) -> Option<Vec<u8>> {
    let index = log.log.place(EntryKind::Receipt, receipt)?;
    let proof = log
        .log
        .inclusion(index, log.covered, log.checkpoint.to_vec())?;
    Some(proof.to_bytes())
}
