//! Runs the build's commands: scrubbed environment, everything into a log.
//!
//! A command sees only the variables set here and only the host tools that are
//! listed here, through a directory of links; what else the host has installed
//! cannot be found. It must never inherit the caller's environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::blocked::Blocked;
use super::layout::{PRIVATE_MODE, make_directory, remove_tree};

/// The host's tools that make, configure and meson call. They are used and recorded, not pinned.
const HOST_TOOLS: &[&str] = &[
    "sh", "make", "python3", "sed", "grep", "awk", "cat", "chmod", "cmp", "cp", "cut", "date",
    "dirname", "basename", "echo", "env", "expr", "find", "head", "install", "ln", "ls", "mkdir",
    "mv", "printf", "pwd", "rm", "rmdir", "sleep", "sort", "tail", "tee", "test", "touch", "tr",
    "true", "false", "uname", "uniq", "wc", "xargs",
];

/// How many of a log's last lines a failure shows.
const LAST_LINES: usize = 25;

/// How much of a log's end is looked at for them, in bytes.
const LAST_BYTES: u64 = 16 * 1024;

/// What the host contributed, for the build record; none of it reaches the closure.
#[derive(Debug, Clone, Serialize)]
pub struct HostFacts {
    /// The kernel's name, release and machine.
    pub system: String,
    /// First line of `make --version`.
    pub make: String,
    /// `python3 --version`.
    pub python: String,
    /// File name of what `sh` is.
    pub shell: String,
}

/// The tools and the environment of one invocation.
#[derive(Debug, Clone)]
pub struct Runner {
    tools: PathBuf,
    environment: BTreeMap<OsString, OsString>,
}

impl Runner {
    /// Links the host's tools into `directory/tools` and fixes the environment. `home` and `tmp`
    /// of the commands lie below `directory` too.
    ///
    /// # Errors
    /// [`Blocked`] when the host lacks a tool.
    pub fn new(directory: &Path, source_date_epoch: u64, compiler_cache: &Path) -> Result<Self> {
        let tools = directory.join("tools");
        remove_tree(&tools)?;
        make_directory(&tools, PRIVATE_MODE)?;
        link_host_tools(&tools)?;
        let mut environment = BTreeMap::new();
        let mut set = |name: &str, value: &OsStr| environment.insert(name.into(), value.to_owned());
        set("PATH", tools.as_os_str());
        for name in ["home", "tmp"] {
            make_directory(&directory.join(name), PRIVATE_MODE)?;
        }
        set("HOME", directory.join("home").as_os_str());
        set("TMPDIR", directory.join("tmp").as_os_str());
        set("LC_ALL", OsStr::new("C"));
        set("TZ", OsStr::new("UTC"));
        set(
            "SOURCE_DATE_EPOCH",
            OsStr::new(&source_date_epoch.to_string()),
        );
        set("PKG_CONFIG_LIBDIR", OsStr::new(""));
        set("PKG_CONFIG_PATH", OsStr::new(""));
        set("PYTHONDONTWRITEBYTECODE", OsStr::new("1"));
        set("PYTHONHASHSEED", OsStr::new("0"));
        set("ZIG_GLOBAL_CACHE_DIR", compiler_cache.as_os_str());
        set("ZIG_LOCAL_CACHE_DIR", compiler_cache.as_os_str());
        Ok(Self { tools, environment })
    }

    /// Where the tools are linked; a stage puts its wrappers there.
    pub fn tools(&self) -> &Path {
        &self.tools
    }

    /// The whole environment, for a library that starts commands itself.
    pub fn environment(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.environment
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Writes a shell script among the tools.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add_script(&self, name: &str, text: &str) -> Result<()> {
        let path = self.tools.join(name);
        let _ = fs::remove_file(&path);
        super::layout::write_synced(&path, text.as_bytes(), 0o700)
            .with_context(|| format!("writing {}", path.display()))
    }

    /// Links a program among the tools.
    ///
    /// # Errors
    /// When the link cannot be made.
    pub fn add_link(&self, name: &str, program: &Path) -> Result<()> {
        let path = self.tools.join(name);
        let _ = fs::remove_file(&path);
        symlink(program, &path).with_context(|| format!("linking {}", path.display()))
    }

    /// A command with this environment, to be run by [`run`].
    pub fn command(&self, program: impl AsRef<OsStr>, directory: &Path) -> Command {
        let program = program.as_ref();
        // Looked up here: the child's own PATH is not what the standard library searches.
        let linked = self.tools.join(program);
        let full = if linked.symlink_metadata().is_ok() {
            linked.as_os_str()
        } else {
            program
        };
        let mut command = Command::new(full);
        command
            .env_clear()
            .envs(&self.environment)
            .current_dir(directory)
            .stdin(Stdio::null());
        command
    }

    /// What the host contributed.
    ///
    /// # Errors
    /// When a tool does not give its version.
    pub fn host_facts(&self) -> Result<HostFacts> {
        let first_line = |program: &str| -> Result<String> {
            let output = self.command(program, &self.tools).arg("--version").output();
            let output = output.with_context(|| format!("asking {program} for its version"))?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Ok(text.lines().next().unwrap_or("").to_owned())
        };
        let shell = fs::canonicalize(self.tools.join("sh")).context("finding out what sh is")?;
        let name = rustix::system::uname();
        let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        Ok(HostFacts {
            system: [name.sysname(), name.release(), name.machine()]
                .map(part)
                .join(" "),
            make: first_line("make")?,
            python: first_line("python3")?,
            shell: shell
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        })
    }
}

fn link_host_tools(tools: &Path) -> Result<()> {
    let mut missing = Vec::new();
    for &name in HOST_TOOLS {
        let found = if name == "python3" {
            real_python()
        } else {
            find_on_path(name)
        };
        match found {
            Some(program) => symlink(&program, tools.join(name))
                .with_context(|| format!("linking {}", program.display()))?,
            None => missing.push(name),
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Blocked {
        what: format!("this host lacks {}", missing.join(", ")),
        tried: vec![format!("PATH, for {}", missing.join(", "))],
        hints: vec!["install make, python3, gawk and the usual file utilities".to_owned()],
    }
    .into())
}

fn find_on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The interpreter itself: `python3` on a PATH may be a version manager's script, which needs the
/// environment that we take away.
fn real_python() -> Option<PathBuf> {
    let program = "import os, sys; print(os.path.realpath(sys.executable))";
    let output = Command::new("python3")
        .args(["-I", "-c", program])
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim_end());
    (output.status.success() && path.is_absolute() && is_executable(&path)).then_some(path)
}

/// The command as a person would type it.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs `command` with both outputs appended to the file `log`.
///
/// # Errors
/// When it cannot be started or does not succeed: the command and the log's last lines.
pub fn run(command: &mut Command, log: &Path) -> Result<()> {
    let shown = shown(command);
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("opening the log {}", log.display()))?;
    writeln!(file, "$ {shown}").with_context(|| format!("writing the log {}", log.display()))?;
    let begun = file
        .seek(SeekFrom::End(0))
        .context("finding the log's end")?;
    let for_errors = file.try_clone().context("sharing the log")?;
    let status = command
        .stdout(Stdio::from(file))
        .stderr(Stdio::from(for_errors))
        .status()
        .with_context(|| format!("starting {shown}"))?;
    if status.success() {
        return Ok(());
    }
    let lines = last_lines(log, begun);
    bail!(
        "{shown}\n  ended with {status}; log: {}; its last lines:\n{lines}",
        log.display()
    );
}

/// Runs `command` and returns its standard output; the log gets the command and its messages.
///
/// # Errors
/// As [`run`], and when the output is not UTF-8.
pub fn read(command: &mut Command, log: &Path) -> Result<String> {
    let shown = shown(command);
    let output = command
        .output()
        .with_context(|| format!("starting {shown}"))?;
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("opening the log {}", log.display()))?;
    write!(file, "$ {shown}\n{messages}").context("writing the log")?;
    if !output.status.success() {
        bail!("{shown}\n  ended with {}:\n{messages}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("the output of {shown} is not UTF-8"))
}

/// The last lines of a log, from `begun` on at most.
fn last_lines(log: &Path, begun: u64) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = fs::File::open(log)?;
        let end = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(begun.max(end.saturating_sub(LAST_BYTES))))?;
        let mut bytes = Vec::new();
        file.take(LAST_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(LAST_LINES);
    lines[skipped..]
        .iter()
        .map(|line| format!("    {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runner(scratch: &Path) -> Runner {
        Runner::new(scratch, 1_700_000_000, &scratch.join("cache")).unwrap()
    }

    #[test]
    fn a_command_sees_the_fixed_environment_and_nothing_of_the_callers() {
        let scratch = tempfile::tempdir().unwrap();
        let runner = runner(scratch.path());
        let log = scratch.path().join("log");
        let text = read(&mut runner.command("env", scratch.path()), &log).unwrap();
        let names: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split('=').next())
            .collect();
        // Cargo sets this one for every test; it must not pass.
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        assert!(!names.contains(&"CARGO_MANIFEST_DIR"), "{names:?}");
        assert!(text.contains("SOURCE_DATE_EPOCH=1700000000\n"));
        assert!(text.contains("LC_ALL=C\n"));
        assert!(text.contains("PKG_CONFIG_LIBDIR=\n"));
    }

    #[test]
    fn a_host_compiler_cannot_be_found() {
        let scratch = tempfile::tempdir().unwrap();
        let runner = runner(scratch.path());
        let log = scratch.path().join("log");
        for name in ["gcc", "cc", "pkg-config", "ld"] {
            let mut command = runner.command("sh", scratch.path());
            assert!(
                run(command.args(["-c", &format!("command -v {name}")]), &log).is_err(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_failure_shows_the_command_and_the_last_lines_of_its_own_log() {
        let scratch = tempfile::tempdir().unwrap();
        let runner = runner(scratch.path());
        let log = scratch.path().join("log");
        run(
            runner
                .command("sh", scratch.path())
                .args(["-c", "echo earlier"]),
            &log,
        )
        .unwrap();
        let script = "i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo line $i; done; exit 7";
        let error = run(
            runner.command("sh", scratch.path()).args(["-c", script]),
            &log,
        )
        .unwrap_err();
        let text = error.to_string();
        assert!(text.contains("exit status: 7"), "{text}");
        assert!(text.contains("    line 100"), "{text}");
        assert!(text.contains("    line 76\n"), "{text}");
        assert!(!text.contains("    line 75\n"), "{text}");
        assert!(!text.contains("earlier"), "{text}");
        let whole = fs::read_to_string(&log).unwrap();
        assert!(whole.contains("earlier") && whole.contains("line 1\n"));
    }
}
