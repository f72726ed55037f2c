//! The pinned toolchain: zig's C compiler, meson and ninja, from wheels.
//!
//! The same compiler on every host, with its own libc for the target, so that
//! nothing of the host's compiler or libc reaches an output. It must never fall
//! back to a tool of the host.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use lazaret_profile::pins::{CommonOptions, Pins, WORK_PLACEHOLDER, Wheel};

use super::origins::Sources;
use super::progress::Progress;
use super::runner::{self, Runner};
use super::stages::{Finished, Key, Outcome, Stages};

/// The wheels that a toolchain consists of.
const WHEELS: [&str; 3] = ["ziglang", "meson", "ninja"];

/// Files of the unpacked wheels that are looked at before they are used again.
const ZIG: &str = "ziglang/ziglang/zig";
const NINJA: &str = "ninja/ninja-1.13.2.data/scripts/ninja";
const MESON: &str = "meson/mesonbuild/mesonmain.py";

/// A toolchain that is ready for use.
#[derive(Debug)]
pub struct Toolchain {
    /// The finished stage.
    pub stage: Finished,
}

/// Unpacks the wheels.
///
/// # Errors
/// When a wheel cannot be had or is not as expected.
pub fn build(
    stages: &Stages<'_>,
    pins: &Pins,
    sources: &Sources<'_>,
    root: &Path,
    progress: &mut Progress,
) -> Result<Toolchain> {
    let wheels = wheels(pins)?;
    let mut key = Key::new()
        .file(root, "xtask/src/closure/toolchain.rs")?
        .file(root, "xtask/src/closure/unpack.rs")?;
    for wheel in &wheels {
        key = key.digest(&wheel.name, wheel.sha256);
    }
    let stage = stages.stage("toolchain", &key, progress, |workspace, progress| {
        let mut outcome = Outcome::default();
        for wheel in &wheels {
            let into = workspace.out.join(&wheel.name);
            outcome.origins.push(sources.wheel(wheel, &into, progress)?);
        }
        outcome.outputs = [ZIG, NINJA, MESON].map(str::to_owned).to_vec();
        Ok(outcome)
    })?;
    Ok(Toolchain { stage })
}

/// The toolchain's pins, in a fixed order.
///
/// # Errors
/// When the pins lack one, or name another version of ninja than this module knows the place of.
pub fn wheels(pins: &Pins) -> Result<Vec<&Wheel>> {
    let ninja = pins
        .wheel("ninja")
        .context("the pins lack the wheel ninja")?;
    if !NINJA.contains(&format!("ninja-{}.data", ninja.version)) {
        bail!(
            "the pins name ninja {}, whose program this build does not know",
            ninja.version
        );
    }
    WHEELS
        .iter()
        .map(|name| {
            pins.wheel(name)
                .with_context(|| format!("the pins lack {name}"))
        })
        .collect()
}

impl Toolchain {
    /// Puts the compiler and its companions among the runner's tools, under the names that
    /// configure, make and meson look for.
    ///
    /// # Errors
    /// When one cannot be put there.
    pub fn install(&self, runner: &Runner, common: &CommonOptions) -> Result<()> {
        let zig = self.stage.directory.join(ZIG);
        let zig = zig.display();
        let compiler = format!(
            "exec {zig} cc -target {} -mcpu={} \"$@\"",
            common.target, common.cpu
        );
        for (name, line) in [
            ("cc", compiler),
            ("ar", format!("exec {zig} ar \"$@\"")),
            ("ranlib", format!("exec {zig} ranlib \"$@\"")),
        ] {
            runner.add_script(name, &format!("#!/bin/sh\n{line}\n"))?;
        }
        runner.add_link("ninja", &self.stage.directory.join(NINJA))?;
        let meson = self.stage.directory.join("meson");
        let program = format!(
            "import sys\nsys.path.insert(0, {:?})\nfrom mesonbuild.mesonmain import main\nsys.exit(main())\n",
            meson.display().to_string()
        );
        runner.add_script("meson.py", &program)
    }

    /// Compiles and runs one empty program, so that a host on which the toolchain cannot work is
    /// known before anything is built with it. This also builds the target's libc.
    ///
    /// # Errors
    /// When compiling or running fails.
    pub fn probe(
        &self,
        runner: &Runner,
        common: &CommonOptions,
        work: &Path,
        log: &Path,
    ) -> Result<()> {
        let source = work.join("probe.c");
        std::fs::write(&source, "int main(void) { return 0; }\n").context("writing the probe")?;
        let mut command = runner.command("cc", work);
        command
            .args(common.cflags_for(work))
            .args(&common.ldflags)
            .args(["-o", "probe", "probe.c"]);
        runner::run(&mut command, log).context("the pinned compiler does not work on this host")?;
        runner::run(&mut runner.command(work.join("probe"), work), log)
            .context("a program for the target does not run on this host")
    }
}

/// A command that runs the pinned meson under the host's Python.
pub fn meson(runner: &Runner, directory: &Path) -> Command {
    let mut command = runner.command("python3", directory);
    command
        .args(["-I", "-B"])
        .arg(runner.tools().join("meson.py"));
    command
}

/// The common flags with a stage's directory in them.
pub trait FlagsFor {
    /// Flags of every object that is compiled below `work`.
    fn cflags_for(&self, work: &Path) -> Vec<String>;
}

impl FlagsFor for CommonOptions {
    fn cflags_for(&self, work: &Path) -> Vec<String> {
        let work = work.display().to_string();
        self.cflags
            .iter()
            .map(|flag| flag.replace(WORK_PLACEHOLDER, &work))
            .collect()
    }
}

/// `text` with the working directory written as in the pins, for what is recorded.
pub fn without_work(text: &str, work: &Path) -> String {
    text.replace(&work.display().to_string(), WORK_PLACEHOLDER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_working_directory_goes_into_the_flags_and_comes_out_of_the_record() {
        let common = CommonOptions {
            target: "t".to_owned(),
            cpu: "c".to_owned(),
            source_date_epoch: 0,
            cflags: vec!["-O2".to_owned(), "-ffile-prefix-map=@WORK@=.".to_owned()],
            ldflags: Vec::new(),
        };
        let work = Path::new("/r/.lazaret/build/work/run-1/cpython/work");
        let flags = common.cflags_for(work).join(" ");
        assert_eq!(flags, format!("-O2 -ffile-prefix-map={}=.", work.display()));
        assert_eq!(without_work(&flags, work), "-O2 -ffile-prefix-map=@WORK@=.");
    }
}
