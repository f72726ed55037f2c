//! A git tag as an origin: every object from the commit down is hashed here.
//!
//! git only hands out objects. That the tag is the pinned commit, that the commit
//! holds this tree, the trees these names and the names these contents is shown by
//! computing each object's own id again. SHA-1 is not relied on for more than that:
//! the caller compares the whole with a SHA-256 manifest. Only the subset is read,
//! so a mirror may lack everything else. No hook, filter, attribute, replacement
//! object or remote of the repository has a say.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use lazaret_profile::pins::Subset;
use sha1::{Digest as _, Sha1};

use crate::closure::unpack::{Target, checked_path};

/// The largest commit or tree object that is read.
const META_BYTES_MAX: u64 = 4 << 20;

/// The largest file that is read.
const BLOB_BYTES_MAX: u64 = 64 << 20;

/// A commit of a repository, known to be what the pinned tag names.
#[derive(Debug)]
pub struct Repository {
    path: PathBuf,
    commit: String,
}

impl Repository {
    /// Checks that `tag` of the repository at `path` resolves to `commit`.
    ///
    /// # Errors
    /// When there is no repository, no such tag, or it names another commit.
    pub fn open(path: &Path, tag: &str, commit: &str) -> Result<Self> {
        let output = git(path)
            .args([
                "rev-parse",
                "--verify",
                "--end-of-options",
                &format!("refs/tags/{tag}^{{commit}}"),
            ])
            .output()
            .context("git cannot be started")?;
        if !output.status.success() {
            bail!("git: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let found = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if found != commit {
            bail!("tag {tag} is commit {found} instead of {commit}");
        }
        Ok(Self {
            path: path.to_owned(),
            commit: commit.to_owned(),
        })
    }

    /// Writes the files of `subset` into `target`.
    ///
    /// # Errors
    /// When an object is missing, is not what its id says, or is of a kind that is not unpacked.
    pub fn check_out(&self, subset: &Subset, target: &mut Target) -> Result<()> {
        let mut objects = Objects::start(&self.path)?;
        let commit = objects.get(&self.commit, "commit", META_BYTES_MAX)?;
        let first = commit.split(|&b| b == b'\n').next().unwrap_or_default();
        let tree = first
            .strip_prefix(b"tree ")
            .and_then(|id| std::str::from_utf8(id).ok())
            .context("the commit names no tree")?
            .to_owned();
        self.walk(&mut objects, &tree, "", subset, target)?;
        objects.finish()
    }

    fn walk(
        &self,
        objects: &mut Objects,
        tree: &str,
        prefix: &str,
        subset: &Subset,
        target: &mut Target,
    ) -> Result<()> {
        let bytes = objects.get(tree, "tree", META_BYTES_MAX)?;
        for entry in parse_tree(&bytes)? {
            let path = if prefix.is_empty() {
                entry.name
            } else {
                format!("{prefix}/{}", entry.name)
            };
            let path = checked_path(path.as_bytes())?;
            match entry.mode.as_str() {
                "40000" if may_hold(subset, path) => {
                    self.walk(objects, &entry.id, path, subset, target)?;
                }
                "40000" => {}
                _ if !subset.holds(path) => {}
                "100644" | "100755" => {
                    let contents = objects.get(&entry.id, "blob", BLOB_BYTES_MAX)?;
                    target.file(path, entry.mode == "100755", &mut contents.as_slice())?;
                }
                mode => bail!("{path} is of a kind that is not unpacked (mode {mode})"),
            }
        }
        Ok(())
    }
}

/// Whether anything below the directory `path` can belong to the subset.
fn may_hold(subset: &Subset, path: &str) -> bool {
    let inside = format!("{path}/");
    subset.holds(path)
        || subset
            .include
            .iter()
            .any(|include| include.starts_with(&inside))
}

struct TreeEntry {
    mode: String,
    name: String,
    id: String,
}

/// Reads a tree object: `mode SP name NUL id` for each entry, the id in 20 bytes.
fn parse_tree(mut bytes: &[u8]) -> Result<Vec<TreeEntry>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let split = |bytes: &[u8], at: u8| bytes.iter().position(|&b| b == at);
        let space = split(bytes, b' ').context("a tree object is cut")?;
        let nul = split(bytes, 0)
            .filter(|&nul| nul > space)
            .context("a tree object is cut")?;
        let id = bytes
            .get(nul + 1..nul + 21)
            .context("a tree object is cut")?;
        let text = |part: &[u8]| String::from_utf8(part.to_vec()).context("a name is not UTF-8");
        let name = text(&bytes[space + 1..nul])?;
        if name.contains('/') {
            bail!("the name {name:?} in a tree object holds a slash");
        }
        entries.push(TreeEntry {
            mode: text(&bytes[..space])?,
            name,
            id: hex::encode(id),
        });
        bytes = &bytes[nul + 21..];
    }
    Ok(entries)
}

/// A git process that hands out objects by id.
struct Objects {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Objects {
    fn start(path: &Path) -> Result<Self> {
        let mut child = git(path)
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("git cannot be started")?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().context("git has no output")?);
        Ok(Self {
            child,
            requests,
            answers,
        })
    }

    /// One object, after its id was computed from its bytes.
    fn get(&mut self, id: &str, kind: &str, bytes_max: u64) -> Result<Vec<u8>> {
        let requests = self.requests.as_mut().context("git was closed")?;
        writeln!(requests, "{id}")
            .and_then(|()| requests.flush())
            .context("asking git")?;
        let mut header = String::new();
        self.answers
            .by_ref()
            .take(200)
            .read_line(&mut header)
            .context("reading git's answer")?;
        let words: Vec<&str> = header.split_whitespace().collect();
        let [answered, found_kind, size] = words[..] else {
            bail!("object {id} cannot be read: {}", header.trim());
        };
        let size: u64 = size
            .parse()
            .with_context(|| format!("the size of object {id}"))?;
        if answered != id || found_kind != kind || size > bytes_max {
            bail!(
                "object {id} is not a {kind} of at most {bytes_max} bytes: {}",
                header.trim()
            );
        }
        let mut bytes = Vec::new();
        self.answers
            .by_ref()
            .take(size)
            .read_to_end(&mut bytes)
            .context("reading git's answer")?;
        let mut newline = [0];
        self.answers
            .read_exact(&mut newline)
            .context("reading git's answer")?;
        let computed = object_id(kind, &bytes);
        if bytes.len() as u64 != size || computed != id {
            bail!("object {id} has the contents of {computed}");
        }
        Ok(bytes)
    }

    fn finish(mut self) -> Result<()> {
        drop(self.requests.take());
        let status = self.child.wait().context("waiting for git")?;
        if !status.success() {
            bail!("git ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // After an error the process may still be there; after finish() this does nothing.
        drop(self.requests.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The id that git gives an object (gitformat-pack and git-hash-object(1)).
fn object_id(kind: &str, bytes: &[u8]) -> String {
    let mut hasher = Sha1::new();
    hasher.update(format!("{kind} {}\0", bytes.len()).as_bytes());
    hasher.update(bytes);
    hex::encode(hasher.finalize())
}

/// git on the repository at `path`, with no configuration but its own object store.
fn git(path: &Path) -> Command {
    let mut command = Command::new("git");
    for variable in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    ] {
        command.env_remove(variable);
    }
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        // The caller named this repository; whoever owns it, its objects are verified.
        .args([
            "-c",
            "safe.directory=*",
            "-c",
            "core.hooksPath=/dev/null",
            "-C",
        ])
        .arg(path)
        .stdin(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;

    use lazaret_profile::pins::ArchiveBounds;

    fn subset() -> Subset {
        Subset {
            manifest: "m.sha256".to_owned(),
            include: vec![
                "Lib".to_owned(),
                "Tools/build".to_owned(),
                "configure".to_owned(),
            ],
            exclude: vec!["Lib/test".to_owned()],
        }
    }

    struct Scene {
        scratch: tempfile::TempDir,
        commit: String,
    }

    impl Scene {
        fn new() -> Self {
            let scratch = tempfile::tempdir().unwrap();
            let mut scene = Self {
                scratch,
                commit: String::new(),
            };
            scene.git(&["init", "--quiet"]);
            for (path, text) in [
                ("configure", "#!/bin/sh\n"),
                ("Lib/abc.py", "abc\n"),
                ("Lib/test/t.py", "test\n"),
                ("Tools/build/b.py", "b\n"),
                ("Tools/other.py", "o\n"),
                ("Doc/index.rst", "d\n"),
            ] {
                let full = scene.repository().join(path);
                fs::create_dir_all(full.parent().unwrap()).unwrap();
                fs::write(&full, text).unwrap();
            }
            scene.commit_all();
            scene
        }

        fn repository(&self) -> &Path {
            self.scratch.path()
        }

        fn git(&self, arguments: &[&str]) -> String {
            let output = Command::new("git")
                .args(["-c", "user.name=a", "-c", "user.email=a@example.org", "-C"])
                .arg(self.repository())
                .args(arguments)
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .output()
                .unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        }

        fn commit_all(&mut self) {
            self.git(&["add", "--all"]);
            self.git(&["commit", "--quiet", "--message", "x"]);
            self.git(&["tag", "--force", "--annotate", "--message", "x", "v1.0"]);
            self.commit = self.git(&["rev-parse", "HEAD"]);
        }

        fn check_out(&self) -> Result<BTreeSet<String>> {
            let out = tempfile::tempdir().unwrap();
            let bounds = ArchiveBounds {
                entries_max: 100,
                unpacked_bytes_max: 1_000,
                file_bytes_max: 100,
            };
            let mut target = Target::new(&out.path().join("tree"), &bounds, 0)?;
            let repository = Repository::open(self.repository(), "v1.0", &self.commit)?;
            repository.check_out(&subset(), &mut target)?;
            target.finish()
        }

        fn object(&self, path: &str) -> PathBuf {
            let id = self.git(&["rev-parse", &format!("HEAD:{path}")]);
            self.repository()
                .join(".git/objects")
                .join(&id[..2])
                .join(&id[2..])
        }
    }

    #[test]
    fn only_the_subset_is_checked_out() {
        let files = Scene::new().check_out().unwrap();
        let wanted = ["Lib/abc.py", "Tools/build/b.py", "configure"];
        assert_eq!(files, wanted.map(str::to_owned).into());
    }

    #[test]
    fn a_mirror_may_lack_what_the_subset_does_not_hold() {
        let scene = Scene::new();
        fs::remove_file(scene.object("Doc/index.rst")).unwrap();
        fs::remove_file(scene.object("Doc")).unwrap();
        fs::remove_file(scene.object("Lib/test/t.py")).unwrap();
        assert_eq!(scene.check_out().unwrap().len(), 3);
        fs::remove_file(scene.object("Lib/abc.py")).unwrap();
        assert!(
            scene
                .check_out()
                .unwrap_err()
                .to_string()
                .contains("cannot be read")
        );
    }

    #[test]
    fn a_tag_that_names_another_commit_is_refused() {
        let scene = Scene::new();
        let other = "0".repeat(40);
        let error = Repository::open(scene.repository(), "v1.0", &other)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&scene.commit) && error.contains(&other),
            "{error}"
        );
        assert!(Repository::open(scene.repository(), "v2.0", &scene.commit).is_err());
        assert!(Repository::open(Path::new("/nonexistent"), "v1.0", &scene.commit).is_err());
    }

    #[test]
    fn replacement_objects_have_no_say() {
        let scene = Scene::new();
        let original = scene.git(&["rev-parse", "HEAD:Lib/abc.py"]);
        let path = scene.repository().join("evil");
        fs::write(&path, "evil\n").unwrap();
        let evil = scene.git(&["hash-object", "-w", "evil"]);
        scene.git(&["replace", &original, &evil]);
        let repository = Repository::open(scene.repository(), "v1.0", &scene.commit).unwrap();
        let mut objects = Objects::start(&repository.path).unwrap();
        assert_eq!(objects.get(&original, "blob", 100).unwrap(), b"abc\n");
    }

    #[test]
    fn an_object_that_is_not_what_its_id_says_is_refused() {
        let scene = Scene::new();
        let (from, to) = (scene.object("Tools/other.py"), scene.object("Lib/abc.py"));
        fs::remove_file(&to).unwrap();
        fs::copy(from, &to).unwrap();
        assert!(scene.check_out().is_err());
    }

    #[test]
    fn a_link_inside_the_subset_is_refused_and_one_outside_is_not_seen() {
        let mut scene = Scene::new();
        std::os::unix::fs::symlink("/etc/passwd", scene.repository().join("Doc/link")).unwrap();
        scene.commit_all();
        assert!(scene.check_out().is_ok());
        std::os::unix::fs::symlink("/etc/passwd", scene.repository().join("Lib/link")).unwrap();
        scene.commit_all();
        assert!(
            scene
                .check_out()
                .unwrap_err()
                .to_string()
                .contains("kind that is not unpacked")
        );
    }

    #[test]
    fn the_bounds_hold_for_a_checkout_too() {
        let mut scene = Scene::new();
        fs::write(scene.repository().join("Lib/large.py"), vec![b'x'; 101]).unwrap();
        scene.commit_all();
        assert!(
            scene
                .check_out()
                .unwrap_err()
                .to_string()
                .contains("passes the bound")
        );
    }

    #[test]
    fn the_id_of_an_object_is_gits() {
        // git hash-object of an empty file, and the empty tree.
        assert_eq!(
            object_id("blob", b""),
            "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
        );
        assert_eq!(
            object_id("tree", b""),
            "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
        );
    }

    #[test]
    fn a_cut_tree_object_is_refused() {
        assert!(parse_tree(b"100644 a\0short").is_err());
        assert!(parse_tree(b"100644").is_err());
        let mut slash = b"100644 a/b\0".to_vec();
        slash.extend([0; 20]);
        assert!(parse_tree(&slash).is_err());
    }
}
