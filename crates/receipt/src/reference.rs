//! The reference of all kinds of statement, made from the code.
//!
//! `docs/receipts-reference.md` is what this gives, and a test compares the two, so
//! the page can neither be forgotten nor say something else. For tests only.

use lazaret_contract::json;

use crate::keys::Purpose;
use crate::part::Described;
use crate::predicate::Kind;
use crate::predicate::shared::{
    Architecture, Authority, BarrierFact, Descriptor, Establishes, NotEstablished, OperatingSystem,
    PackageFacts, Platform, ProfileFacts, Standing,
};
use crate::predicate::{
    attack, blocked, bom, build, cleanup, host, lifecycle, refusal, review, run,
};
use crate::samples::{self, SampleError};
use crate::statement::Subject;
use crate::verify::Claim;

type Table = (&'static str, &'static [Described]);

/// What the page says before the first kind.
const HEAD: &str = "\
# Reference of receipts

Made from the code by `LAZARET_WRITE_DOCS=1 cargo test -p lazaret-receipt --test documentation`; edit the
comments there. [receipts.md](receipts.md) says what receipts are for and how to verify them.

Members are listed by the object that holds them. An absent member is absent, never null; an unknown one is
refused. Integers go from 0 to 9007199254740991. Sizes are in bytes, times in the unit that the name ends
with. The examples are made up.
";

/// The page.
///
/// # Errors
/// Never: a test makes every example.
pub fn page() -> Result<String, SampleError> {
    let mut page = HEAD.to_owned();
    for kind in Kind::ALL.iter().copied() {
        push_kind(&mut page, kind)?;
    }
    page.push_str("\n## Members that several kinds have\n");
    for table in SHARED {
        push_table(&mut page, "member", table);
    }
    page.push_str("\n## Words\n");
    for table in WORDS {
        push_table(&mut page, "word", table);
    }
    Ok(page)
}

fn push_kind(page: &mut String, kind: Kind) -> Result<(), SampleError> {
    let (meaning, tables) = described(kind);
    page.push_str(&format!(
        "\n## {kind}\n\n{meaning}\n\nPredicate type `{}`, signed by keys for `{}`.\n",
        kind.type_uri(),
        kind.purpose()
    ));
    for table in tables {
        push_table(page, "member", table);
    }
    let value = samples::statement(kind)?.predicate.to_value();
    let example = String::from_utf8(json::write_pretty(&value))?;
    page.push_str(&format!(
        "\nExample of the predicate:\n\n```json\n{example}```\n"
    ));
    Ok(())
}

fn push_table(page: &mut String, what: &str, (name, rows): &Table) {
    page.push_str(&format!(
        "\n### {name}\n\n| {what} | meaning |\n|---|---|\n"
    ));
    for (word, meaning) in *rows {
        page.push_str(&format!("| `{word}` |{meaning} |\n"));
    }
}

fn described(kind: Kind) -> (&'static str, &'static [Table]) {
    match kind {
        Kind::Build => (
            "How a closure was built: SLSA provenance v1. Two builds of the same inputs give one \
             statement.",
            BUILD,
        ),
        Kind::Bom => (
            "What a closure is made of: a CycloneDX 1.6 document as the predicate. The same \
             document alone lies beside the receipt.",
            BOM,
        ),
        Kind::Attack => (
            "What the attack suite found: in-toto's test result. Everything of ours is in the \
             extension member `lazaret`.",
            ATTACK,
        ),
        Kind::Run => (
            "What a released run did. End of the process, cleanup and output are three facts; none \
             follows from another.",
            RUN,
        ),
        Kind::Cleanup => (
            "What recovery found of the processes of an earlier attempt. It says nothing of the \
             output.",
            &[("cleanup", cleanup::Cleanup::MEMBERS)],
        ),
        Kind::Refusal => (
            "That a request was turned down for what it asked or for whom it came from.",
            &[("refusal", refusal::Refusal::MEMBERS)],
        ),
        Kind::Blocked => (
            "That a run was refused before any package code ran, and nothing was substituted. It \
             never establishes isolated execution.",
            &[("blocked", blocked::Blocked::MEMBERS)],
        ),
        Kind::Lifecycle => (
            "A transition of a package version, done or refused.",
            &[
                ("lifecycle", lifecycle::Lifecycle::MEMBERS),
                (
                    "lifecycle: version and previous",
                    lifecycle::VersionFacts::MEMBERS,
                ),
            ],
        ),
        Kind::Host => (
            "What a host could do on a date, or how a build failed there. The date is the fact.",
            HOST,
        ),
        Kind::Review => (
            "A review of a closure by somebody who did not write it: SLSA verification summary v1. \
             It claims no SLSA level.",
            REVIEW,
        ),
    }
}

const BUILD: &[Table] = &[
    ("build", build::Provenance::MEMBERS),
    ("build: buildDefinition", build::BuildDefinition::MEMBERS),
    (
        "build: externalParameters",
        build::ExternalParameters::MEMBERS,
    ),
    (
        "build: internalParameters",
        build::InternalParameters::MEMBERS,
    ),
    ("build: runDetails", build::RunDetails::MEMBERS),
    ("build: builder", build::Builder::MEMBERS),
];

const BOM: &[Table] = &[
    ("bom", bom::Bom::MEMBERS),
    ("bom: metadata", bom::Metadata::MEMBERS),
    ("bom: components", bom::Component::MEMBERS),
    ("bom: hashes", bom::Hash::MEMBERS),
    ("bom: licenses", bom::LicenceChoice::MEMBERS),
    ("bom: dependencies", bom::Dependency::MEMBERS),
];

const ATTACK: &[Table] = &[
    ("attack", attack::TestResult::MEMBERS),
    ("attack: lazaret", attack::AttackDetails::MEMBERS),
];

const RUN: &[Table] = &[
    ("run", run::Run::MEMBERS),
    ("run: barrier", BarrierFact::MEMBERS),
    ("run: cleanup", run::CleanupFacts::MEMBERS),
    ("run: input and output", run::BytesFacts::MEMBERS),
    ("run: process", run::ProcessFacts::MEMBERS),
];

const HOST: &[Table] = &[
    ("host", host::Host::MEMBERS),
    ("host: availability", host::Availability::MEMBERS),
    ("host: failed_build", host::FailedBuild::MEMBERS),
];

const REVIEW: &[Table] = &[
    ("review", review::Review::MEMBERS),
    (
        "review: inputAttestations",
        review::InputAttestation::MEMBERS,
    ),
    ("review: lazaret", review::ReviewDetails::MEMBERS),
    ("review: policy", review::PolicyReference::MEMBERS),
    ("review: verifier", review::Verifier::MEMBERS),
];

const SHARED: &[Table] = &[
    ("subject", Subject::MEMBERS),
    (
        "evidence, byproducts and other descriptors",
        Descriptor::MEMBERS,
    ),
    ("authority", Authority::MEMBERS),
    ("package", PackageFacts::MEMBERS),
    ("platform", Platform::MEMBERS),
    ("profile", ProfileFacts::MEMBERS),
];

const WORDS: &[Table] = &[
    ("establishes", Establishes::WORDS),
    ("does_not_establish", NotEstablished::WORDS),
    ("output_claim", run::OutputClaim::WORDS),
    ("ending", run::RunEnding::WORDS),
    ("stage of what is Blocked", blocked::Stage::WORDS),
    ("proof of a cleanup", cleanup::CleanupProof::WORDS),
    ("action", lifecycle::Action::WORDS),
    ("from and to", lifecycle::State::WORDS),
    ("standing", Standing::WORDS),
    ("os", OperatingSystem::WORDS),
    ("architecture", Architecture::WORDS),
    ("result of an attack run", attack::TestOutcome::WORDS),
    ("verificationResult", review::ReviewResult::WORDS),
    ("verifiedLevels", review::VerifiedLevel::WORDS),
    ("type of a component", bom::ComponentType::WORDS),
    ("scope", bom::Scope::WORDS),
    ("purpose of a key", Purpose::WORDS),
    ("claims of a verification", Claim::WORDS),
];
