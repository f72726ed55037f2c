//! One statement of each kind, for tests of this crate and of those above it.
//!
//! The values are made up and say so; none of them may ever be signed by a key that
//! somebody trusts.

use lazaret_contract::digest::Sha256Digest;
use lazaret_profile::manifest::{
    ClosureFile, ClosureManifest, EffectiveOptions, ElfFacts, FilterFacts, FrozenModule,
    MANIFEST_SCHEMA, Material, Materials, Relro, Role, SourceFact, ToolFact,
};

use crate::keys::{KeyError, Purpose, SigningPair};
use crate::predicate::attack::AttackRun;
use crate::predicate::blocked::{BlockedAttempt, Stage};
use crate::predicate::cleanup::{Cleanup, CleanupProof};
use crate::predicate::host::{Availability, FailedBuild, Observation};
use crate::predicate::lifecycle::{Action, State, Transition, VersionFacts};
use crate::predicate::refusal::RefusedRequest;
use crate::predicate::review::{ReviewFacts, ReviewResult};
use crate::predicate::run::{
    BytesFacts, CleanupFacts, OutputClaim, ProcessFacts, RunEnding, RunFacts,
};
use crate::predicate::shared::{
    Architecture, Authority, BarrierFact, Descriptor, OperatingSystem, PackageFacts, Platform,
    ProfileFacts, Standing,
};
use crate::predicate::{Kind, bom, build};
use crate::statement::Statement;
use crate::text::TextError;
use crate::trust::{TrustError, TrustStore, TrustedKey};

/// Why a sample cannot be made; a fault of this module.
pub type SampleError = Box<dyn std::error::Error + Send + Sync>;

fn digest(text: &str) -> Sha256Digest {
    Sha256Digest::of(text.as_bytes())
}

fn descriptor(name: &str) -> Result<Descriptor, TextError> {
    Ok(Descriptor::new(name.parse()?, digest(name)))
}

/// A manifest with something in every list.
pub fn manifest() -> ClosureManifest {
    let filter = [0_u8; 16];
    let material = |path: &str| Material {
        path: path.to_owned(),
        sha256: digest(path),
    };
    let source = |name: &str, version: &str| SourceFact {
        name: name.to_owned(),
        version: version.to_owned(),
        licence: "LGPL-2.0-or-later".to_owned(),
        archive_sha256: digest(name),
        subset_sha256: Some(digest(version)),
    };
    let elf = |path: &str| ElfFacts {
        path: path.to_owned(),
        position_independent: true,
        interpreter: None,
        needed: Vec::new(),
        run_paths: Vec::new(),
        executable_stack: false,
        relro: Relro::Full,
        bind_now: true,
        writable_executable_segments: 0,
        build_id: false,
    };
    ClosureManifest {
        schema: MANIFEST_SCHEMA.to_owned(),
        profile: "json-python-bwrap-v1".to_owned(),
        python_version: "3.12.8".to_owned(),
        files: vec![
            ClosureFile::of(Role::Bwrap, b"bwrap"),
            ClosureFile::of(Role::Launcher, b"launcher"),
            ClosureFile::of(Role::Filter, &filter),
        ],
        filter: FilterFacts {
            sha256: Sha256Digest::of(&filter),
            instructions: 2,
        },
        pins_sha256: digest("pins"),
        policy_sha256: digest("policy"),
        stdlib_sha256: digest("stdlib"),
        target: "x86_64-linux-musl".to_owned(),
        sources: vec![
            source("bubblewrap", "0.12.0"),
            source("cpython", "3.12.8"),
            source("libcap", "2.75"),
        ],
        toolchain: vec![ToolFact {
            name: "ziglang".to_owned(),
            version: "0.17.1".to_owned(),
            sha256: digest("ziglang"),
        }],
        effective_options: EffectiveOptions {
            bubblewrap_meson: [("selinux".to_owned(), "disabled".to_owned())].into(),
            bubblewrap_assume_kernel: String::new(),
            bubblewrap_config_h: Vec::new(),
            cpython_modules: vec!["_json".to_owned()],
            cpython_pyconfig_sha256: digest("pyconfig"),
        },
        materials: Materials {
            launcher_sources: vec![material("c/main.c"), material("c/sys.c")],
            cpython_headers: vec![material("Include/Python.h")],
            libraries: vec![material("libpython3.12.a")],
            frozen: vec![FrozenModule {
                name: "encodings.utf_8".to_owned(),
                package: false,
                source_sha256: digest("utf_8 source"),
                code_sha256: digest("utf_8 code"),
            }],
        },
        elf: vec![elf("bwrap"), elf("launcher")],
    }
}

/// A platform that has the profile.
///
/// # Errors
/// Never.
pub fn platform() -> Result<Platform, SampleError> {
    Ok(Platform {
        architecture: Architecture::X86_64,
        kernel: Some("6.18.3".parse()?),
        os: OperatingSystem::Linux,
    })
}

/// The profile of [`manifest`].
///
/// # Errors
/// Never.
pub fn profile() -> Result<ProfileFacts, SampleError> {
    let manifest = manifest();
    Ok(ProfileFacts {
        candidate: false,
        closure_sha256: manifest.digest()?,
        filter_sha256: manifest.filter.sha256,
        id: manifest.profile.parse()?,
        standing: Standing::AcceptedNotReviewed,
    })
}

fn package() -> Result<PackageFacts, SampleError> {
    Ok(PackageFacts {
        authority_sha256: Some(digest("authority")),
        capability: "work.json-format.v1".parse()?,
        code_sha256: digest("code"),
        content_sha256: digest("content"),
        dependency_sha256: Some(digest("dependency")),
        id: "seraph.tool.json-format".parse()?,
        version: "1".parse()?,
    })
}

fn authority() -> Result<Authority, SampleError> {
    Ok(Authority {
        approval: Some("approval-1".parse()?),
        attempt: Some("attempt-1".parse()?),
        deadline_boottime_ms: Some(123_456),
        fence: Some(3),
        goal: Some("goal-1".parse()?),
        goal_revision: Some(2),
        lease: Some("lease-1".parse()?),
        output_slot: Some("slot-1".parse()?),
        owner: Some("owner-1".parse()?),
        pointer_generation: Some(4),
        priority: Some(0),
        review: Some("review-1".parse()?),
        root_epoch: Some(1),
        session: Some("session-1".parse()?),
        task: Some("task-1".parse()?),
    })
}

/// A run that ended well.
///
/// # Errors
/// Never.
pub fn run_facts() -> Result<RunFacts, SampleError> {
    let fact = |name: &str, value: &str| -> Result<BarrierFact, TextError> {
        Ok(BarrierFact {
            fact: name.parse()?,
            value: Some(value.parse()?),
        })
    };
    Ok(RunFacts {
        authority: authority()?,
        barrier: vec![fact("filter-count", "1")?, fact("no-new-privileges", "1")?],
        closing_digests_unchanged: true,
        cleanup: CleanupFacts {
            descriptors_show_end: true,
            none_left: true,
            processes_reaped: 2,
        },
        evidence: vec![descriptor("warden/outcome.json")?],
        input: BytesFacts {
            sha256: digest("input"),
            size_bytes: 8192,
        },
        output: Some((
            BytesFacts {
                sha256: digest("output"),
                size_bytes: 9000,
            },
            OutputClaim::ExactBytes,
        )),
        package: package()?,
        platform: platform()?,
        process: ProcessFacts {
            cpu_us: 21_000,
            denied_call: None,
            ending: RunEnding::Exited,
            exit_code: Some(0),
            peak_memory_bytes: 14 << 20,
            signal: None,
            stderr_bytes: 0,
            stdout_bytes: 0,
            wall_us: 25_000,
        },
        profile: profile()?,
    })
}

/// An attack run of which every case was contained.
///
/// # Errors
/// Never.
pub fn attack_run() -> Result<AttackRun, SampleError> {
    let names = |names: &[&str]| names.iter().map(|name| name.parse()).collect();
    let passed: Result<_, TextError> = names(&[
        "descriptors/reopen-pipe",
        "files/read-host",
        "filter/sweep-x32",
    ]);
    Ok(AttackRun {
        profile: profile()?,
        platform: platform()?,
        configuration: vec![descriptor("attack-suite/cases")?],
        passed: passed?,
        not_run: Vec::new(),
        failed: Vec::new(),
        evidence: vec![descriptor("attack-suite/records")?],
    })
}

fn transition() -> Result<Transition, SampleError> {
    Ok(Transition {
        action: Action::Activate,
        authority: authority()?,
        difference_sha256: None,
        from: Some(State::Approved),
        outcome: Ok(State::Active),
        pointer_generation_after: Some(5),
        previous: None,
        statement: Some("needed for the weekly report".parse()?),
        unsigned_provenance_acknowledged: Some(true),
        version: VersionFacts {
            authority_sha256: digest("authority"),
            content_sha256: digest("content"),
            dependency_sha256: digest("dependency"),
            id: "local.time-ledger-summary".parse()?,
            version: "1".parse()?,
        },
    })
}

/// A statement of this kind.
///
/// # Errors
/// Never: a test of this crate makes every one.
pub fn statement(kind: Kind) -> Result<Statement, SampleError> {
    let manifest = manifest();
    Ok(match kind {
        Kind::Build => {
            let byproducts = vec![descriptor("log/bubblewrap")?, descriptor("record.json")?];
            build::provenance(&manifest, digest("inputs"), byproducts)?
        }
        Kind::Bom => bom::statement(&manifest)?,
        Kind::Attack => attack_run()?.statement()?,
        Kind::Run => run_facts()?.statement()?,
        Kind::Cleanup => Cleanup::statement(
            authority()?,
            digest("launched"),
            CleanupProof::SameBootProcessGone,
            platform()?,
            vec![descriptor("warden/launched.json")?],
        )?,
        Kind::Refusal => RefusedRequest {
            authority: authority()?,
            capability: Some("work.json-format.v1".parse()?),
            platform: platform()?,
            reason: "reserved-identity".parse()?,
            request: "execute-local".parse()?,
            request_sha256: digest("request"),
        }
        .statement()?,
        Kind::Blocked => BlockedAttempt {
            authority: Authority::none(),
            evidence: Vec::new(),
            input_sha256: digest("input"),
            package: Some(package()?),
            platform: Platform {
                architecture: Architecture::Aarch64,
                kernel: None,
                os: OperatingSystem::Macos,
            },
            profile: None,
            profile_id: manifest.profile.parse()?,
            reason: "platform-unsupported".parse()?,
            stage: Stage::Preflight,
        }
        .statement()?,
        Kind::Lifecycle => transition()?.statement()?,
        Kind::Host => Observation {
            availability: vec![Availability {
                available: false,
                fact: "user-namespaces".parse()?,
            }],
            evidence: vec![descriptor("log/configure")?],
            failed_build: Some(FailedBuild {
                exit_code: Some(1),
                stage: "configure".parse()?,
            }),
            observed_at: "2026-01-31T12:00:00Z".parse()?,
            platform: platform()?,
            profile_id: manifest.profile.parse()?,
            report_sha256: digest("report"),
        }
        .statement()?,
        Kind::Review => ReviewFacts {
            profile_id: manifest.profile.parse()?,
            closure_sha256: manifest.digest()?,
            policy_sha256: digest("policy"),
            looked_at: vec![digest("build receipt"), digest("attack receipt")],
            report: descriptor("review/report.md")?,
            reviewer: "A. Reviewer, who wrote none of it".parse()?,
            reviewer_id: "https://lazaret.invalid/reviewer/sample".parse()?,
            reviewed_at: "2026-01-31T12:00:00Z".parse()?,
            result: ReviewResult::Passed,
        }
        .statement()?,
    })
}

/// A fresh key pair for this purpose, named `sample/PURPOSE`.
///
/// # Errors
/// When there is no randomness.
pub fn pair(purpose: Purpose) -> Result<SigningPair, KeyError> {
    let name = format!("sample/{purpose}");
    let name = name.parse().map_err(|_| KeyError::Form {
        line: 3,
        problem: "wants a key name",
    })?;
    SigningPair::generate(purpose, name)
}

/// A store that believes these pairs.
///
/// # Errors
/// When one of them stands in it twice.
pub fn trust(pairs: &[&SigningPair]) -> Result<TrustStore, TrustError> {
    TrustStore::new(pairs.iter().map(|pair| TrustedKey::of(&pair.public())))
}
