//! The launcher: our C, the filter and the frozen table, linked with CPython.
//!
//! The flags come from the pins, the compiler is the pinned one; the `cc` crate
//! puts the command lines together, and each is run with a log. The objects are
//! linked in one fixed order. What was included is recorded from the compiler's own
//! lists of dependencies, so that no header is forgotten.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use lazaret_contract::digest::Sha256Digest;
use lazaret_profile::filter::Filter;
use lazaret_profile::manifest::Material;
use lazaret_profile::policy::Policy;

use super::bwrap::{Builder, assert_unprivileged};
use super::cpython::{INCLUDE, PYCONFIG, libraries};
use super::freeze::TABLE;
use super::origins::digest_of_file;
use super::progress::Progress;
use super::runner;
use super::stages::{Finished, Key, Outcome, Workspace};
use super::toolchain::FlagsFor;

/// The program, among the stage's outputs.
pub const LAUNCHER: &str = "launcher";

/// The headers of CPython that were used, among the stage's outputs.
const HEADERS: &str = "headers.json";

/// Where the launcher's sources lie in the tree.
pub const SOURCES: &str = "crates/launcher/c";

/// The header with the filter, beside the objects.
const FILTER_HEADER: &str = "lazaret_filter.h";

/// Compiles the filter of a policy and proves that it is the policy.
///
/// # Errors
/// When the policy is not valid, the program does not say the same, or this build of xtask
/// leaves profiles out.
pub fn filter(policy_text: &str) -> Result<Filter> {
    let policy = Policy::parse(policy_text).context("reading policy.toml")?;
    let filter = compile(&policy)?;
    filter
        .prove(&policy)
        .map_err(|difference| anyhow::anyhow!("the filter is not the policy: {difference}"))?;
    Ok(filter)
}

#[cfg(all(target_os = "linux", not(lazaret_no_profile)))]
fn compile(policy: &Policy) -> Result<Filter> {
    Filter::compile(policy).context("compiling policy.toml")
}

#[cfg(not(all(target_os = "linux", not(lazaret_no_profile))))]
fn compile(_policy: &Policy) -> Result<Filter> {
    Err(super::blocked::Blocked {
        what: "profiles are unsupported here: they exist for Linux on x86_64".to_owned(),
        tried: Vec::new(),
        hints: vec!["build the closure on Linux, without --cfg lazaret_no_profile".to_owned()],
    }
    .into())
}

/// The launcher's own files, sources and headers, by name.
///
/// # Errors
/// When the directory cannot be read or holds no source.
pub fn source_files(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join(SOURCES)).with_context(|| format!("listing {SOURCES}"))? {
        let name = entry
            .with_context(|| format!("listing {SOURCES}"))?
            .file_name();
        let name = name
            .into_string()
            .map_err(|name| anyhow::anyhow!("{name:?} is not UTF-8"))?;
        if name.ends_with(".c") || name.ends_with(".h") {
            names.push(name);
        }
    }
    names.sort();
    if !names.iter().any(|name| name.ends_with(".c")) {
        bail!("{SOURCES} holds no C source");
    }
    Ok(names)
}

/// The launcher's own files with their digests.
///
/// # Errors
/// As [`source_files`].
pub fn source_materials(root: &Path) -> Result<Vec<Material>> {
    let material = |name: String| {
        let path = format!("{SOURCES}/{name}");
        let sha256 = digest_of_file(&root.join(&path))?;
        Ok(Material { path, sha256 })
    };
    source_files(root)?.into_iter().map(material).collect()
}

/// Compiles and links the launcher.
///
/// # Errors
/// When a source does not compile without a warning, or linking fails.
pub fn build(
    builder: &Builder<'_>,
    cpython: &Finished,
    frozen: &Finished,
    filter: &Filter,
    progress: &mut Progress,
) -> Result<Finished> {
    let mut key = Key::new()
        .digest("toolchain", builder.toolchain.stage.key)
        .digest("cpython", cpython.key)
        .digest("frozen", frozen.key)
        .digest("filter", filter.sha256())
        .bytes("filter header", filter.to_c_header().as_bytes())
        .value("common", &builder.pins.options.common)?
        .value("options", &builder.pins.options.launcher)?
        .file(builder.root, "xtask/src/closure/launcher.rs")?
        .file(builder.root, "xtask/src/closure/runner.rs")?;
    for name in source_files(builder.root)? {
        key = key.file(builder.root, &format!("{SOURCES}/{name}"))?;
    }
    builder
        .stages
        .stage("launcher", &key, progress, |workspace, _| {
            let link = Link {
                builder,
                cpython,
                frozen,
                workspace,
            };
            fs::write(workspace.work.join(FILTER_HEADER), filter.to_c_header())
                .context("writing the filter's header")?;
            let objects = link.compile_all()?;
            link.link(&objects)?;
            let headers = link.headers_used(&objects)?;
            let bytes = serde_json::to_vec_pretty(&headers).context("serialising the headers")?;
            fs::write(workspace.out.join(HEADERS), bytes).context("writing the headers")?;
            let outputs = [LAUNCHER, HEADERS].map(str::to_owned).to_vec();
            Ok(Outcome {
                outputs,
                origins: Vec::new(),
            })
        })
}

/// The headers of CPython that a finished launcher was compiled with.
///
/// # Errors
/// When the list cannot be read.
pub fn headers(stage: &Finished) -> Result<Vec<Material>> {
    let bytes =
        fs::read(stage.directory.join(HEADERS)).context("reading the launcher's headers")?;
    serde_json::from_slice(&bytes).context("reading the launcher's headers")
}

struct Link<'a> {
    builder: &'a Builder<'a>,
    cpython: &'a Finished,
    frozen: &'a Finished,
    workspace: &'a Workspace,
}

impl Link<'_> {
    /// Compiles our sources and the table; the order is that of the names, the table last.
    fn compile_all(&self) -> Result<Vec<PathBuf>> {
        let options = &self.builder.pins.options.launcher;
        // Copied, so that no path of the checkout can reach __FILE__ or a list of dependencies.
        let mut objects = Vec::new();
        for name in source_files(self.builder.root)? {
            let from = self.builder.root.join(SOURCES).join(&name);
            fs::copy(&from, self.workspace.work.join(&name))
                .with_context(|| format!("copying {name}"))?;
            if name.ends_with(".c") {
                objects.push(name);
            }
        }
        let mut paths = Vec::new();
        for name in objects {
            paths.push(self.compile(Path::new(&name), &options.cflags)?);
        }
        // In its own place, where the code lies that it embeds.
        let table = self.frozen.directory.join(TABLE);
        paths.push(self.compile(&table, &options.frozen_cflags)?);
        Ok(paths)
    }

    fn compile(&self, source: &Path, flags: &[String]) -> Result<PathBuf> {
        let work = &self.workspace.work;
        let name = source.file_name().context("a source without a name")?;
        let object = work.join(name).with_extension("o");
        let tool = self.tool(flags)?;
        let mut command = self.builder.runner.command(tool.path(), work);
        command
            .args(tool.args())
            .args(["-MD", "-c", "-o"])
            .arg(&object)
            .arg(source);
        runner::run(&mut command, &self.workspace.log)?;
        Ok(object)
    }

    /// The command line of the compiler, with nothing in it that the pins do not say.
    fn tool(&self, flags: &[String]) -> Result<cc::Tool> {
        let common = &self.builder.pins.options.common;
        let mut build = cc::Build::new();
        build
            // Nothing of the caller's environment, CFLAGS above all.
            .set_envs_snapshot(self.builder.runner.environment())
            .cargo_metadata(false)
            .cargo_warnings(false)
            .warnings(false)
            .extra_warnings(false)
            .no_default_flags(true)
            .compiler(self.builder.runner.tools().join("cc"))
            .target("x86_64-unknown-linux-musl")
            .host("x86_64-unknown-linux-gnu")
            .opt_level(2)
            .debug(false)
            .out_dir(&self.workspace.work);
        for flag in common.cflags_for(&self.workspace.work).iter().chain(flags) {
            build.flag(flag);
        }
        build.flag("-I").flag(".");
        for directory in [
            self.cpython.directory.join(INCLUDE),
            self.cpython.directory.clone(),
        ] {
            // As a system header: warnings are for our sources.
            build.flag("-isystem").flag(&directory);
        }
        build
            .try_get_compiler()
            .context("putting the compiler's command line together")
    }

    fn link(&self, objects: &[PathBuf]) -> Result<()> {
        let options = &self.builder.pins.options;
        let program = self.workspace.out.join(LAUNCHER);
        let mut command = self.builder.runner.command("cc", &self.workspace.work);
        command
            .args(&options.common.ldflags)
            .arg("-o")
            .arg(&program)
            .args(objects);
        for library in libraries(self.builder.pins)? {
            command.arg(self.cpython.directory.join(library));
        }
        command.args(&options.launcher.ldflags);
        runner::run(&mut command, &self.workspace.log)?;
        assert_unprivileged(&program)
    }

    /// CPython's headers in the compiler's lists of dependencies.
    fn headers_used(&self, objects: &[PathBuf]) -> Result<Vec<Material>> {
        let base = &self.cpython.directory;
        let mut used = BTreeSet::new();
        for object in objects {
            let list = object.with_extension("d");
            let text =
                fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
            for path in dependencies(&text) {
                if let Ok(below) = Path::new(path).strip_prefix(base) {
                    used.insert(below.to_string_lossy().into_owned());
                }
            }
        }
        if !used.contains(PYCONFIG) {
            bail!("the compiler's lists of dependencies do not name {PYCONFIG}");
        }
        let material = |path: String| {
            let sha256: Sha256Digest = digest_of_file(&base.join(&path))?;
            Ok(Material { path, sha256 })
        };
        used.into_iter().map(material).collect()
    }
}

/// The prerequisites in a list of dependencies as make reads it. Our paths have no white space.
fn dependencies(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
        .filter(|word| *word != "\\" && !word.ends_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_dependencies_gives_its_prerequisites() {
        let text = "launcher.o: launcher.c \\\n  /c/Include/Python.h \\\n  ./util.h\n";
        let found: Vec<&str> = dependencies(text).collect();
        assert_eq!(found, ["launcher.c", "/c/Include/Python.h", "./util.h"]);
    }

    #[test]
    fn the_launchers_sources_are_listed_in_order() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let names = source_files(root).unwrap();
        assert!(names.is_sorted());
        assert!(names.iter().any(|name| name == "launcher.c"));
        assert!(names.iter().any(|name| name == "lazaret_abi.h"));
    }
}
