//! CPython as static libraries, and the program that freezes modules.
//!
//! In the tree, with the pinned toolchain; no part of the sources is edited. What
//! configure would find out from the host is preset by the pins; what came out is
//! compared with them: every extension module that configure knows is named as in
//! or out, and the table of built-in modules must be exactly the one that is wanted.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use lazaret_contract::digest::Sha256Digest;
use lazaret_profile::pins::{Pins, Source};

use super::bwrap::Builder;
use super::progress::Progress;
use super::runner;
use super::stages::{Finished, Key, Outcome, Workspace};
use super::subset::TreeManifest;
use super::toolchain::FlagsFor;

/// The program that compiles and marshals one module, among the stage's outputs.
pub const FREEZER: &str = "freeze_module";

/// The headers, among the stage's outputs.
pub const INCLUDE: &str = "Include";

/// The standard library's sources, among the stage's outputs.
pub const LIBRARY: &str = "Lib";

/// What configure made of the options.
pub const PYCONFIG: &str = "pyconfig.h";

/// The names of the built-in modules, one a line, among the stage's outputs.
const MODULES: &str = "modules.txt";

/// Builds CPython.
///
/// # Errors
/// When the source cannot be had, a command fails, or the result is not what the pins say.
pub fn build(
    builder: &Builder<'_>,
    manifest: &TreeManifest,
    progress: &mut Progress,
) -> Result<Finished> {
    let source = builder
        .pins
        .source("cpython")
        .context("the pins lack cpython")?;
    let key = key(builder, source, manifest)?;
    builder
        .stages
        .stage("cpython", &key, progress, |workspace, progress| {
            let tree = workspace.work.join(&source.top);
            let provenance = builder
                .sources
                .tree(source, Some(manifest), &tree, progress)?;
            check_known_modules(builder.pins, &tree)?;
            configure(builder, &tree, workspace)?;
            progress.say("cpython: configured, compiling");
            make(builder, &tree, workspace)?;
            let modules = built_in_modules(&tree)?;
            check_modules(builder.pins, &modules)?;
            let outputs = collect(builder.pins, &tree, &modules, workspace)?;
            Ok(Outcome {
                outputs,
                origins: vec![provenance],
            })
        })
}

fn key(builder: &Builder<'_>, source: &Source, manifest: &TreeManifest) -> Result<Key> {
    let mut tree = String::new();
    for path in manifest.paths() {
        let digest = manifest
            .digest(path)
            .context("a path of the manifest has no digest")?;
        tree.push_str(&format!("{digest}  {path}\n"));
    }
    // The archive's digest is not part of it: a git tag gives the same tree.
    Key::new()
        .digest("toolchain", builder.toolchain.stage.key)
        .bytes("tree", tree.as_bytes())
        .bytes("top", source.top.as_bytes())
        .value("common", &builder.pins.options.common)?
        .value("options", &builder.pins.options.cpython)?
        .file(builder.root, "xtask/src/closure/cpython.rs")?
        .file(builder.root, "xtask/src/closure/runner.rs")
}

fn configure(builder: &Builder<'_>, tree: &Path, workspace: &Workspace) -> Result<()> {
    let options = &builder.pins.options;
    let mut cflags = options.common.cflags_for(tree);
    cflags.extend(options.cpython.cflags.iter().cloned());
    let mut command = builder.runner.command("sh", tree);
    command.arg("./configure").args(&options.cpython.configure);
    command
        .args(["CC=cc", "AR=ar", "RANLIB=ranlib", "OPT=-DNDEBUG"])
        .arg(format!("CFLAGS={}", cflags.join(" ")))
        .arg(format!("LDFLAGS={}", options.common.ldflags.join(" ")))
        .envs(&options.cpython.preset);
    for module in &options.cpython.modules_out {
        command.env(format!("py_cv_module_{module}"), "n/a");
    }
    runner::run(&mut command, &workspace.log)
}

fn make(builder: &Builder<'_>, tree: &Path, workspace: &Workspace) -> Result<()> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = builder.runner.command("make", tree);
    command
        .arg(format!("-j{jobs}"))
        .args(&builder.pins.options.cpython.make)
        .arg(library_name(builder.pins))
        .arg("Programs/_freeze_module")
        .args(&builder.pins.options.cpython.libraries);
    runner::run(&mut command, &workspace.log)
}

/// `libpython3.12.a` for 3.12.8.
fn library_name(pins: &Pins) -> String {
    let version = &pins.options.cpython.version;
    let short = version
        .rsplit_once('.')
        .map_or(version.as_str(), |(short, _)| short);
    format!("libpython{short}.a")
}

/// Every module that configure has a switch for must be named in the pins, so that a new version
/// cannot bring one in unseen.
fn check_known_modules(pins: &Pins, tree: &Path) -> Result<()> {
    let text = fs::read_to_string(tree.join("configure")).context("reading configure")?;
    let options = &pins.options.cpython;
    let named: BTreeSet<&str> = options
        .modules_in
        .iter()
        .chain(&options.modules_out)
        .map(String::as_str)
        .collect();
    let unnamed: Vec<&str> = switches(&text)
        .into_iter()
        .filter(|name| !named.contains(name))
        .collect();
    if !unnamed.is_empty() {
        bail!(
            "the pins say neither in nor out for the modules {}",
            unnamed.join(", ")
        );
    }
    Ok(())
}

/// The names behind `py_cv_module_` in configure.
fn switches(configure: &str) -> BTreeSet<&str> {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    configure
        .split("py_cv_module_")
        .skip(1)
        .map(|rest| &rest[..rest.bytes().position(|b| !is_name(b)).unwrap_or(rest.len())])
        .filter(|name| !name.is_empty())
        .collect()
}

/// The names in CPython's own table of built-in modules, as makesetup wrote it.
fn built_in_modules(tree: &Path) -> Result<BTreeSet<String>> {
    let text =
        fs::read_to_string(tree.join("Modules/config.c")).context("reading Modules/config.c")?;
    let names: BTreeSet<String> = table_names(&text).map(str::to_owned).collect();
    if names.is_empty() {
        bail!("Modules/config.c names no module");
    }
    Ok(names)
}

/// The names in lines of the form `{"name", PyInit_name},`.
fn table_names(config_c: &str) -> impl Iterator<Item = &str> {
    config_c
        .lines()
        .filter_map(|line| line.trim().strip_prefix("{\"")?.split_once('"'))
        .map(|(name, _)| name)
}

fn check_modules(pins: &Pins, found: &BTreeSet<String>) -> Result<()> {
    let wanted: BTreeSet<String> = pins.options.cpython.modules_in.iter().cloned().collect();
    let list = |set: Vec<&String>| set.into_iter().cloned().collect::<Vec<_>>().join(", ");
    let extra = list(found.difference(&wanted).collect());
    let missing = list(wanted.difference(found).collect());
    if !extra.is_empty() || !missing.is_empty() {
        bail!("the built-in modules are not the pinned ones: extra [{extra}], missing [{missing}]");
    }
    Ok(())
}

/// Moves what later stages need into the outputs.
fn collect(
    pins: &Pins,
    tree: &Path,
    modules: &BTreeSet<String>,
    workspace: &Workspace,
) -> Result<Vec<String>> {
    let library = library_name(pins);
    let mut outputs = vec![library.clone()];
    let out = &workspace.out;
    let take = |from: &str, to: &str| {
        fs::rename(tree.join(from), out.join(to)).with_context(|| format!("taking {from}"))
    };
    take(&library, &library)?;
    for path in &pins.options.cpython.libraries {
        let name = file_name(path)?;
        take(path, name)?;
        outputs.push(name.to_owned());
    }
    take("Programs/_freeze_module", FREEZER)?;
    take("pyconfig.h", PYCONFIG)?;
    take("Include", INCLUDE)?;
    take("Lib", LIBRARY)?;
    let names = modules
        .iter()
        .map(|name| format!("{name}\n"))
        .collect::<String>();
    fs::write(out.join(MODULES), names).context("writing the names of the modules")?;
    outputs.extend([FREEZER, PYCONFIG, MODULES].map(str::to_owned));
    Ok(outputs)
}

/// The static libraries of a finished stage, in the order of linking.
///
/// # Errors
/// When the pins name a library without a file name.
pub fn libraries(pins: &Pins) -> Result<Vec<String>> {
    let mut names = vec![library_name(pins)];
    for path in &pins.options.cpython.libraries {
        names.push(file_name(path)?.to_owned());
    }
    Ok(names)
}

fn file_name(path: &str) -> Result<&str> {
    Path::new(path)
        .file_name()
        .and_then(OsStr::to_str)
        .with_context(|| format!("{path} names no file"))
}

/// The names of the built-in modules of a finished stage.
///
/// # Errors
/// When the list cannot be read.
pub fn modules(stage: &Finished) -> Result<Vec<String>> {
    let text =
        fs::read_to_string(stage.directory.join(MODULES)).context("reading the modules' names")?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// The digest of configure's result.
///
/// # Errors
/// When it cannot be read.
pub fn pyconfig_digest(stage: &Finished) -> Result<Sha256Digest> {
    super::origins::digest_of_file(&stage.directory.join(PYCONFIG))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_of_configure_is_found_once() {
        let text = "if test ${py_cv_module__json+y}\npy_cv_module__json=yes py_cv_module_zlib=n/a $py_cv_module_\n";
        assert_eq!(switches(text), BTreeSet::from(["_json", "zlib"]));
    }

    #[test]
    fn the_table_of_built_in_modules_is_read_with_its_special_rows() {
        let text = "extern PyObject* PyInit__json(void);\n    {\"_json\", PyInit__json},\n\n    \
                    {\"builtins\", NULL},\n    /* Sentinel */\n    {0, 0}\n";
        assert_eq!(table_names(text).collect::<Vec<_>>(), ["_json", "builtins"]);
    }
}
