//! The suite's own programs, built with the parts of the closure.
//!
//! `attack-suite/probe/programs.toml` lists them. A test build of the launcher is
//! linked from the very objects that give the closure's launcher, which is checked by
//! linking that as well and comparing the bytes; then one object is exchanged. A test
//! build of bubblewrap is compiled from the pinned source with the pinned options,
//! with another `main` before its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::closure::bwrap::Evidence;
use crate::closure::launcher::{LAUNCHER, Link};
use crate::closure::stages::{Finished, Key, Outcome, Workspace};
use crate::closure::toolchain::FlagsFor as _;
use crate::closure::{BuildArguments, Made, runner, with_parts};

/// Where the sources lie.
const SOURCES: &str = "attack-suite/probe";

/// The list.
const LIST: &str = "programs.toml";

/// What meson found out about bubblewrap, among its stage's outputs.
const BWRAP_EVIDENCE: &str = "evidence.json";

/// The programs, by name, as files.
#[derive(Debug, Clone)]
pub struct Programs {
    /// Test builds of the launcher.
    pub launchers: BTreeMap<String, PathBuf>,
    /// Test builds of bubblewrap.
    pub bwraps: BTreeMap<String, PathBuf>,
    /// Everything else.
    pub tools: BTreeMap<String, PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    launcher: Vec<LauncherProgram>,
    bwrap: Vec<BwrapProgram>,
    tool: Vec<ToolProgram>,
}

/// A launcher with some of its sources exchanged.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LauncherProgram {
    name: String,
    /// Ours for theirs: `launcher.c = "hostile.c"`.
    replace: BTreeMap<String, String>,
    #[serde(default)]
    define: Vec<String>,
}

/// A bubblewrap with another command line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BwrapProgram {
    name: String,
    define: Vec<String>,
}

/// A program of one source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolProgram {
    name: String,
    source: String,
}

/// Builds what is not built yet.
///
/// # Errors
/// When a part of the closure cannot be had or a source does not compile.
pub fn build(root: &Path, arguments: &BuildArguments) -> Result<Programs> {
    let text = fs::read_to_string(root.join(SOURCES).join(LIST)).context("reading programs.toml")?;
    let list: List = toml::from_str(&text).context("reading programs.toml")?;
    with_parts(root, arguments, |made, progress| {
        let builder = made.builder;
        let base = || -> Result<Key> {
            Key::new()
                .digest("toolchain", builder.toolchain.stage.key)
                .bytes("list", text.as_bytes())
                .file(root, "xtask/src/attack/programs.rs")
        };
        let mut key = base()?.digest("launcher", made.parts.launcher.key);
        for name in sources_in(&root.join(SOURCES))? {
            key = key.file(root, &format!("{SOURCES}/{name}"))?;
        }
        let launchers = builder.stages.stage("attack-launchers", &key, progress, |workspace, _| {
            build_launchers(root, made, &list, workspace)
        })?;
        let key = base()?
            .digest("bubblewrap", made.parts.bubblewrap.key)
            .file(root, &format!("{SOURCES}/bubblewrap.c"))?;
        let bwraps = builder.stages.stage("attack-bwraps", &key, progress, |workspace, progress| {
            let source = builder.pins.source("bubblewrap").context("the pins lack bubblewrap")?;
            let tree = workspace.work.join(&source.top);
            let provenance = builder.sources.tree(source, None, &tree, progress)?;
            let outputs = build_bwraps(root, made, &list, &tree, workspace)?;
            Ok(Outcome { outputs, origins: vec![provenance] })
        })?;
        let path = |stage: &Finished, name: &String| (name.clone(), stage.directory.join(name));
        Ok(Programs {
            launchers: list.launcher.iter().map(|one| path(&launchers, &one.name)).collect(),
            bwraps: list.bwrap.iter().map(|one| path(&bwraps, &one.name)).collect(),
            tools: list.tool.iter().map(|one| path(&launchers, &one.name)).collect(),
        })
    })
}

/// The C sources that lie in a directory.
fn sources_in(directory: &Path) -> Result<Vec<String>> {
    let listing = || format!("listing {}", directory.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).with_context(listing)? {
        let name = entry.with_context(listing)?.file_name();
        let name = name.into_string().map_err(|name| anyhow::anyhow!("{name:?} is not UTF-8"))?;
        if name.ends_with(".c") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn build_launchers(root: &Path, made: &Made<'_>, list: &List, workspace: &Workspace) -> Result<Outcome> {
    let link = Link {
        builder: made.builder,
        cpython: made.parts.cpython,
        frozen: made.parts.frozen,
        workspace,
    };
    let objects = link.compile_all(made.parts.filter)?;
    require_production(&link, &objects, made.parts.launcher)?;
    let flags = &made.builder.pins.options.launcher.cflags;
    let mut outputs = Vec::new();
    for program in &list.launcher {
        let mut changed = objects.clone();
        for (theirs, ours) in &program.replace {
            let object = compile_as(&link, root, ours, &program.name, flags, &program.define)?;
            let theirs = workspace.work.join(theirs).with_extension("o");
            let place = changed.iter().position(|path| *path == theirs);
            let place = place.with_context(|| format!("{} is no object of the launcher", theirs.display()))?;
            changed[place] = object;
        }
        link.link(&changed, &workspace.out.join(&program.name))?;
        outputs.push(program.name.clone());
    }
    for program in &list.tool {
        let object = compile_as(&link, root, &program.source, &program.name, flags, &[])?;
        link.link(&[object], &workspace.out.join(&program.name))?;
        outputs.push(program.name.clone());
    }
    Ok(Outcome { outputs, origins: Vec::new() })
}

/// The objects are those of the closure's launcher: linked, they give the same bytes.
fn require_production(link: &Link<'_>, objects: &[PathBuf], launcher: &Finished) -> Result<()> {
    let again = link.workspace.work.join("again");
    link.link(objects, &again)?;
    let production = fs::read(launcher.directory.join(LAUNCHER)).context("reading the launcher")?;
    if fs::read(&again).context("reading the launcher linked again")? != production {
        bail!("the launcher linked again is not the closure's; its test builds would prove nothing");
    }
    Ok(())
}

/// Compiles one of our sources under a name of its own, so that two builds of it do not meet.
fn compile_as(
    link: &Link<'_>,
    root: &Path,
    source: &str,
    name: &str,
    flags: &[String],
    defines: &[String],
) -> Result<PathBuf> {
    let copy = link.workspace.work.join(format!("{name}-{source}"));
    fs::copy(root.join(SOURCES).join(source), &copy).with_context(|| format!("copying {source}"))?;
    let mut flags = flags.to_vec();
    flags.extend(defines.iter().map(|define| format!("-D{define}")));
    link.compile(&copy, &flags)
}

fn build_bwraps(
    root: &Path,
    made: &Made<'_>,
    list: &List,
    tree: &Path,
    workspace: &Workspace,
) -> Result<Vec<String>> {
    let evidence = fs::read(made.parts.bubblewrap.directory.join(BWRAP_EVIDENCE))
        .context("reading what meson found out")?;
    let evidence: Evidence = serde_json::from_slice(&evidence).context("reading what meson found out")?;
    fs::write(tree.join("config.h"), evidence.config_h.join("\n") + "\n").context("writing config.h")?;
    let options = &made.builder.pins.options;
    let mut flags = options.common.cflags_for(&workspace.work);
    flags.extend(options.bubblewrap.cflags.iter().cloned());
    flags.extend(["-D_GNU_SOURCE", "-I."].map(str::to_owned));
    let include = format!("-I{}", made.libcap.directory.join("include").display());
    let compile = |source: &str, object: &str, more: &[String]| -> Result<()> {
        let mut command = made.builder.runner.command("cc", tree);
        command.args(&flags).arg(&include).args(more).args(["-c", source, "-o", object]);
        runner::run(&mut command, &workspace.log)
    };
    let theirs = sources_in(tree)?;
    for name in &theirs {
        compile(name, &format!("{name}.o"), &["-Dmain=bubblewrap_main".to_owned()])?;
    }
    fs::copy(root.join(SOURCES).join("bubblewrap.c"), tree.join("attack.c")).context("copying bubblewrap.c")?;
    for program in &list.bwrap {
        let defines: Vec<String> = program.define.iter().map(|define| format!("-D{define}")).collect();
        compile("attack.c", "attack.o", &defines)?;
        let mut command = made.builder.runner.command("cc", tree);
        command.args(&options.common.ldflags).arg("-o").arg(workspace.out.join(&program.name));
        command.arg("attack.o").args(theirs.iter().map(|name| format!("{name}.o")));
        command.arg(made.libcap.directory.join("libcap.a"));
        runner::run(&mut command, &workspace.log)?;
    }
    Ok(list.bwrap.iter().map(|program| program.name.clone()).collect())
}
