//! bubblewrap and the library it needs, static, with the pinned toolchain.
//!
//! Every option is written out; what took effect is read back from meson and from
//! config.h, because an "auto" would pick up whatever the host has. bubblewrap must
//! never get a setuid bit or a file capability here, and `assume_kernel` is never set.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use lazaret_profile::pins::Pins;
use serde::{Deserialize, Serialize};

use super::origins::Sources;
use super::progress::Progress;
use super::runner::{self, Runner};
use super::stages::{Finished, Key, Outcome, Stages, Workspace};
use super::toolchain::{FlagsFor, Toolchain, meson, without_work};

/// The program among the stage's outputs.
pub const BWRAP: &str = "bwrap";

/// What was read back, among the stage's outputs.
const EVIDENCE: &str = "evidence.json";

const LIBCAP: &str = "libcap.a";

/// What took effect in a build of bubblewrap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// meson's options.
    pub meson: BTreeMap<String, String>,
    /// The effective value of `assume_kernel`.
    pub assume_kernel: String,
    /// The lines of config.h that define something.
    pub config_h: Vec<String>,
}

/// What both stages need.
pub struct Builder<'a> {
    /// The stages.
    pub stages: &'a Stages<'a>,
    /// The pins.
    pub pins: &'a Pins,
    /// The origins.
    pub sources: &'a Sources<'a>,
    /// The tools.
    pub runner: &'a Runner,
    /// The toolchain.
    pub toolchain: &'a Toolchain,
    /// The repository.
    pub root: &'a Path,
}

impl Builder<'_> {
    /// Builds libcap's static library.
    ///
    /// # Errors
    /// When the source cannot be had or a command fails.
    pub fn libcap(&self, progress: &mut Progress) -> Result<Finished> {
        let source = self.pins.source("libcap").context("the pins lack libcap")?;
        let options = &self.pins.options;
        let key = self
            .key()?
            .digest("source", source.sha256)
            .value("options", &options.libcap)?;
        self.stages
            .stage("libcap", &key, progress, |workspace, progress| {
                let tree = workspace.work.join(&source.top);
                let provenance = self.sources.tree(source, None, &tree, progress)?;
                let mut flags = options.common.cflags_for(&workspace.work);
                flags.extend(options.libcap.cflags.iter().cloned());
                let flags = flags.join(" ");
                let mut make = self.runner.command("make", &tree.join("libcap"));
                make.arg(LIBCAP)
                    .args(["CC=cc", "AR=ar", "RANLIB=ranlib", "BUILD_CC=cc"])
                    .arg(format!("COPTS={flags}"))
                    // Its generator is linked as everything else is, so that the compiler need not
                    // build the target's libc in a second form.
                    .arg(format!(
                        "BUILD_COPTS={flags} {}",
                        options.common.ldflags.join(" ")
                    ))
                    .args(&options.libcap.make);
                runner::run(&mut make, &workspace.log)?;
                let include = workspace.out.join("include/sys");
                fs::create_dir_all(&include).context("making libcap's include directory")?;
                let from = tree.join("libcap");
                copy(&from.join(LIBCAP), &workspace.out.join(LIBCAP))?;
                copy(
                    &from.join("include/sys/capability.h"),
                    &include.join("capability.h"),
                )?;
                Ok(Outcome {
                    outputs: vec![LIBCAP.to_owned()],
                    origins: vec![provenance],
                })
            })
    }

    /// Builds bubblewrap.
    ///
    /// # Errors
    /// When the source cannot be had, a command fails, or an option did not take effect.
    pub fn bubblewrap(&self, libcap: &Finished, progress: &mut Progress) -> Result<Finished> {
        let source = self
            .pins
            .source("bubblewrap")
            .context("the pins lack bubblewrap")?;
        let options = &self.pins.options.bubblewrap;
        let key = self
            .key()?
            .digest("source", source.sha256)
            .digest("libcap", libcap.key)
            .value("options", options)?;
        self.stages
            .stage("bubblewrap", &key, progress, |workspace, progress| {
                let tree = workspace.work.join(&source.top);
                let provenance = self.sources.tree(source, None, &tree, progress)?;
                self.runner
                    .add_script("pkg-config", &pkg_config(&libcap.directory))?;
                self.compile(&tree, workspace)?;
                let build = workspace.work.join("build");
                let evidence = self.evidence(&build, workspace)?;
                let bytes =
                    serde_json::to_vec_pretty(&evidence).context("serialising the evidence")?;
                fs::write(workspace.out.join(EVIDENCE), bytes).context("writing the evidence")?;
                let program = workspace.out.join(BWRAP);
                copy(&build.join("bwrap"), &program)?;
                assert_unprivileged(&program)?;
                let outputs = [BWRAP, EVIDENCE].map(str::to_owned).to_vec();
                Ok(Outcome {
                    outputs,
                    origins: vec![provenance],
                })
            })
    }

    fn key(&self) -> Result<Key> {
        Key::new()
            .digest("toolchain", self.toolchain.stage.key)
            .value("common", &self.pins.options.common)?
            .file(self.root, "xtask/src/closure/bwrap.rs")?
            .file(self.root, "xtask/src/closure/runner.rs")
    }

    fn compile(&self, tree: &Path, workspace: &Workspace) -> Result<()> {
        let options = &self.pins.options;
        let mut flags = options.common.cflags_for(&workspace.work);
        flags.extend(options.bubblewrap.cflags.iter().cloned());
        let mut setup = meson(self.runner, &workspace.work);
        setup
            .arg("setup")
            .args(&options.bubblewrap.meson)
            .arg(format!("-Dc_args={}", meson_array(&flags)?))
            .arg(format!(
                "-Dc_link_args={}",
                meson_array(&options.common.ldflags)?
            ))
            .args([workspace.work.join("build").as_path(), tree])
            .env("CC", "cc")
            .env("AR", "ar");
        runner::run(&mut setup, &workspace.log)?;
        let mut ninja = self.runner.command("ninja", &workspace.work);
        runner::run(ninja.args(["-v", "-C", "build", "bwrap"]), &workspace.log)
    }

    /// What meson says took effect, and what config.h shows of it.
    fn evidence(&self, build: &Path, workspace: &Workspace) -> Result<Evidence> {
        let mut introspect = meson(self.runner, &workspace.work);
        introspect.args(["introspect", "--buildoptions"]).arg(build);
        let text = runner::read(&mut introspect, &workspace.log)?;
        let options = effective_options(&text, &workspace.work)?;
        let assume_kernel = options
            .get("assume_kernel")
            .context("meson does not know assume_kernel")?
            .clone();
        let header = fs::read_to_string(build.join("config.h")).context("reading config.h")?;
        let config_h: Vec<String> = header
            .lines()
            .filter(|line| line.starts_with("#define"))
            .map(str::to_owned)
            .collect();
        let assumed = config_h.iter().any(|line| line.contains("ASSUMED_KERNEL"));
        if !assume_kernel.is_empty() || assumed {
            bail!("assume_kernel is {assume_kernel:?} and config.h says {config_h:?}");
        }
        if config_h.iter().any(|line| line.contains("HAVE_SELINUX")) {
            bail!("bubblewrap was configured with SELinux: {config_h:?}");
        }
        Ok(Evidence {
            meson: options,
            assume_kernel,
            config_h,
        })
    }
}

/// Reads what [`Builder::bubblewrap`] read back.
///
/// # Errors
/// When the file is not there or of another form.
pub fn read_evidence(stage: &Finished) -> Result<Evidence> {
    let bytes =
        fs::read(stage.directory.join(EVIDENCE)).context("reading bubblewrap's evidence")?;
    serde_json::from_slice(&bytes).context("reading bubblewrap's evidence")
}

/// A stand-in for pkg-config that knows libcap and nothing else, so that no library of the host
/// can be found.
fn pkg_config(libcap: &Path) -> String {
    let at = libcap.display();
    format!(
        "#!/bin/sh\n\
         # Answers for the one library that this build made.\n\
         case \"$*\" in\n\
         --version) echo 0.29.2 ;;\n\
         *--modversion*libcap) echo 2.75 ;;\n\
         *--cflags*libcap) echo \"-I{at}/include\" ;;\n\
         *--libs*libcap) echo \"{at}/{LIBCAP}\" ;;\n\
         *libcap) ;;\n\
         *) exit 1 ;;\n\
         esac\n"
    )
}

/// A list in meson's own syntax.
fn meson_array(words: &[String]) -> Result<String> {
    if let Some(word) = words.iter().find(|word| word.contains(['\'', '\\', '\n'])) {
        bail!("the flag {word:?} cannot be given to meson");
    }
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    Ok(format!("[{}]", quoted.join(",")))
}

/// The options of `meson introspect --buildoptions` that decide about outputs: not where things
/// would be installed, not how the build is driven.
fn effective_options(text: &str, work: &Path) -> Result<BTreeMap<String, String>> {
    #[derive(Deserialize)]
    struct Entry {
        name: String,
        section: String,
        value: serde_json::Value,
    }
    let entries: Vec<Entry> = serde_json::from_str(text).context("reading meson's options")?;
    let kept = entries
        .into_iter()
        .filter(|entry| !matches!(entry.section.as_str(), "directory" | "backend" | "test"));
    let mut options = BTreeMap::new();
    for entry in kept {
        let value = match entry.value {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        options.insert(entry.name, without_work(&value, work));
    }
    Ok(options)
}

/// Refuses a program that would run with more rights than its caller.
///
/// # Errors
/// When a set-id bit or a file capability is there, or cannot be looked for.
pub fn assert_unprivileged(program: &Path) -> Result<()> {
    let shown = program.display();
    let mode = fs::metadata(program)
        .with_context(|| format!("looking at {shown}"))?
        .permissions()
        .mode();
    if mode & 0o7000 != 0 {
        bail!("{shown} has the mode {:04o}", mode & 0o7777);
    }
    match rustix::fs::lgetxattr(program, c"security.capability", &mut [0_u8; 64]) {
        // No such attribute, or a filesystem without any.
        Err(rustix::io::Errno::NODATA | rustix::io::Errno::OPNOTSUPP) => Ok(()),
        Ok(_) => bail!("{shown} has file capabilities"),
        Err(error) => Err(error).with_context(|| format!("looking for capabilities of {shown}")),
    }
}

/// Copies contents alone: no mode, no attribute comes along.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("reading {}", from.display()))?;
    fs::write(to, bytes).with_context(|| format!("writing {}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stand_in_for_pkg_config_knows_one_library() {
        let scratch = tempfile::tempdir().unwrap();
        let script = scratch.path().join("pkg-config");
        fs::write(&script, pkg_config(Path::new("/at"))).unwrap();
        let ask = |words: &[&str]| {
            let output = std::process::Command::new("sh")
                .arg(&script)
                .args(words)
                .output()
                .unwrap();
            (
                output.status.success(),
                String::from_utf8(output.stdout).unwrap(),
            )
        };
        assert_eq!(
            ask(&["--libs", "libcap"]),
            (true, "/at/libcap.a\n".to_owned())
        );
        assert_eq!(
            ask(&["--modversion", "libcap"]),
            (true, "2.75\n".to_owned())
        );
        assert!(!ask(&["--modversion", "libselinux"]).0);
        assert!(!ask(&["--libs", "zlib"]).0);
    }

    #[test]
    fn effective_options_leave_out_places_and_the_working_directory() {
        let text = r#"[
            {"name": "assume_kernel", "section": "user", "value": ""},
            {"name": "b_pie", "section": "base", "value": true},
            {"name": "c_args", "section": "compiler", "value": ["-O2", "-fmap=/w/x=."]},
            {"name": "libdir", "section": "directory", "value": "lib/x86_64-linux-gnu"},
            {"name": "backend_max_links", "section": "backend", "value": 0}
        ]"#;
        let options = effective_options(text, Path::new("/w/x")).unwrap();
        let pairs: Vec<(&str, &str)> = options
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("assume_kernel", ""),
                ("b_pie", "true"),
                ("c_args", r#"["-O2","-fmap=@WORK@=."]"#)
            ]
        );
    }

    #[test]
    fn a_set_uid_program_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let program = scratch.path().join("bwrap");
        fs::write(&program, b"x").unwrap();
        for (mode, fine) in [
            (0o555, true),
            (0o755, true),
            (0o4755, false),
            (0o2755, false),
        ] {
            fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(assert_unprivileged(&program).is_ok(), fine, "{mode:o}");
        }
    }

    #[test]
    fn a_flag_that_could_end_its_quotes_is_refused() {
        assert_eq!(
            meson_array(&["-a".to_owned(), "-b".to_owned()]).unwrap(),
            "['-a','-b']"
        );
        assert!(meson_array(&["-a'".to_owned()]).is_err());
    }
}
