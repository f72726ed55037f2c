//! The kinds of statement: what each says, and the rules that it keeps.
//!
//! Three kinds are other people's forms (SLSA provenance, in-toto test result,
//! SLSA verification summary) and one carries a CycloneDX document; the rest are
//! ours. `docs/receipts.md` describes each for readers. A change of meaning is a
//! new version of the type; a reader must never guess at one that it does not know.

pub mod attack;
pub mod blocked;
pub mod bom;
pub mod build;
pub mod cleanup;
pub mod host;
pub mod lifecycle;
pub mod refusal;
pub mod review;
pub mod run;
pub mod shared;

use lazaret_contract::json::Value;

use crate::keys::Purpose;
use crate::part::{At, FormError, Part};
use crate::statement::Subject;

macro_rules! kinds {
    ($($(#[$meta:meta])* $variant:ident($kind:ty) = $word:literal, $uri:literal, $purpose:ident;)*) => {
        /// Which kind of statement.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$meta])* $variant,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its word on command lines and in listings.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// Its predicate type.
            pub const fn type_uri(self) -> &'static str {
                match self {
                    $(Self::$variant => $uri,)*
                }
            }

            /// The purpose of the keys that may sign it.
            pub const fn purpose(self) -> Purpose {
                match self {
                    $(Self::$variant => Purpose::$purpose,)*
                }
            }
        }

        /// What a statement says.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Predicate {
            $($(#[$meta])* $variant($kind),)*
        }

        impl Predicate {
            /// Its kind.
            pub const fn kind(&self) -> Kind {
                match self {
                    $(Self::$variant(_) => Kind::$variant,)*
                }
            }

            pub(crate) fn to_value(&self) -> Value {
                match self {
                    $(Self::$variant(predicate) => predicate.to_value(),)*
                }
            }

            pub(crate) fn from_value(
                kind: Kind,
                value: Value,
                at: &At<'_>,
            ) -> Result<Self, FormError> {
                match kind {
                    $(Kind::$variant => <$kind>::from_value(value, at).map(Self::$variant),)*
                }
            }

            /// The rules of its kind that the types do not express.
            pub(crate) fn check(&self, subjects: &[Subject]) -> Result<(), FormError> {
                match self {
                    $(Self::$variant(predicate) => predicate.check(subjects),)*
                }
            }
        }
    };
}

kinds! {
    /// How a closure was built (SLSA provenance).
    Build(build::Provenance) = "build", "https://slsa.dev/provenance/v1", Build;
    /// What a closure is made of (CycloneDX 1.6).
    Bom(bom::Bom) = "bom", "https://cyclonedx.org/bom", Build;
    /// What the attack suite found (in-toto test result).
    Attack(attack::TestResult) = "attack", "https://in-toto.io/attestation/test-result/v0.1", Attack;
    /// What a run did.
    Run(run::Run) = "run", "https://lazaret.invalid/receipt/run/v1", Run;
    /// That nothing of a run is left.
    Cleanup(cleanup::Cleanup) = "cleanup", "https://lazaret.invalid/receipt/cleanup/v1", Run;
    /// That a request was turned down by its kind or authority.
    Refusal(refusal::Refusal) = "refusal", "https://lazaret.invalid/receipt/refusal/v1", Run;
    /// That a run was refused before any package code ran.
    Blocked(blocked::Blocked) = "blocked", "https://lazaret.invalid/receipt/blocked/v1", Run;
    /// A transition of a package version, done or refused.
    Lifecycle(lifecycle::Lifecycle) = "lifecycle", "https://lazaret.invalid/receipt/lifecycle/v1", Lifecycle;
    /// What a host could do on a date, or how a build failed there.
    Host(host::Host) = "host", "https://lazaret.invalid/receipt/host/v1", Build;
    /// A review of a closure (SLSA verification summary).
    Review(review::Review) = "review", "https://slsa.dev/verification_summary/v1", Review;
}

impl Kind {
    /// The kind of this predicate type.
    pub fn from_type_uri(uri: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|kind| kind.type_uri() == uri)
    }

    /// The kind with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.word() == word)
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.word())
    }
}
