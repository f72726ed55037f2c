//! Gets the pinned files: each origin in the order of the pins, each try reported.
//!
//! Nothing is believed: whatever an origin gives is verified by size and digest
//! before it is kept or unpacked. Verified archives lie in `.lazaret/sources`, and
//! a copy goes to the user's cache. The machine's own configuration decides which
//! mirror is asked, so no host of a registry is named in the tree. This module
//! must never change a file of the system, and never unpack what it has not verified.

mod fetch;
mod git;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use lazaret_contract::digest::Sha256Digest;
use lazaret_profile::pins::{Origin, Source, Wheel};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::blocked::Blocked;
use super::layout::{Layout, PRIVATE_MODE, make_directory};
use super::progress::Progress;
use super::subset::TreeManifest;
use super::unpack::{TarRules, Target, tar_xz};

/// What the caller allows and gives.
#[derive(Debug, Clone, Default)]
pub struct OriginOptions {
    /// A directory with files of the pins, by any of their names.
    pub source_dir: Option<PathBuf>,
    /// Git repositories by the name that the pins use.
    pub mirrors: BTreeMap<String, PathBuf>,
    /// Only what is there already.
    pub offline: bool,
}

/// One try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Which origin.
    pub origin: String,
    /// Whether it gave the pinned bytes.
    pub used: bool,
    /// What it gave, or why it did not.
    pub detail: String,
}

/// Where one pinned file came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The pin's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest of the archive that is pinned.
    pub sha256: Sha256Digest,
    /// Every try, in order; the last one was used.
    pub attempts: Vec<Attempt>,
}

/// What a source and a wheel have in common.
struct Pin<'a> {
    name: &'a str,
    version: &'a str,
    archive: &'a str,
    sha256: Sha256Digest,
    bytes_max: u64,
    origins: &'a [Origin],
    /// What a checkout needs; a wheel has none.
    tree: Option<(&'a Source, Option<&'a TreeManifest>)>,
}

impl<'a> From<&'a Source> for Pin<'a> {
    fn from(source: &'a Source) -> Self {
        Self {
            name: &source.name,
            version: &source.version,
            archive: &source.archive,
            sha256: source.sha256,
            bytes_max: source.archive_bytes_max,
            origins: &source.origins,
            tree: Some((source, None)),
        }
    }
}

impl<'a> From<&'a Wheel> for Pin<'a> {
    fn from(wheel: &'a Wheel) -> Self {
        Self {
            name: &wheel.name,
            version: &wheel.version,
            archive: &wheel.archive,
            sha256: wheel.sha256,
            bytes_max: wheel.archive_bytes_max,
            origins: &wheel.origins,
            tree: None,
        }
    }
}

/// What a try gave.
enum Found {
    /// A verified archive.
    Archive(PathBuf),
    /// A checked-out tree, verified as a whole.
    Tree(PathBuf),
}

/// The origins of one invocation.
#[derive(Debug)]
pub struct Sources<'a> {
    layout: &'a Layout,
    options: &'a OriginOptions,
    cache: Option<PathBuf>,
    source_date_epoch: u64,
}

impl<'a> Sources<'a> {
    /// Origins that keep verified archives in the repository and, where there is one, in `cache`.
    pub fn new(
        layout: &'a Layout,
        options: &'a OriginOptions,
        cache: Option<&Path>,
        source_date_epoch: u64,
    ) -> Self {
        let cache = cache.map(|cache| cache.join("sources"));
        Self {
            layout,
            options,
            cache,
            source_date_epoch,
        }
    }

    /// Puts a source's tree into the new directory `into`, verified file by file where the pins
    /// have a manifest.
    ///
    /// # Errors
    /// [`Blocked`] when no origin has it; another error when what it holds breaks a rule.
    pub fn tree(
        &self,
        source: &Source,
        manifest: Option<&TreeManifest>,
        into: &Path,
        progress: &Progress,
    ) -> Result<Provenance> {
        let pin = Pin {
            tree: Some((source, manifest)),
            ..source.into()
        };
        let (found, provenance) = self.find(&pin, progress)?;
        match found {
            Found::Archive(archive) => {
                let mut target = Target::new(into, &source.bounds, self.source_date_epoch)?;
                let wanted = |path: &str| {
                    source
                        .subset
                        .as_ref()
                        .is_none_or(|subset| subset.holds(path))
                };
                let rules = TarRules {
                    top: &source.top,
                    skipped_links: &source.skipped_links,
                };
                tar_xz(&archive, &rules, &mut target, &wanted)
                    .with_context(|| format!("unpacking {}", source.archive))?;
                verify_tree(target, into, manifest)
                    .with_context(|| format!("verifying {}", source.archive))?;
            }
            Found::Tree(tree) => fs::rename(&tree, into)
                .with_context(|| format!("moving the checked-out {} into place", source.name))?,
        }
        Ok(provenance)
    }

    /// Puts the contents of a wheel into the new directory `into`.
    ///
    /// # Errors
    /// As [`Self::tree`].
    pub fn wheel(&self, wheel: &Wheel, into: &Path, progress: &Progress) -> Result<Provenance> {
        let (found, provenance) = self.find(&wheel.into(), progress)?;
        let Found::Archive(archive) = found else {
            bail!("a wheel has no git origin")
        };
        let mut target = Target::new(into, &wheel.bounds, self.source_date_epoch)?;
        super::unpack::wheel(&archive, &mut target)
            .with_context(|| format!("unpacking {}", wheel.archive))?;
        target.finish()?;
        Ok(provenance)
    }

    /// Tries every origin of a pin.
    fn find(&self, pin: &Pin<'_>, progress: &Progress) -> Result<(Found, Provenance)> {
        let mut attempts = Vec::new();
        for origin in candidates(pin) {
            let label = origin.label();
            let (used, detail, found) = match self.attempt(pin, &origin) {
                Ok((found, detail)) => (true, detail, Some(found)),
                Err(error) => (false, one_line(&format!("{error:#}")), None),
            };
            let own = matches!(origin, Candidate::Repository);
            if own && used {
                // How the copy came here is worth more than that it is here.
                attempts = self.kept_attempts(pin);
            }
            if !own || used {
                progress.say(format!("{} {}: {label}: {detail}", pin.name, pin.version));
                attempts.push(Attempt {
                    origin: label,
                    used,
                    detail,
                });
            }
            if let Some(found) = found {
                if !own {
                    self.keep_attempts(pin, &attempts);
                }
                let provenance = Provenance {
                    name: pin.name.to_owned(),
                    version: pin.version.to_owned(),
                    sha256: pin.sha256,
                    attempts,
                };
                return Ok((found, provenance));
            }
        }
        Err(self.blocked(pin, &attempts).into())
    }

    /// The tries that brought the repository's own copy, if they are known.
    fn kept_attempts(&self, pin: &Pin<'_>) -> Vec<Attempt> {
        let bytes = fs::read(self.own_copy(pin).with_extension("origin.json")).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Notes the tries beside the copy; without the note a later record says less.
    fn keep_attempts(&self, pin: &Pin<'_>, attempts: &[Attempt]) {
        if let Ok(bytes) = serde_json::to_vec(attempts) {
            let _ = fs::write(self.own_copy(pin).with_extension("origin.json"), bytes);
        }
    }

    fn blocked(&self, pin: &Pin<'_>, attempts: &[Attempt]) -> Blocked {
        let mut hints = vec![format!(
            "put {} into a directory and give --source-dir DIR",
            pin.archive
        )];
        for origin in pin.origins {
            if let Origin::Git {
                mirror,
                repository,
                tag,
                ..
            } = origin
            {
                hints.push(format!(
                    "with a clone of {repository} that holds {tag}, give --git-mirror {mirror}=PATH"
                ));
            }
        }
        if self.options.offline {
            hints.push("leave out --offline".to_owned());
        }
        let tried = attempts
            .iter()
            .map(|attempt| format!("{}: {}", attempt.origin, attempt.detail));
        Blocked {
            what: format!("{} (SHA-256 {}) cannot be had", pin.archive, pin.sha256),
            tried: tried.collect(),
            hints,
        }
    }

    fn attempt(&self, pin: &Pin<'_>, origin: &Candidate<'_>) -> Result<(Found, String)> {
        match origin {
            Candidate::Repository => {
                let path = self.own_copy(pin);
                verify_file(&path, pin)?;
                Ok((
                    Found::Archive(path),
                    "verified copy in .lazaret/sources".to_owned(),
                ))
            }
            Candidate::SourceDir => self.given_file(pin),
            Candidate::Pinned(Origin::Cache) => {
                let cache = self
                    .cache
                    .as_ref()
                    .context("neither XDG_CACHE_HOME nor HOME is set")?;
                let path = cache.join(pin.sha256.to_string());
                Ok((self.keep(pin, &path)?, "by digest".to_owned()))
            }
            Candidate::Pinned(Origin::Release { url }) => {
                self.online()?;
                self.fetched(pin, |into| fetch::release(url, pin.bytes_max, into))
            }
            Candidate::Pinned(Origin::Debian { source, file, .. }) => {
                self.online()?;
                let state = self.layout.build().join("apt-state");
                make_directory(&state, PRIVATE_MODE)?;
                self.fetched(pin, |into| fetch::debian(source, file, &state, into))
            }
            Candidate::Pinned(Origin::Wheel) => {
                self.online()?;
                self.fetched(pin, |into| {
                    fetch::wheel(pin.name, pin.version, pin.archive, pin.sha256, into)
                })
            }
            Candidate::Pinned(Origin::Git {
                mirror,
                tag,
                commit,
                ..
            }) => {
                let hint = || format!("no --git-mirror {mirror}=PATH was given");
                let path = self.options.mirrors.get(mirror).with_context(hint)?;
                let repository = git::Repository::open(path, tag, commit)?;
                let tree = self.checked_out(pin, &repository)?;
                Ok((
                    Found::Tree(tree),
                    format!("tag {tag} is commit {commit}, every object verified"),
                ))
            }
        }
    }

    /// A checkout beside the archives, verified against the manifest, which a git origin must have.
    fn checked_out(&self, pin: &Pin<'_>, repository: &git::Repository) -> Result<PathBuf> {
        let (source, manifest) = pin.tree.context("a wheel has no git origin")?;
        let subset = source
            .subset
            .as_ref()
            .context("a git origin needs a subset")?;
        let manifest = manifest.context("a git origin needs the manifest of its subset")?;
        let place = self
            .layout
            .sources()
            .join(format!("checkout-{}", std::process::id()));
        super::layout::remove_tree(&place)?;
        let mut target = Target::new(&place, &source.bounds, self.source_date_epoch)?;
        let done = repository
            .check_out(subset, &mut target)
            .and_then(|()| verify_tree(target, &place, Some(manifest)));
        if let Err(error) = done {
            super::layout::remove_tree(&place)?;
            return Err(error);
        }
        Ok(place)
    }

    fn online(&self) -> Result<()> {
        if self.options.offline {
            bail!("not tried: --offline");
        }
        Ok(())
    }

    fn given_file(&self, pin: &Pin<'_>) -> Result<(Found, String)> {
        let directory = self
            .options
            .source_dir
            .as_ref()
            .context("no --source-dir DIR was given")?;
        let mut names = vec![pin.archive.to_owned(), pin.sha256.to_string()];
        for origin in pin.origins {
            if let Origin::Debian { file, .. } = origin {
                names.push(file.clone());
            }
        }
        let Some(name) = names.iter().find(|name| directory.join(name).is_file()) else {
            bail!("none of {} is in {}", names.join(", "), directory.display());
        };
        Ok((self.keep(pin, &directory.join(name))?, name.clone()))
    }

    fn own_copy(&self, pin: &Pin<'_>) -> PathBuf {
        self.layout.sources().join(pin.sha256.to_string())
    }

    /// Runs a fetch into a fresh place, then keeps and caches what came.
    fn fetched(
        &self,
        pin: &Pin<'_>,
        fetch: impl FnOnce(&Path) -> Result<(PathBuf, String)>,
    ) -> Result<(Found, String)> {
        let place = self
            .layout
            .sources()
            .join(format!("fetching-{}", std::process::id()));
        super::layout::remove_tree(&place)?;
        make_directory(&place, PRIVATE_MODE)?;
        let result = fetch(&place).and_then(|(path, detail)| Ok((self.keep(pin, &path)?, detail)));
        super::layout::remove_tree(&place)?;
        let (found, detail) = result?;
        // A cache that cannot be written costs another fetch later, nothing else.
        if let Some(cache) = &self.cache
            && make_directory(cache, PRIVATE_MODE).is_ok()
        {
            let _ = copy_verified(
                &self.own_copy(pin),
                &cache.join(pin.sha256.to_string()),
                pin,
            );
        }
        Ok((found, detail))
    }

    /// Copies a file in if it is the pinned one.
    fn keep(&self, pin: &Pin<'_>, path: &Path) -> Result<Found> {
        let own = self.own_copy(pin);
        copy_verified(path, &own, pin)?;
        Ok(Found::Archive(own))
    }
}

/// Ends the unpacking and compares what is there with the manifest, where there is one.
fn verify_tree(target: Target, root: &Path, manifest: Option<&TreeManifest>) -> Result<()> {
    let files = target.finish()?;
    match manifest {
        Some(manifest) => manifest.verify(root, files.iter().map(String::as_str)),
        None => Ok(()),
    }
}

/// What is tried, in order: our own copy, then the pins' origins, with the caller's directory
/// behind the cache.
enum Candidate<'a> {
    Repository,
    SourceDir,
    Pinned(&'a Origin),
}

impl Candidate<'_> {
    fn label(&self) -> String {
        match self {
            Self::Repository => "repository".to_owned(),
            Self::SourceDir => "source-dir".to_owned(),
            Self::Pinned(Origin::Cache) => "cache".to_owned(),
            Self::Pinned(Origin::Release { .. }) => "release".to_owned(),
            Self::Pinned(Origin::Debian {
                source, version, ..
            }) => format!("debian {source} {version}"),
            Self::Pinned(Origin::Git { mirror, .. }) => format!("git {mirror}"),
            Self::Pinned(Origin::Wheel) => "pip".to_owned(),
        }
    }
}

fn candidates<'a>(pin: &Pin<'a>) -> Vec<Candidate<'a>> {
    let mut list = vec![Candidate::Repository];
    let has_cache = pin
        .origins
        .iter()
        .any(|origin| matches!(origin, Origin::Cache));
    if !has_cache {
        list.push(Candidate::SourceDir);
    }
    for origin in pin.origins {
        list.push(Candidate::Pinned(origin));
        if matches!(origin, Origin::Cache) {
            list.push(Candidate::SourceDir);
        }
    }
    list
}

/// Checks size and digest of a regular file.
fn verify_file(path: &Path, pin: &Pin<'_>) -> Result<()> {
    let metadata = look_at(path)?;
    if !metadata.is_file() || metadata.len() > pin.bytes_max {
        bail!("not a regular file of at most {} bytes", pin.bytes_max);
    }
    let found = digest_of_file(path)?;
    if found != pin.sha256 {
        bail!("its SHA-256 is {found} instead of {}", pin.sha256);
    }
    Ok(())
}

/// The digest of a file, read in pieces.
///
/// # Errors
/// When it cannot be read.
pub fn digest_of_file(path: &Path) -> Result<Sha256Digest> {
    let context = || format!("reading {}", path.display());
    let mut file = fs::File::open(path).with_context(context)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(Sha256Digest::from_bytes(hasher.finalize().into())),
            Ok(count) => hasher.update(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).with_context(context),
        }
    }
}

/// Copies under another name, verifies the copy, then gives it its name: a file under its digest
/// is always whole.
fn copy_verified(from: &Path, to: &Path, pin: &Pin<'_>) -> Result<()> {
    let metadata = look_at(from)?;
    if !metadata.is_file() || metadata.len() > pin.bytes_max {
        bail!("not a regular file of at most {} bytes", pin.bytes_max);
    }
    let temporary = to.with_extension(format!("new-{}", std::process::id()));
    let copied = fs::copy(from, &temporary)
        .map_err(anyhow::Error::from)
        .and_then(|_| verify_file(&temporary, pin))
        .and_then(|()| Ok(fs::rename(&temporary, to)?));
    if copied.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    copied
}

fn look_at(path: &Path) -> Result<fs::Metadata> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => bail!("not there"),
        Err(error) => Err(error).with_context(|| format!("looking at {}", path.display())),
    }
}

/// A cause of failure as one line of bounded length.
fn one_line(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match joined.char_indices().nth(300) {
        Some((end, _)) => format!("{}...", &joined[..end]),
        None => joined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lazaret_profile::pins::ArchiveBounds;

    const BYTES: &[u8] = b"the pinned bytes";

    fn wheel(origins: Vec<Origin>) -> Wheel {
        Wheel {
            name: "tool".to_owned(),
            version: "1.0".to_owned(),
            licence: "MIT".to_owned(),
            archive: "tool-1.0.whl".to_owned(),
            sha256: Sha256Digest::of(BYTES),
            archive_bytes_max: 1_000,
            bounds: ArchiveBounds {
                entries_max: 1,
                unpacked_bytes_max: 1,
                file_bytes_max: 1,
            },
            origins,
        }
    }

    struct Scene {
        scratch: tempfile::TempDir,
        layout: Layout,
        options: OriginOptions,
    }

    impl Scene {
        fn new() -> Self {
            let scratch = tempfile::tempdir().unwrap();
            let layout = Layout::new(&scratch.path().join("repo")).unwrap();
            layout.make_directories("profile").unwrap();
            let options = OriginOptions {
                offline: true,
                ..OriginOptions::default()
            };
            Self {
                scratch,
                layout,
                options,
            }
        }

        fn cache(&self) -> PathBuf {
            self.scratch.path().join("cache")
        }

        fn find(&self, wheel: &Wheel) -> Result<(Found, Provenance)> {
            let cache = self.cache();
            let sources = Sources::new(&self.layout, &self.options, Some(&cache), 0);
            sources.find(&wheel.into(), &Progress::start())
        }
    }

    fn write(path: &Path, bytes: &[u8]) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn every_origin_is_tried_and_each_failure_has_its_cause() {
        let scene = Scene::new();
        let release = Origin::Release {
            url: "https://example.org/tool".to_owned(),
        };
        let error = scene
            .find(&wheel(vec![Origin::Cache, release, Origin::Wheel]))
            .err()
            .unwrap();
        let blocked = error.downcast_ref::<Blocked>().unwrap();
        let tried = blocked.tried.join("\n");
        for cause in [
            "cache: ",
            "source-dir: no --source-dir DIR was given",
            "release: not tried: --offline",
            "pip: not tried: --offline",
        ] {
            assert!(tried.contains(cause), "{cause} is not in {tried}");
        }
        assert_eq!(blocked.tried.len(), 4);
    }

    #[test]
    fn the_cache_is_believed_by_digest_only() {
        let scene = Scene::new();
        let pin = wheel(vec![Origin::Cache]);
        let cached = scene.cache().join("sources").join(pin.sha256.to_string());
        write(&cached, b"other bytes");
        let error = scene.find(&pin).err().unwrap().to_string();
        assert!(error.contains("its SHA-256 is"), "{error}");
        write(&cached, BYTES);
        let (found, provenance) = scene.find(&pin).unwrap();
        let Found::Archive(path) = found else {
            panic!("an archive is wanted")
        };
        assert!(
            path.starts_with(scene.layout.sources()),
            "worked in the cache: {path:?}"
        );
        assert_eq!(provenance.attempts.last().unwrap().origin, "cache");
        // From now on the repository has its own verified copy, and knows where it came from.
        fs::remove_file(&cached).unwrap();
        let (_, provenance) = scene.find(&pin).unwrap();
        let labels: Vec<&str> = provenance
            .attempts
            .iter()
            .map(|attempt| attempt.origin.as_str())
            .collect();
        assert_eq!(labels, ["cache", "repository"]);
    }

    #[test]
    fn a_damaged_own_copy_is_replaced() {
        let scene = Scene::new();
        let pin = wheel(vec![Origin::Cache]);
        write(
            &scene.layout.sources().join(pin.sha256.to_string()),
            b"damaged",
        );
        write(
            &scene.cache().join("sources").join(pin.sha256.to_string()),
            BYTES,
        );
        let (found, _) = scene.find(&pin).unwrap();
        let Found::Archive(path) = found else {
            panic!("an archive is wanted")
        };
        assert_eq!(fs::read(path).unwrap(), BYTES);
    }

    #[test]
    fn the_source_directory_may_use_the_debian_name() {
        let mut scene = Scene::new();
        let directory = scene.scratch.path().join("given");
        write(&directory.join("tool_1.0.orig.tar.xz"), BYTES);
        scene.options.source_dir = Some(directory);
        let debian = Origin::Debian {
            source: "tool".to_owned(),
            version: "1.0-1".to_owned(),
            file: "tool_1.0.orig.tar.xz".to_owned(),
        };
        let (_, provenance) = scene.find(&wheel(vec![Origin::Cache, debian])).unwrap();
        assert_eq!(provenance.attempts.last().unwrap().origin, "source-dir");
    }

    #[test]
    fn a_file_larger_than_its_bound_is_not_even_copied() {
        let scene = Scene::new();
        let mut pin = wheel(vec![Origin::Cache]);
        pin.archive_bytes_max = BYTES.len() as u64 - 1;
        write(
            &scene.cache().join("sources").join(pin.sha256.to_string()),
            BYTES,
        );
        let error = scene.find(&pin).err().unwrap().to_string();
        assert!(error.contains("at most"), "{error}");
        assert_eq!(fs::read_dir(scene.layout.sources()).unwrap().count(), 0);
    }

    #[test]
    fn a_cause_is_one_bounded_line() {
        assert_eq!(one_line("a\n  b\tc"), "a b c");
        assert_eq!(one_line(&"ä".repeat(1_000)).chars().count(), 303);
    }
}
