//! `cargo xtask build-closure` and `cargo xtask accept-closure`.
//!
//! From the pinned sources to the files that a profile runs with: sources, toolchain,
//! libcap, bubblewrap, CPython, frozen modules, launcher, closure. The same inputs give
//! the same bytes, wherever and by whomever they are built (DESIGN.md section 2).
//!
//! The build must never use what it has not verified, work outside `.lazaret/`, take a
//! library or compiler of the host, or call a closure accepted that is not the one in
//! `accepted.json`.

mod accept;
mod assemble;
mod blocked;
mod bwrap;
mod cpython;
mod elf;
mod freeze;
mod inputs;
mod launcher;
mod layout;
mod origins;
mod progress;
mod record;
mod runner;
mod stages;
mod subset;
mod toolchain;
mod unpack;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use lazaret_contract::digest::Sha256Digest;
use lazaret_profile::accepted::Accepted;
use lazaret_profile::manifest::ClosureManifest;
use lazaret_profile::pins::{PROFILE_IDS, PROFILE_V1, ProfileStatus};

use assemble::{Closure, Parts};
use bwrap::Builder;
use inputs::Inputs;
use layout::Layout;
use origins::{OriginOptions, Provenance, Sources};
use progress::Progress;
use record::{BuildRecord, Current, How, RECORD_SCHEMA};
use runner::{HostFacts, Runner};
use stages::Stages;

pub use accept::{AcceptArguments, accept, accepted_inputs_current};
pub use blocked::Blocked;
pub use record::Standing;

/// What to build, and where the sources may come from.
#[derive(Debug, Clone, clap::Args)]
pub struct BuildArguments {
    /// The profile to build.
    #[arg(long, value_name = "ID", default_value = PROFILE_V1, value_parser = PROFILE_IDS)]
    pub profile: String,
    /// A directory with source archives or wheels, by their upstream or Debian names.
    #[arg(long, value_name = "DIR")]
    pub source_dir: Option<PathBuf>,
    /// A git repository of a pinned source, for example cpython=PATH. May be repeated.
    #[arg(long, value_name = "NAME=PATH", value_parser = parse_mirror)]
    pub git_mirror: Vec<(String, PathBuf)>,
    /// Only use what is there: the cache, the source directory, git repositories.
    #[arg(long)]
    pub offline: bool,
    /// Build everything anew: take no finished closure and no finished stage.
    #[arg(long)]
    pub from_sources: bool,
    /// Print the build record on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Reads `NAME=PATH`.
///
/// # Errors
/// When the text has another form.
pub fn parse_mirror(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(path)))
        }
        _ => Err("NAME=PATH is wanted, for example cpython=/srv/mirrors/cpython.git".to_owned()),
    }
}

impl BuildArguments {
    /// The arguments of an ordinary build of `profile`.
    pub fn of_profile(profile: &str) -> Self {
        Self {
            profile: profile.to_owned(),
            source_dir: None,
            git_mirror: Vec::new(),
            offline: false,
            from_sources: false,
            json: false,
        }
    }
}

/// A closure that is there and verified.
#[derive(Debug)]
pub struct Built {
    /// The profile.
    pub profile: String,
    /// Whether the profile may serve by default.
    pub status: ProfileStatus,
    /// The closure's digest.
    pub digest: Sha256Digest,
    /// Where it lies.
    pub directory: PathBuf,
    /// What it is, measured against `accepted.json` of this tree.
    pub standing: Standing,
    /// Whether it was there already.
    pub unchanged: bool,
    /// The build record's text.
    pub record: Vec<u8>,
    /// How it compares with what is accepted, line by line.
    pub difference: Vec<String>,
}

/// Builds the closure and reports; the command `build-closure`.
///
/// # Errors
/// When the closure cannot be had; [`Blocked`] when that is for want of something outside.
pub fn run(root: &Path, arguments: &BuildArguments) -> Result<ExitCode> {
    let mut progress = Progress::start();
    let built = build(root, arguments, &mut progress)?;
    report(&built, &progress);
    if arguments.json {
        std::io::stdout()
            .write_all(&built.record)
            .context("writing the record to standard output")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Gives the closure of this tree's inputs: as it is, from the cache, or by building.
///
/// # Errors
/// As [`run`].
pub fn obtain(root: &Path, arguments: &BuildArguments) -> Result<Built> {
    build(root, arguments, &mut Progress::start())
}

fn build(root: &Path, arguments: &BuildArguments, progress: &mut Progress) -> Result<Built> {
    // Modes of ours are set explicitly; this is for what other programs create.
    let _umask = Umask::set(0o022);
    let layout = Layout::new(root)?;
    let inputs = Inputs::read(&layout, &arguments.profile)?;
    let accepted = accept::read(&layout, &arguments.profile)?;
    layout.make_directories(&arguments.profile)?;
    let session = Session {
        layout,
        inputs,
        accepted,
        cache: layout::user_cache(),
    };
    if !arguments.from_sources {
        if let Some(built) = session.present(progress)? {
            return Ok(built);
        }
        if let Some(built) = session.cached(progress)? {
            return Ok(built);
        }
    }
    session.make(arguments, progress)
}

/// A umask for as long as this value lives; the caller's comes back afterwards.
struct Umask(rustix::fs::Mode);

impl Umask {
    fn set(bits: u32) -> Self {
        Self(rustix::process::umask(rustix::fs::Mode::from_raw_mode(
            bits,
        )))
    }
}

impl Drop for Umask {
    fn drop(&mut self) {
        rustix::process::umask(self.0);
    }
}

/// One invocation for one profile.
struct Session {
    layout: Layout,
    inputs: Inputs,
    accepted: Option<Accepted>,
    cache: Option<PathBuf>,
}

impl Session {
    /// The closure that is there already, if it belongs to this tree's inputs and is whole.
    fn present(&self, progress: &Progress) -> Result<Option<Built>> {
        let profile = &self.inputs.profile;
        let inputs = self.inputs.digest();
        let current =
            Current::read(&self.layout, profile).filter(|current| current.inputs == inputs);
        let accepted = self.accepted_for_these_inputs();
        for digest in current
            .map(|current| current.closure)
            .into_iter()
            .chain(accepted)
        {
            let directory = self.layout.closure(profile, digest);
            if !directory.exists() {
                continue;
            }
            match assemble::verify(&directory, digest) {
                Ok(manifest) => {
                    Current::new(profile, digest, inputs).write(&self.layout)?;
                    let record = self.earlier_record(digest)?;
                    return Ok(Some(self.built(digest, &manifest, true, record)));
                }
                Err(error) => {
                    progress.say(format!("the closure that is there is damaged: {error:#}"))
                }
            }
        }
        Ok(None)
    }

    fn accepted_for_these_inputs(&self) -> Option<Sha256Digest> {
        let accepted = self.accepted.as_ref()?;
        (accepted.inputs == self.inputs.digest()).then_some(accepted.closure)
    }

    /// The accepted closure out of the user's cache, copied in and verified. Only for exactly
    /// these inputs: a cache must never decide what a changed tree gives.
    fn cached(&self, progress: &Progress) -> Result<Option<Built>> {
        let (Some(digest), Some(cache)) = (self.accepted_for_these_inputs(), &self.cache) else {
            return Ok(None);
        };
        let cached = cache.join("closures").join(digest.to_string());
        if !cached.exists() {
            return Ok(None);
        }
        match Closure::read(&cached, digest) {
            Ok(closure) => {
                progress.say(format!(
                    "closure {digest}: accepted, copied from the user's cache"
                ));
                self.finish(&closure, How::Cache, Vec::new(), None, progress)
                    .map(Some)
            }
            Err(error) => {
                progress.say(format!(
                    "the closure in the user's cache is not used: {error:#}"
                ));
                Ok(None)
            }
        }
    }

    fn make(&self, arguments: &BuildArguments, progress: &mut Progress) -> Result<Built> {
        let layout = &self.layout;
        let pins = &self.inputs.pins;
        let epoch = pins.options.common.source_date_epoch;
        let filter = launcher::filter(&self.inputs.policy)?;
        let stages = Stages::take(layout, arguments.from_sources)?;
        let runner = Runner::new(stages.run_directory(), epoch, &layout.compiler_cache())?;
        let options = OriginOptions {
            source_dir: arguments.source_dir.clone(),
            mirrors: mirrors(&arguments.git_mirror)?,
            offline: arguments.offline,
        };
        let sources = Sources::new(layout, &options, self.cache.as_deref(), epoch);
        let toolchain = toolchain::build(&stages, pins, &sources, layout.root(), progress)?;
        toolchain.install(&runner, &pins.options.common)?;
        let probe_log = layout.logs().join("probe.log");
        layout::remove_tree(&probe_log)?;
        progress.say("toolchain: trying the compiler (the first time it builds the target's libc)");
        toolchain.probe(
            &runner,
            &pins.options.common,
            stages.run_directory(),
            &probe_log,
        )?;
        let root = layout.root();
        let builder = Builder {
            stages: &stages,
            pins,
            sources: &sources,
            runner: &runner,
            toolchain: &toolchain,
            root,
        };
        let libcap = builder.libcap(progress)?;
        let bubblewrap = builder.bubblewrap(&libcap, progress)?;
        let cpython = cpython::build(&builder, &self.inputs.tree, progress)?;
        let frozen = freeze::build(&builder, &cpython, &self.inputs.stdlib, progress)?;
        let launcher = launcher::build(&builder, &cpython, &frozen, &filter, progress)?;
        let parts = Parts {
            bubblewrap: &bubblewrap,
            cpython: &cpython,
            frozen: &frozen,
            launcher: &launcher,
            filter: &filter,
        };
        let closure = Closure::collect(layout, &self.inputs, &parts)?;
        let finished = [&toolchain.stage, &libcap, &bubblewrap, &cpython];
        let origins = finished
            .iter()
            .flat_map(|stage| stage.origins.clone())
            .collect();
        let built = self.finish(
            &closure,
            How::Built,
            origins,
            Some(runner.host_facts()?),
            progress,
        )?;
        self.keep_in_cache(&closure, progress);
        stages.prune()?;
        layout::remove_tree(stages.run_directory())?;
        Ok(built)
    }

    /// Writes the closure, its record and the pointer, in this order.
    fn finish(
        &self,
        closure: &Closure,
        how: How,
        origins: Vec<Provenance>,
        host: Option<HostFacts>,
        progress: &Progress,
    ) -> Result<Built> {
        let profile = &self.inputs.profile;
        let digest = closure.digest();
        let inputs = self.inputs.digest();
        let parent = self.layout.closures(profile);
        closure.write(&parent, &self.layout.closure(profile, digest))?;
        let record = BuildRecord {
            schema: RECORD_SCHEMA,
            profile,
            closure: digest,
            inputs,
            standing: record::standing(self.accepted.as_ref(), digest, inputs),
            how,
            files: record::file_digests(&closure.manifest),
            options: &self.inputs.pins.options,
            effective_options: &closure.manifest.effective_options,
            toolchain: &closure.manifest.toolchain,
            origins,
            host,
            stages: progress.reports().to_vec(),
            elapsed_ms: u64::try_from(progress.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        let bytes = record.to_bytes()?;
        layout::write_atomically(&self.layout.record(profile, digest), &bytes, 0o444)?;
        Current::new(profile, digest, inputs).write(&self.layout)?;
        Ok(self.built(digest, &closure.manifest, false, bytes))
    }

    fn built(
        &self,
        digest: Sha256Digest,
        manifest: &ClosureManifest,
        unchanged: bool,
        record: Vec<u8>,
    ) -> Built {
        let inputs = self.inputs.digest();
        let mut difference = record::difference(self.accepted.as_ref(), manifest, digest, inputs);
        difference.extend(self.difference_inside(manifest));
        Built {
            profile: self.inputs.profile.clone(),
            status: self.inputs.pins.status,
            digest,
            directory: self.layout.closure(&self.inputs.profile, digest),
            standing: record::standing(self.accepted.as_ref(), digest, inputs),
            unchanged,
            record,
            difference,
        }
    }

    /// What differs inside the manifests, where the accepted closure is still there.
    fn difference_inside(&self, manifest: &ClosureManifest) -> Vec<String> {
        let Some(accepted) = &self.accepted else {
            return Vec::new();
        };
        let here = self.layout.closure(&self.inputs.profile, accepted.closure);
        let cached = self
            .cache
            .as_ref()
            .map(|cache| cache.join("closures").join(accepted.closure.to_string()));
        let old = [Some(here), cached]
            .into_iter()
            .flatten()
            .find_map(|directory| assemble::verify(&directory, accepted.closure).ok());
        old.and_then(|old| record::manifest_difference(&old, manifest).ok())
            .unwrap_or_default()
    }

    /// The record of the build that gave a closure, or one that says that it is lost.
    fn earlier_record(&self, digest: Sha256Digest) -> Result<Vec<u8>> {
        let path = self.layout.record(&self.inputs.profile, digest);
        if let Ok(bytes) = std::fs::read(&path) {
            return Ok(bytes);
        }
        let lost = serde_json::json!({
            "schema": RECORD_SCHEMA,
            "profile": self.inputs.profile,
            "closure": digest,
            "inputs": self.inputs.digest(),
            "lost": "the closure is there and whole; the record of its build is not",
        });
        serde_json::to_vec_pretty(&lost).context("serialising the record")
    }

    /// A copy for the next checkout; a cache that cannot be written costs time, nothing else.
    fn keep_in_cache(&self, closure: &Closure, progress: &Progress) {
        let Some(cache) = &self.cache else { return };
        let parent = cache.join("closures");
        let kept = layout::make_directory(&parent, layout::PRIVATE_MODE)
            .and_then(|()| closure.write(&parent, &parent.join(closure.digest().to_string())));
        if let Err(error) = kept {
            progress.say(format!(
                "the closure was not kept in the user's cache: {error:#}"
            ));
        }
    }
}

fn mirrors(given: &[(String, PathBuf)]) -> Result<BTreeMap<String, PathBuf>> {
    let mut mirrors = BTreeMap::new();
    for (name, path) in given {
        let path = std::path::absolute(path).with_context(|| format!("--git-mirror {name}"))?;
        if mirrors.insert(name.clone(), path).is_some() {
            bail!("--git-mirror {name} is given twice");
        }
    }
    Ok(mirrors)
}

fn report(built: &Built, progress: &Progress) {
    let state = if built.unchanged { "unchanged" } else { "new" };
    progress.say(format!(
        "{}: closure {} ({state})",
        built.profile, built.digest
    ));
    progress.say(format!("  in {}", built.directory.display()));
    if built.status == ProfileStatus::Candidate {
        progress.say("  this profile is a candidate: it serves only where it is asked for by name");
    }
    match built.standing {
        Standing::Accepted => {
            progress.say(format!("  {}", lazaret_profile::accepted::NOT_REVIEWED))
        }
        Standing::Stale | Standing::Unreviewed => {
            if built.standing == Standing::Stale {
                progress.say("  the accepted bytes, from other inputs than accepted.json names");
            } else {
                progress.say("  unreviewed: it is kept and does not serve");
            }
            for line in &built.difference {
                progress.say(format!("    {line}"));
            }
            progress.say(format!(
                "  to accept it: cargo xtask accept-closure --profile {}",
                built.profile
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::assemble::tests::sample;
    use super::*;
    use lazaret_profile::accepted::ACCEPTED_SCHEMA;
    use lazaret_profile::manifest::Role;

    /// A session of this tree's inputs that works in an empty repository.
    struct Scene {
        _scratch: tempfile::TempDir,
        session: Session,
        closure: Closure,
    }

    impl Scene {
        fn new() -> Self {
            let scratch = tempfile::tempdir().unwrap();
            let tree = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
            let inputs = Inputs::read(&Layout::new(tree).unwrap(), PROFILE_V1).unwrap();
            let layout = Layout::new(&scratch.path().join("repo")).unwrap();
            layout.make_directories(PROFILE_V1).unwrap();
            let cache = Some(scratch.path().join("cache"));
            let session = Session {
                layout,
                inputs,
                accepted: None,
                cache,
            };
            Self {
                _scratch: scratch,
                session,
                closure: sample(b"launcher"),
            }
        }

        fn accept(&mut self, inputs: Sha256Digest) {
            let digest = |role| self.closure.manifest.file(role).unwrap().sha256;
            self.session.accepted = Some(Accepted {
                schema: ACCEPTED_SCHEMA.to_owned(),
                profile: PROFILE_V1.to_owned(),
                closure: self.closure.digest(),
                bwrap: digest(Role::Bwrap),
                launcher: digest(Role::Launcher),
                filter: digest(Role::Filter),
                inputs,
                review: None,
            });
        }

        fn present(&self) -> Option<Built> {
            self.session.present(&Progress::start()).unwrap()
        }

        fn cached(&self) -> Option<Built> {
            self.session.cached(&Progress::start()).unwrap()
        }

        fn finish(&self) -> Built {
            let progress = Progress::start();
            self.session
                .finish(&self.closure, How::Built, Vec::new(), None, &progress)
                .unwrap()
        }
    }

    #[test]
    fn a_finished_closure_is_taken_again_and_a_damaged_one_is_not() {
        let scene = Scene::new();
        assert!(scene.present().is_none());
        let built = scene.finish();
        assert_eq!(built.standing, Standing::Unreviewed);
        let again = scene.present().unwrap();
        assert!(again.unchanged);
        assert_eq!((again.digest, &again.record), (built.digest, &built.record));
        layout::write_synced(&built.directory.join("launcher"), b"lauNcher", 0o555).unwrap();
        assert!(scene.present().is_none());
    }

    #[test]
    fn only_the_accepted_closure_for_these_very_inputs_comes_out_of_the_cache() {
        let mut scene = Scene::new();
        scene
            .session
            .keep_in_cache(&scene.closure, &Progress::start());
        assert!(scene.cached().is_none(), "nothing is accepted");
        scene.accept(Sha256Digest::of(b"other inputs"));
        assert!(scene.cached().is_none(), "the inputs are others");
        scene.accept(scene.session.inputs.digest());
        let built = scene.cached().unwrap();
        assert_eq!(built.standing, Standing::Accepted);
        assert!(built.directory.starts_with(scene.session.layout.root()));
    }

    #[test]
    fn a_damaged_closure_in_the_cache_is_not_used() {
        let mut scene = Scene::new();
        scene
            .session
            .keep_in_cache(&scene.closure, &Progress::start());
        scene.accept(scene.session.inputs.digest());
        let cache = scene.session.cache.clone().unwrap();
        let cached = cache
            .join("closures")
            .join(scene.closure.digest().to_string());
        layout::write_synced(&cached.join("bwrap"), b"evil!", 0o555).unwrap();
        assert!(scene.cached().is_none());
    }

    #[test]
    fn the_accepted_bytes_from_other_inputs_are_stale() {
        let mut scene = Scene::new();
        scene.accept(Sha256Digest::of(b"other inputs"));
        let built = scene.finish();
        assert_eq!(built.standing, Standing::Stale);
        assert!(
            built
                .difference
                .iter()
                .any(|line| line.starts_with("inputs") && line.contains("differs"))
        );
    }

    #[test]
    fn a_mirror_is_a_name_and_a_path_and_is_given_once() {
        assert_eq!(
            parse_mirror("cpython=/a=b").unwrap(),
            ("cpython".to_owned(), "/a=b".into())
        );
        for text in ["cpython", "=path", "cpython="] {
            assert!(parse_mirror(text).is_err(), "{text}");
        }
        let twice = [("a".to_owned(), "/x".into()), ("a".to_owned(), "/y".into())];
        assert!(mirrors(&twice).is_err());
    }
}
