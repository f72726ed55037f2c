//! Puts a closure together, and proves that one is whole.
//!
//! A closure appears under its digest by one rename or not at all, with fixed
//! modes, synced. What is verified is every byte, every mode and that nothing else
//! lies there. This module must never repair a closure in place.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use lazaret_contract::digest::Sha256Digest;
use lazaret_profile::filter::Filter;
use lazaret_profile::manifest::{
    ClosureFile, ClosureManifest, EffectiveOptions, FilterFacts, MANIFEST_BYTES_MAX, MANIFEST_FILE,
    MANIFEST_SCHEMA, Material, Materials, Role, SourceFact, ToolFact,
};

use super::bwrap::{BWRAP, assert_unprivileged, read_evidence};
use super::elf::{self, Traces};
use super::inputs::Inputs;
use super::launcher::{self, LAUNCHER};
use super::layout::{
    Layout, PASSABLE_MODE, make_directory, remove_tree, sync_directory, write_synced,
};
use super::stages::Finished;
use super::{cpython, freeze, toolchain};

/// The mode of a closure's manifest.
const MANIFEST_MODE: u32 = 0o444;

/// The finished stages that a closure is made of.
pub struct Parts<'a> {
    /// bubblewrap.
    pub bubblewrap: &'a Finished,
    /// CPython.
    pub cpython: &'a Finished,
    /// The frozen modules.
    pub frozen: &'a Finished,
    /// The launcher.
    pub launcher: &'a Finished,
    /// The filter.
    pub filter: &'a Filter,
}

/// A closure's files with their manifest, in memory.
#[derive(Debug)]
pub struct Closure {
    /// The manifest.
    pub manifest: ClosureManifest,
    manifest_bytes: Vec<u8>,
    files: Vec<(Role, Vec<u8>)>,
}

impl Closure {
    /// Collects the files and everything that is said of them.
    ///
    /// # Errors
    /// When a part is missing, an executable is not hardened, or a trace of the host is in it.
    pub fn collect(layout: &Layout, inputs: &Inputs, parts: &Parts<'_>) -> Result<Self> {
        let bwrap = read_output(parts.bubblewrap, BWRAP)?;
        let launcher = read_output(parts.launcher, LAUNCHER)?;
        let filter = parts.filter.to_bytes();
        let traces = Traces::of_host(layout.root());
        let mut elf_facts = Vec::new();
        for (role, bytes) in [(Role::Bwrap, &bwrap), (Role::Launcher, &launcher)] {
            let facts = elf::facts(role.file_name(), bytes)?;
            if !facts.is_hardened() {
                bail!("{} is not hardened: {facts:?}", role.file_name());
            }
            traces.assert_absent(role.file_name(), bytes)?;
            elf_facts.push(facts);
        }
        if !launcher
            .windows(filter.len())
            .any(|window| window == filter)
        {
            bail!("the launcher does not hold the filter's instructions");
        }
        let files = vec![
            (Role::Bwrap, bwrap),
            (Role::Launcher, launcher),
            (Role::Filter, filter),
        ];
        let manifest = manifest(inputs, layout, parts, &files, elf_facts)?;
        manifest
            .check()
            .context("checking the closure's manifest")?;
        let manifest_bytes = manifest
            .to_bytes()
            .context("writing the closure's manifest")?;
        Ok(Self {
            manifest,
            manifest_bytes,
            files,
        })
    }

    /// Reads a closure from a directory, verified byte by byte.
    ///
    /// # Errors
    /// As [`verify`].
    pub fn read(directory: &Path, digest: Sha256Digest) -> Result<Self> {
        let manifest = verify(directory, digest)?;
        let mut files = Vec::new();
        for file in &manifest.files {
            let bytes = fs::read(directory.join(&file.path))
                .with_context(|| format!("reading {} of the closure", file.path))?;
            if Sha256Digest::of(&bytes) != file.sha256 {
                bail!("{} of the closure changed while it was read", file.path);
            }
            files.push((file.role, bytes));
        }
        let manifest_bytes = manifest
            .to_bytes()
            .context("writing the closure's manifest")?;
        Ok(Self {
            manifest,
            manifest_bytes,
            files,
        })
    }

    /// The closure's digest.
    pub fn digest(&self) -> Sha256Digest {
        Sha256Digest::of(&self.manifest_bytes)
    }

    /// Writes the closure into `directory`, which lies in `parent`, whole or not at all. One that
    /// is there already and is whole stays; a damaged one is replaced.
    ///
    /// # Errors
    /// When a step fails.
    pub fn write(&self, parent: &Path, directory: &Path) -> Result<()> {
        if verify(directory, self.digest()).is_ok() {
            return Ok(());
        }
        let temporary = parent.join(format!("new-{}", std::process::id()));
        remove_tree(&temporary)?;
        make_directory(&temporary, PASSABLE_MODE)?;
        let written = self.write_files(&temporary);
        written.with_context(|| format!("writing a closure into {}", temporary.display()))?;
        verify(&temporary, self.digest()).context("reading the closure back")?;
        for role in [Role::Bwrap, Role::Launcher] {
            assert_unprivileged(&temporary.join(role.file_name()))?;
        }
        remove_tree(directory)?;
        fs::rename(&temporary, directory)
            .and_then(|()| sync_directory(parent))
            .with_context(|| format!("moving the closure to {}", directory.display()))
    }

    fn write_files(&self, directory: &Path) -> io::Result<()> {
        for (role, bytes) in &self.files {
            write_synced(&directory.join(role.file_name()), bytes, role.mode())?;
        }
        write_synced(
            &directory.join(MANIFEST_FILE),
            &self.manifest_bytes,
            MANIFEST_MODE,
        )?;
        sync_directory(directory)
    }
}

fn read_output(stage: &Finished, name: &str) -> Result<Vec<u8>> {
    let path = stage.directory.join(name);
    fs::read(&path).with_context(|| format!("reading {}", path.display()))
}

fn manifest(
    inputs: &Inputs,
    layout: &Layout,
    parts: &Parts<'_>,
    files: &[(Role, Vec<u8>)],
    elf: Vec<lazaret_profile::manifest::ElfFacts>,
) -> Result<ClosureManifest> {
    let pins = &inputs.pins;
    let evidence = read_evidence(parts.bubblewrap)?;
    let instructions =
        u32::try_from(parts.filter.instructions().len()).context("counting instructions")?;
    Ok(ClosureManifest {
        schema: MANIFEST_SCHEMA.to_owned(),
        profile: inputs.profile.clone(),
        python_version: pins.options.cpython.version.clone(),
        files: files
            .iter()
            .map(|(role, bytes)| ClosureFile::of(*role, bytes))
            .collect(),
        filter: FilterFacts {
            sha256: parts.filter.sha256(),
            instructions,
        },
        pins_sha256: inputs.file_digest("pins.toml")?,
        policy_sha256: inputs.file_digest("policy.toml")?,
        stdlib_sha256: inputs.file_digest("stdlib.txt")?,
        target: pins.options.common.target.clone(),
        sources: source_facts(inputs)?,
        toolchain: tool_facts(inputs)?,
        effective_options: EffectiveOptions {
            bubblewrap_meson: evidence.meson,
            bubblewrap_assume_kernel: evidence.assume_kernel,
            bubblewrap_config_h: evidence.config_h,
            cpython_modules: cpython::modules(parts.cpython)?,
            cpython_pyconfig_sha256: cpython::pyconfig_digest(parts.cpython)?,
        },
        materials: materials(inputs, layout, parts)?,
        elf,
    })
}

fn source_facts(inputs: &Inputs) -> Result<Vec<SourceFact>> {
    let fact = |source: &lazaret_profile::pins::Source| {
        let manifest = source
            .subset
            .as_ref()
            .map(|subset| inputs.file_digest(&subset.manifest));
        Ok(SourceFact {
            name: source.name.clone(),
            version: source.version.clone(),
            licence: source.licence.clone(),
            archive_sha256: source.sha256,
            subset_sha256: manifest.transpose()?,
        })
    };
    inputs.pins.sources.iter().map(fact).collect()
}

fn tool_facts(inputs: &Inputs) -> Result<Vec<ToolFact>> {
    let wheels = toolchain::wheels(&inputs.pins)?;
    let fact = |wheel: &lazaret_profile::pins::Wheel| ToolFact {
        name: wheel.name.clone(),
        version: wheel.version.clone(),
        sha256: wheel.sha256,
    };
    Ok(wheels.into_iter().map(fact).collect())
}

fn materials(inputs: &Inputs, layout: &Layout, parts: &Parts<'_>) -> Result<Materials> {
    let mut libraries = Vec::new();
    for name in cpython::libraries(&inputs.pins)? {
        let sha256 = super::origins::digest_of_file(&parts.cpython.directory.join(&name))?;
        libraries.push(Material { path: name, sha256 });
    }
    Ok(Materials {
        launcher_sources: launcher::source_materials(layout.root())?,
        cpython_headers: launcher::headers(parts.launcher)?,
        libraries,
        frozen: freeze::facts(parts.frozen)?,
    })
}

/// Proves that `directory` holds the closure `digest` and nothing else.
///
/// # Errors
/// Names the first thing that is not as it should be.
pub fn verify(directory: &Path, digest: Sha256Digest) -> Result<ClosureManifest> {
    let shown = directory.display();
    let manifest_path = directory.join(MANIFEST_FILE);
    let length = regular_file(&manifest_path, MANIFEST_MODE)?;
    if length > MANIFEST_BYTES_MAX as u64 {
        bail!("{} is too large", manifest_path.display());
    }
    let bytes =
        fs::read(&manifest_path).with_context(|| format!("reading {}", manifest_path.display()))?;
    let found = Sha256Digest::of(&bytes);
    if found != digest {
        bail!("the closure in {shown} has the digest {found} instead of {digest}");
    }
    let manifest =
        ClosureManifest::parse(&bytes).with_context(|| format!("the closure in {shown}"))?;
    for file in &manifest.files {
        let path = directory.join(&file.path);
        let length = regular_file(&path, file.role.mode())?;
        if length != file.size_bytes {
            bail!(
                "{} has {length} bytes instead of {}",
                path.display(),
                file.size_bytes
            );
        }
        let found = super::origins::digest_of_file(&path)?;
        if found != file.sha256 {
            bail!(
                "{} has the digest {found} instead of {}",
                path.display(),
                file.sha256
            );
        }
    }
    let count = fs::read_dir(directory)
        .with_context(|| format!("listing {shown}"))?
        .count();
    if count != manifest.files.len() + 1 {
        bail!(
            "{shown} holds {count} files instead of {}",
            manifest.files.len() + 1
        );
    }
    Ok(manifest)
}

/// The length of a regular file with exactly `mode` and one name.
fn regular_file(path: &Path, mode: u32) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let metadata =
        fs::symlink_metadata(path).with_context(|| format!("looking at {}", path.display()))?;
    let found = metadata.permissions().mode() & 0o7777;
    if !metadata.is_file() || found != mode || metadata.nlink() != 1 {
        bail!(
            "{} is not a regular file of mode {mode:04o} with one name (mode {found:04o}, {} names)",
            path.display(),
            metadata.nlink()
        );
    }
    Ok(metadata.len())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use lazaret_profile::manifest::{ElfFacts, Relro};

    /// A small closure whose files are texts; the filter has one instruction.
    pub fn sample(launcher: &[u8]) -> Closure {
        let digest = Sha256Digest::of(b"");
        let filter = [6, 0, 0, 0, 0, 0, 0, 0];
        let files = vec![
            (Role::Bwrap, b"bwrap".to_vec()),
            (Role::Launcher, launcher.to_vec()),
            (Role::Filter, filter.to_vec()),
        ];
        let facts = |path: &str| ElfFacts {
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
        let manifest = ClosureManifest {
            schema: MANIFEST_SCHEMA.to_owned(),
            profile: "json-python-bwrap-v1".to_owned(),
            python_version: "3.12.8".to_owned(),
            files: files
                .iter()
                .map(|(role, bytes)| ClosureFile::of(*role, bytes))
                .collect(),
            filter: FilterFacts {
                sha256: Sha256Digest::of(&filter),
                instructions: 1,
            },
            pins_sha256: digest,
            policy_sha256: digest,
            stdlib_sha256: digest,
            target: "x86_64-linux-musl".to_owned(),
            sources: Vec::new(),
            toolchain: Vec::new(),
            effective_options: EffectiveOptions {
                bubblewrap_meson: BTreeMap::new(),
                bubblewrap_assume_kernel: String::new(),
                bubblewrap_config_h: Vec::new(),
                cpython_modules: Vec::new(),
                cpython_pyconfig_sha256: digest,
            },
            materials: Materials {
                launcher_sources: Vec::new(),
                cpython_headers: Vec::new(),
                libraries: Vec::new(),
                frozen: Vec::new(),
            },
            elf: vec![facts("bwrap"), facts("launcher")],
        };
        let manifest_bytes = manifest.to_bytes().unwrap();
        Closure {
            manifest,
            manifest_bytes,
            files,
        }
    }

    struct Scene {
        scratch: tempfile::TempDir,
        closure: Closure,
    }

    impl Scene {
        fn new() -> Self {
            let scene = Self {
                scratch: tempfile::tempdir().unwrap(),
                closure: sample(b"launcher"),
            };
            scene
                .closure
                .write(scene.scratch.path(), &scene.place())
                .unwrap();
            scene
        }

        fn place(&self) -> std::path::PathBuf {
            self.scratch.path().join("closure")
        }

        fn verify(&self) -> Result<ClosureManifest> {
            verify(&self.place(), self.closure.digest())
        }

        fn replace(&self, name: &str, bytes: &[u8], mode: u32) {
            write_synced(&self.place().join(name), bytes, mode).unwrap();
        }
    }

    #[test]
    fn a_written_closure_is_whole_and_has_its_modes() {
        let scene = Scene::new();
        assert_eq!(scene.verify().unwrap(), scene.closure.manifest);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&scene.place()), 0o711);
        assert_eq!(mode(&scene.place().join("launcher")), 0o555);
        assert_eq!(mode(&scene.place().join("filter.bpf")), 0o444);
        // Nothing half-made lies beside it.
        assert_eq!(fs::read_dir(scene.scratch.path()).unwrap().count(), 1);
    }

    #[test]
    fn every_damage_is_found() {
        type Damage = fn(&Scene);
        let damages: [(&str, Damage); 7] = [
            ("a flipped byte", |scene| {
                scene.replace("launcher", b"lauNcher", 0o555)
            }),
            ("a longer file", |scene| {
                scene.replace("bwrap", b"bwrap+", 0o555)
            }),
            ("a set-uid bit", |scene| {
                scene.replace("bwrap", b"bwrap", 0o4555)
            }),
            ("a writable file", |scene| {
                scene.replace("bwrap", b"bwrap", 0o755)
            }),
            ("a missing file", |scene| {
                fs::remove_file(scene.place().join("filter.bpf")).unwrap()
            }),
            ("one file more", |scene| scene.replace("more", b"", 0o444)),
            ("a link", |scene| {
                fs::remove_file(scene.place().join("bwrap")).unwrap();
                std::os::unix::fs::symlink("launcher", scene.place().join("bwrap")).unwrap();
            }),
        ];
        for (name, damage) in damages {
            let scene = Scene::new();
            damage(&scene);
            assert!(scene.verify().is_err(), "{name} was not found");
        }
    }

    #[test]
    fn a_closure_under_another_digest_is_refused() {
        let scene = Scene::new();
        let error = verify(&scene.place(), Sha256Digest::of(b"other"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("instead of"), "{error}");
    }

    #[test]
    fn a_damaged_closure_is_replaced_and_a_whole_one_stays() {
        let scene = Scene::new();
        scene.replace("launcher", b"damaged!", 0o555);
        scene
            .closure
            .write(scene.scratch.path(), &scene.place())
            .unwrap();
        scene.verify().unwrap();
        let before = fs::metadata(scene.place().join("launcher"))
            .unwrap()
            .modified()
            .unwrap();
        scene
            .closure
            .write(scene.scratch.path(), &scene.place())
            .unwrap();
        assert_eq!(
            fs::metadata(scene.place().join("launcher"))
                .unwrap()
                .modified()
                .unwrap(),
            before
        );
    }

    #[test]
    fn a_closure_reads_back_for_a_copy() {
        let scene = Scene::new();
        let read = Closure::read(&scene.place(), scene.closure.digest()).unwrap();
        assert_eq!(read.digest(), scene.closure.digest());
        let copy = scene.scratch.path().join("copy");
        read.write(scene.scratch.path(), &copy).unwrap();
        verify(&copy, scene.closure.digest()).unwrap();
    }
}
