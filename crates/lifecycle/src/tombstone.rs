//! Tombstones: what must never run again in this deployment, under any name and for any owner.

use lazaret_contract::digest::Sha256Digest;

use crate::ids::{OwnerId, PackageId, PackageVersion, Reason, TombstoneId};
use crate::package::VersionIdentity;
use crate::time::Now;

/// Why a version must never run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TombstoneCause {
    /// An operator's will.
    Revocation,
    /// Its bytes no longer matched their digest.
    DigestMismatch,
}

impl TombstoneCause {
    /// Every cause.
    pub const ALL: [Self; 2] = [Self::Revocation, Self::DigestMismatch];

    /// The name under which it is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Revocation => "revocation",
            Self::DigestMismatch => "digest_mismatch",
        }
    }
}

/// The permanent mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// Its id.
    pub id: TombstoneId,
    /// The package that it was put on.
    pub package: PackageId,
    /// The version's name; together with the package denied.
    pub version: PackageVersion,
    /// Denied: these bytes.
    pub content: Sha256Digest,
    /// Denied: this code, in whatever package.
    pub code: Sha256Digest,
    /// Why.
    pub cause: TombstoneCause,
    /// Who; nobody when the cause is a digest.
    pub actor: Option<OwnerId>,
    /// In whose words.
    pub reason: Reason,
    /// What was found in place of the content, if something was.
    pub observed: Option<Sha256Digest>,
    /// When.
    pub at: Now,
}

/// By what a version is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeniedBy {
    /// The same bytes.
    Content,
    /// The same code.
    Code,
    /// The same name and version.
    NameAndVersion,
}

impl DeniedBy {
    /// The name for receipts and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Content => "content digest",
            Self::Code => "code digest",
            Self::NameAndVersion => "name and version",
        }
    }
}

/// That a version is denied, and by which tombstone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The tombstone.
    pub tombstone: TombstoneId,
    /// Its cause.
    pub cause: TombstoneCause,
    /// What matched.
    pub by: DeniedBy,
}

impl Tombstone {
    /// Whether it denies `identity`, and by what.
    pub fn denies(&self, identity: &VersionIdentity) -> Option<DeniedBy> {
        if self.content == identity.content {
            Some(DeniedBy::Content)
        } else if self.code == identity.code {
            Some(DeniedBy::Code)
        } else if self.package == identity.package && self.version == identity.version {
            Some(DeniedBy::NameAndVersion)
        } else {
            None
        }
    }
}

/// Whether any of the tombstones denies `identity`. A revocation is named before a mismatch,
/// because no rollback leads out of it.
pub fn denial(tombstones: &[Tombstone], identity: &VersionIdentity) -> Option<Denial> {
    let matching = tombstones
        .iter()
        .filter_map(|t| t.denies(identity).map(|by| (t, by)));
    matching
        .min_by_key(|(t, _)| t.cause != TombstoneCause::Revocation)
        .map(|(t, by)| Denial {
            tombstone: t.id.clone(),
            cause: t.cause,
            by,
        })
}
