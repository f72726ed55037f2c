//! The stages of a build: each keyed by its own inputs, each kept whole or not at all.
//!
//! A stage works in a directory of this invocation and lands by one rename, so
//! that an interruption at any moment leaves either its earlier state or nothing.
//! A finished stage is taken again only while its inputs have the same digest and
//! its outputs still have theirs. One builder works at a time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use anyhow::{Context, Result, bail};
use lazaret_contract::digest::Sha256Digest;
use serde::{Deserialize, Serialize};

use super::layout::{Layout, PRIVATE_MODE, make_directory, remove_tree, write_synced};
use super::origins::{Provenance, digest_of_file};
use super::progress::Progress;

const STAMP_FILE: &str = "stamp.json";

/// How many finished stages of one name are kept.
const KEPT_PER_STAGE: usize = 4;

const STAMP_SCHEMA: &str = "lazaret-stage/1";

/// The inputs of a stage, by name, and the digest over them.
#[derive(Debug, Clone, Default)]
pub struct Key(BTreeMap<String, Sha256Digest>);

impl Key {
    /// A key with no inputs yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes under a name.
    #[must_use]
    pub fn bytes(self, name: &str, bytes: &[u8]) -> Self {
        self.digest(name, Sha256Digest::of(bytes))
    }

    /// Adds a digest under a name.
    #[must_use]
    pub fn digest(mut self, name: &str, digest: Sha256Digest) -> Self {
        self.0.insert(name.to_owned(), digest);
        self
    }

    /// Adds a value in its serialised form.
    ///
    /// # Errors
    /// When the value cannot be serialised.
    pub fn value(self, name: &str, value: &impl Serialize) -> Result<Self> {
        let bytes = serde_json::to_vec(value).with_context(|| format!("serialising {name}"))?;
        Ok(self.bytes(name, &bytes))
    }

    /// Adds a file of the tree under its path.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn file(self, root: &Path, path: &str) -> Result<Self> {
        let bytes = fs::read(root.join(path)).with_context(|| format!("reading {path}"))?;
        Ok(self.bytes(path, &bytes))
    }

    /// The digest over all names and digests.
    pub fn finish(&self) -> Sha256Digest {
        let lines = self
            .0
            .iter()
            .map(|(name, digest)| format!("{digest}  {name}\n"));
        Sha256Digest::of(lines.collect::<String>().as_bytes())
    }
}

/// What is known of a finished stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stamp {
    schema: String,
    stage: String,
    key: Sha256Digest,
    /// The outputs that are looked at again before the stage is reused.
    outputs: BTreeMap<String, Sha256Digest>,
    /// Where the sources of this stage came from.
    pub origins: Vec<Provenance>,
}

/// A finished stage.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Where its outputs lie.
    pub directory: PathBuf,
    /// The digest of its inputs.
    pub key: Sha256Digest,
    /// Where its sources came from.
    pub origins: Vec<Provenance>,
}

/// Where a stage works while it is not finished.
#[derive(Debug)]
pub struct Workspace {
    /// An empty directory to work in.
    pub work: PathBuf,
    /// An empty directory for the outputs.
    pub out: PathBuf,
    /// The stage's log.
    pub log: PathBuf,
}

/// What a stage gives back: the outputs to be verified on reuse, and where its sources came from.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Paths below [`Workspace::out`].
    pub outputs: Vec<String>,
    /// Where the sources came from.
    pub origins: Vec<Provenance>,
}

/// The stages of one repository, held by one builder.
#[derive(Debug)]
pub struct Stages<'a> {
    layout: &'a Layout,
    run: PathBuf,
    fresh: bool,
    _lock: fs::File,
}

impl<'a> Stages<'a> {
    /// Takes the builder's lock and discards what interrupted builds left. With `fresh` no
    /// earlier stage counts.
    ///
    /// # Errors
    /// When another builder holds the lock, or the places cannot be made.
    pub fn take(layout: &'a Layout, fresh: bool) -> Result<Self> {
        let lock = take_lock(&layout.lock())?;
        // Nobody else works here while the lock is held. What cannot be removed (a command of a
        // killed builder may still write there) is no obstacle: this run has its own place.
        for entry in fs::read_dir(layout.work()).context("listing .lazaret/build/work")? {
            let entry = entry.context("listing .lazaret/build/work")?;
            let _ = remove_tree(&entry.path());
        }
        let run = layout.work().join(format!("run-{}", std::process::id()));
        make_directory(&run, PRIVATE_MODE)?;
        Ok(Self {
            layout,
            run,
            fresh,
            _lock: lock,
        })
    }

    /// A place of this invocation for what belongs to no stage.
    pub fn run_directory(&self) -> &Path {
        &self.run
    }

    /// Gives the finished stage, from an earlier build if nothing has changed.
    ///
    /// # Errors
    /// When `build` fails; its working directory and log stay until the next build.
    pub fn stage(
        &self,
        name: &str,
        key: &Key,
        progress: &mut Progress,
        build: impl FnOnce(&Workspace, &Progress) -> Result<Outcome>,
    ) -> Result<Finished> {
        let begun = Instant::now();
        let digest = key.finish();
        let directory = self.layout.stages().join(format!("{name}-{digest}"));
        if !self.fresh
            && let Some(stamp) = usable(&directory, name, digest, progress)
        {
            mark_used(&directory);
            progress.finish(
                name,
                digest.to_string(),
                true,
                begun.elapsed(),
                String::new(),
            );
            return Ok(Finished {
                directory,
                key: digest,
                origins: stamp.origins,
            });
        }
        let log = self.layout.logs().join(format!("{name}.log"));
        let shown = self.layout.shown(&log);
        progress.say(format!("{name}: building, log {shown}"));
        let workspace = self.workspace(name, log)?;
        let outcome =
            build(&workspace, progress).with_context(|| format!("stage {name} failed"))?;
        let origins = outcome.origins.clone();
        self.land(name, digest, &workspace, outcome, &directory)?;
        progress.finish(name, digest.to_string(), false, begun.elapsed(), shown);
        Ok(Finished {
            directory,
            key: digest,
            origins,
        })
    }

    /// Removes finished stages that have not been used for long: of each stage only the newest
    /// few stay, enough for both profiles and a change or two.
    ///
    /// # Errors
    /// When the stages cannot be listed or one cannot be removed.
    pub fn prune(&self) -> Result<()> {
        let mut by_name: BTreeMap<String, Vec<(SystemTime, PathBuf)>> = BTreeMap::new();
        for entry in fs::read_dir(self.layout.stages()).context("listing the stages")? {
            let path = entry.context("listing the stages")?.path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let stage = name
                .rsplit_once('-')
                .map_or(name, |(stage, _)| stage)
                .to_owned();
            let used = fs::metadata(&path).and_then(|data| data.modified());
            by_name
                .entry(stage)
                .or_default()
                .push((used.unwrap_or(SystemTime::UNIX_EPOCH), path));
        }
        for mut stages in by_name.into_values() {
            stages.sort();
            let surplus = stages.len().saturating_sub(KEPT_PER_STAGE);
            for (_, path) in stages.drain(..surplus) {
                remove_tree(&path)?;
            }
        }
        Ok(())
    }

    fn workspace(&self, name: &str, log: PathBuf) -> Result<Workspace> {
        let base = self.run.join(name);
        remove_tree(&base)?;
        let workspace = Workspace {
            work: base.join("work"),
            out: base.join("out"),
            log,
        };
        make_directory(&workspace.work, PRIVATE_MODE)?;
        make_directory(&workspace.out, PRIVATE_MODE)?;
        fs::write(&workspace.log, b"")
            .with_context(|| format!("emptying {}", workspace.log.display()))?;
        Ok(workspace)
    }

    fn land(
        &self,
        name: &str,
        key: Sha256Digest,
        workspace: &Workspace,
        outcome: Outcome,
        directory: &Path,
    ) -> Result<()> {
        let mut outputs = BTreeMap::new();
        for path in outcome.outputs {
            let digest = digest_of_file(&workspace.out.join(&path))
                .with_context(|| format!("stage {name} did not give {path}"))?;
            outputs.insert(path, digest);
        }
        let stamp = Stamp {
            schema: STAMP_SCHEMA.to_owned(),
            stage: name.to_owned(),
            key,
            outputs,
            origins: outcome.origins,
        };
        let bytes = serde_json::to_vec_pretty(&stamp).context("serialising a stage's stamp")?;
        write_synced(&workspace.out.join(STAMP_FILE), &bytes, 0o600)
            .context("writing a stage's stamp")?;
        remove_tree(directory)?;
        fs::rename(&workspace.out, directory)
            .with_context(|| format!("moving stage {name} into place"))?;
        remove_tree(&self.run.join(name))
    }
}

/// Sets the time by which [`Stages::prune`] judges; failing to costs a build later, nothing else.
fn mark_used(directory: &Path) {
    if let Ok(handle) = fs::File::open(directory) {
        let _ = handle.set_modified(SystemTime::now());
    }
}

/// The stamp of a stage that can be taken again: same inputs, outputs as they were.
fn usable(directory: &Path, name: &str, key: Sha256Digest, progress: &Progress) -> Option<Stamp> {
    let bytes = fs::read(directory.join(STAMP_FILE)).ok()?;
    let stamp: Stamp = serde_json::from_slice(&bytes).ok()?;
    if stamp.schema != STAMP_SCHEMA || stamp.stage != name || stamp.key != key {
        return None;
    }
    for (path, digest) in &stamp.outputs {
        if digest_of_file(&directory.join(path)).ok() != Some(*digest) {
            progress.say(format!(
                "{name}: {path} is not what it was; building the stage again"
            ));
            return None;
        }
    }
    Some(stamp)
}

/// How often, and with which pause, the lock is asked for before another builder is assumed.
const LOCK_ATTEMPTS: u32 = 20;
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Locks the file, or says that another builder is there. The lock ends with this process.
fn take_lock(path: &Path) -> Result<fs::File> {
    let context = || format!("opening the lock {}", path.display());
    let file = fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .with_context(context)?;
    // A child that another thread is starting has a copy of the descriptor, and so of the lock that was
    // just given back, until it becomes its program: a lock of moments is no builder.
    for _ in 0..LOCK_ATTEMPTS {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(fs::TryLockError::Error(error)) => return Err(error).with_context(context),
        }
    }
    bail!(
        "another build is running in this repository; wait for it to end ({})",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    struct Scene {
        _scratch: tempfile::TempDir,
        layout: Layout,
        built: Cell<u32>,
    }

    impl Scene {
        fn new() -> Self {
            let scratch = tempfile::tempdir().unwrap();
            let layout = Layout::new(&scratch.path().join("repo")).unwrap();
            layout.make_directories("profile").unwrap();
            Self {
                _scratch: scratch,
                layout,
                built: Cell::new(0),
            }
        }

        fn build(&self, stages: &Stages<'_>, key: &Key) -> Result<Finished> {
            stages.stage("sample", key, &mut Progress::start(), |workspace, _| {
                self.built.set(self.built.get() + 1);
                fs::write(workspace.out.join("output"), b"made")?;
                Ok(Outcome {
                    outputs: vec!["output".to_owned()],
                    origins: Vec::new(),
                })
            })
        }
    }

    fn key(text: &str) -> Key {
        Key::new().bytes("input", text.as_bytes())
    }

    #[test]
    fn a_stage_is_built_once_for_the_same_inputs_and_again_for_others() {
        let scene = Scene::new();
        let stages = Stages::take(&scene.layout, false).unwrap();
        let first = scene.build(&stages, &key("a")).unwrap();
        let again = scene.build(&stages, &key("a")).unwrap();
        assert_eq!((first.directory, scene.built.get()), (again.directory, 1));
        scene.build(&stages, &key("b")).unwrap();
        assert_eq!(scene.built.get(), 2);
    }

    #[test]
    fn a_damaged_output_is_built_again() {
        let scene = Scene::new();
        let stages = Stages::take(&scene.layout, false).unwrap();
        let finished = scene.build(&stages, &key("a")).unwrap();
        fs::write(finished.directory.join("output"), b"damaged").unwrap();
        let again = scene.build(&stages, &key("a")).unwrap();
        assert_eq!(scene.built.get(), 2);
        assert_eq!(fs::read(again.directory.join("output")).unwrap(), b"made");
    }

    #[test]
    fn a_failed_stage_leaves_nothing_that_could_be_taken_for_finished() {
        let scene = Scene::new();
        {
            let stages = Stages::take(&scene.layout, false).unwrap();
            let failed = stages.stage(
                "sample",
                &key("a"),
                &mut Progress::start(),
                |workspace, _| {
                    fs::write(workspace.out.join("output"), b"half")?;
                    bail!("interrupted")
                },
            );
            assert!(
                failed
                    .unwrap_err()
                    .to_string()
                    .contains("stage sample failed")
            );
        }
        assert_eq!(fs::read_dir(scene.layout.stages()).unwrap().count(), 0);
        let stages = Stages::take(&scene.layout, false).unwrap();
        assert_eq!(
            fs::read_dir(scene.layout.work()).unwrap().count(),
            1,
            "only this run's place"
        );
        scene.build(&stages, &key("a")).unwrap();
        assert_eq!(scene.built.get(), 1);
    }

    #[test]
    fn a_fresh_build_takes_no_earlier_stage() {
        let scene = Scene::new();
        scene
            .build(&Stages::take(&scene.layout, false).unwrap(), &key("a"))
            .unwrap();
        scene
            .build(&Stages::take(&scene.layout, true).unwrap(), &key("a"))
            .unwrap();
        assert_eq!(scene.built.get(), 2);
    }

    #[test]
    fn only_the_stages_used_last_are_kept() {
        let scene = Scene::new();
        let stages = Stages::take(&scene.layout, false).unwrap();
        let finished: Vec<Finished> = (0..6)
            .map(|i| {
                let finished = scene.build(&stages, &key(&i.to_string())).unwrap();
                let handle = fs::File::open(&finished.directory).unwrap();
                let age = std::time::Duration::from_secs(1_000 - i);
                handle.set_modified(SystemTime::now() - age).unwrap();
                finished
            })
            .collect();
        // The oldest one is taken again, so it is the newest now.
        scene.build(&stages, &key("0")).unwrap();
        stages.prune().unwrap();
        let there: Vec<bool> = finished
            .iter()
            .map(|stage| stage.directory.exists())
            .collect();
        assert_eq!(there, [true, false, false, true, true, true]);
    }

    #[test]
    fn a_second_builder_is_told_about_the_first() {
        let scene = Scene::new();
        let _first = Stages::take(&scene.layout, false).unwrap();
        let error = Stages::take(&scene.layout, false).unwrap_err().to_string();
        assert!(error.contains("another build is running"), "{error}");
    }

    #[test]
    fn an_output_that_a_stage_promised_must_be_there() {
        let scene = Scene::new();
        let stages = Stages::take(&scene.layout, false).unwrap();
        let promised = stages.stage("sample", &key("a"), &mut Progress::start(), |_, _| {
            Ok(Outcome {
                outputs: vec!["output".to_owned()],
                origins: Vec::new(),
            })
        });
        assert!(format!("{:#}", promised.unwrap_err()).contains("did not give output"));
    }

    #[test]
    fn every_part_of_a_key_counts() {
        let base = key("a").finish();
        assert_ne!(base, key("b").finish());
        assert_ne!(base, Key::new().bytes("other", b"a").finish());
        assert_ne!(base, key("a").bytes("more", b"").finish());
        let both = Key::new().bytes("x", b"1").bytes("y", b"2").finish();
        assert_eq!(both, Key::new().bytes("y", b"2").bytes("x", b"1").finish());
    }
}
