//! The packages that come with Lazaret, as bytes in the binary.
//!
//! They are packages like any other, with one exception: the formatter's id
//! belongs to exactly one content for each closure. Other bytes under it, and
//! any way to execute it but its own typed task, are refused here by name; the
//! refusals are typed so that each can leave a receipt (ADR-013).

use crate::digest::Sha256Digest;
use crate::identity::{FORMATTER_ID, PackageId};
use crate::package::{self, PackageFiles};
use crate::profiles::Binding;

/// A bundled package in the form bound to the accepted profile.
#[derive(Debug, Clone, Copy)]
pub struct Bundled {
    /// The package's id.
    pub id: &'static str,
    /// Its files, as path and bytes.
    pub files: &'static [(&'static str, &'static [u8])],
}

macro_rules! bundled {
    ($id:literal: $($path:literal),+ $(,)?) => {
        Bundled {
            id: $id,
            files: &[$((
                $path,
                include_bytes!(concat!(
                    env!("CARGO_MANIFEST_DIR"), "/../../packages/", $id, "/", $path
                )),
            )),+],
        }
    };
}

/// The formatter first, then the authored examples.
pub const BUNDLED: [Bundled; 3] = [
    bundled!("seraph.tool.json-format":
        "README.md", "adapter.py", "adapters/adapter.json", "evals/nested.json",
        "evals/numbers.json", "manifest.json"),
    bundled!("local.time-ledger-summary":
        "README.md", "adapter.py", "adapters/adapter.json", "evals/empty.json", "evals/week.json",
        "manifest.json"),
    bundled!("local.table-align":
        "README.md", "adapter.py", "adapters/adapter.json", "evals/prices.json",
        "evals/wide-characters.json", "manifest.json"),
];

impl Bundled {
    /// The bundled package with this id.
    pub fn find(id: &str) -> Option<&'static Self> {
        BUNDLED.iter().find(|bundled| bundled.id == id)
    }

    /// The package's files in the form that is bound to `binding`. `None` for a
    /// profile that does not exist.
    pub fn bound_to(&self, binding: &Binding) -> Option<PackageFiles> {
        package::seal(&self.package_files()?, binding).ok()
    }

    /// The package's files as they are in the binary.
    pub fn package_files(&self) -> Option<PackageFiles> {
        let owned = self
            .files
            .iter()
            .map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec()));
        PackageFiles::new(owned).ok()
    }
}

/// The one content that the formatter's id has when bound to `binding`.
pub fn formatter_content(binding: &Binding) -> Option<Sha256Digest> {
    let files = Bundled::find(FORMATTER_ID)?.bound_to(binding)?;
    Some(package::content_digest(&files))
}

/// What somebody wants to do with a package; only what the formatter refuses is
/// told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Review, install, activate: the ordinary life of a version.
    Admit,
    /// Make another content the one in force.
    Update,
    /// Go back to an earlier content.
    RollBack,
    /// Execute as a generic package, not through the formatter's own task.
    ExecuteGeneric,
    /// Execute outside the profile, as trusted local processing.
    ExecuteLocal,
}

/// Why something is not done with the formatter's identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatterRefusal {
    /// Other bytes under the formatter's id.
    #[error("{FORMATTER_ID} has one content, and {found} is not it")]
    OtherContent {
        /// The content that was given.
        found: Sha256Digest,
    },
    /// There is nothing to update to or to go back to.
    #[error("{FORMATTER_ID} has one version: it is neither updated nor rolled back")]
    OneVersion,
    /// Generic execution.
    #[error("{FORMATTER_ID} runs by its own task only, never as a generic package")]
    GenericExecution,
    /// Local execution.
    #[error("{FORMATTER_ID} runs inside its profile only, never as local processing")]
    LocalExecution,
}

impl FormatterRefusal {
    /// The reason's stable name, for receipts and programs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::OtherContent { .. } => "formatter_other_content",
            Self::OneVersion => "formatter_one_version",
            Self::GenericExecution => "formatter_generic_execution",
            Self::LocalExecution => "formatter_local_execution",
        }
    }
}

/// Refuses what must not happen to the formatter's identity. Every other
/// package passes.
pub fn guard_formatter(
    id: &PackageId,
    content: Sha256Digest,
    binding: &Binding,
    verb: Verb,
) -> Result<(), FormatterRefusal> {
    if !id.is_formatter() {
        return Ok(());
    }
    match verb {
        Verb::ExecuteGeneric => Err(FormatterRefusal::GenericExecution),
        Verb::ExecuteLocal => Err(FormatterRefusal::LocalExecution),
        Verb::Update | Verb::RollBack => Err(FormatterRefusal::OneVersion),
        Verb::Admit if formatter_content(binding) == Some(content) => Ok(()),
        Verb::Admit => Err(FormatterRefusal::OtherContent { found: content }),
    }
}
