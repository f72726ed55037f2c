//! Reading what the kernel says of the launcher, from outside.
//!
//! Everything goes through one /proc/PID directory that is held, between two looks
//! at the process's own descriptor: what is read belongs to that very process or
//! the reading is refused. Nothing is judged here.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;

use lazaret_contract::digest::Sha256Digest;
use lazaret_contract::limits;

use super::CapabilitySet;
use super::judge::{Inode, Observed};
use super::parse::{self, ParseError};
use crate::identity::{self, read_text_at};
use crate::inode::InodeFacts;
use crate::record::ProcessIdentity;
use crate::stage::digest_of;
use crate::sys::{self, PidFd};

/// Most entries of a directory that are read; the expected numbers are far smaller.
const ENTRIES_MAX: usize = 64;

/// What could not be read, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("reading {what} of the launcher: {detail}")]
pub struct ObserveError {
    /// What was read.
    pub what: String,
    /// What the kernel or the parser said.
    pub detail: String,
}

/// Everything that was read.
#[derive(Debug)]
pub struct Reading {
    /// The values.
    pub observed: Observed,
    /// The process.
    pub identity: ProcessIdentity,
    /// The kernel's texts as they were: private evidence, with host paths.
    pub evidence: String,
}

/// The process to look at.
#[derive(Debug)]
pub struct Subject<'a> {
    /// Its pid.
    pub pid: i32,
    /// Its descriptor.
    pub pidfd: &'a PidFd,
    /// Its /proc/PID, held since it became the launcher.
    pub proc_dir: BorrowedFd<'a>,
    /// The digest of the program that it runs, read through /proc/PID/exe after it
    /// had become it.
    pub executable_sha256: Sha256Digest,
}

/// Reads everything.
///
/// # Errors
/// [`ObserveError`] names the first thing that could not be read.
pub fn observe(subject: &Subject<'_>) -> Result<Reading, ObserveError> {
    let alive_before = is_alive(subject)?;
    let mut texts = Texts {
        dir: subject.proc_dir,
        evidence: String::new(),
    };
    let identity =
        identity::of_process(subject.proc_dir, subject.pid).map_err(failed("identity"))?;
    let mut observed = Observed::nothing(subject.executable_sha256);
    observed.time_namespace = identity.time_namespace;
    observed.namespaces =
        identity::namespaces_of(subject.proc_dir).map_err(failed("namespaces"))?;
    read_status(&mut observed, &mut texts)?;
    read_texts(&mut observed, &mut texts)?;
    read_files(&mut observed, subject.proc_dir)?;
    observed.descriptors = descriptors(subject.proc_dir)?;
    observed.alive = alive_before && is_alive(subject)?;
    Ok(Reading {
        observed,
        identity,
        evidence: texts.evidence,
    })
}

fn read_texts(to: &mut Observed, texts: &mut Texts<'_>) -> Result<(), ObserveError> {
    to.terminal = parse::stat(&texts.read(c"stat")?)
        .map_err(unreadable)?
        .terminal;
    to.limits = parse::limits(&texts.read(c"limits")?).map_err(unreadable)?;
    to.mounts = parse::mounts(&texts.read(c"mountinfo")?).map_err(unreadable)?;
    to.uid_map = parse::id_map(&texts.read(c"uid_map")?).map_err(unreadable)?;
    to.gid_map = parse::id_map(&texts.read(c"gid_map")?).map_err(unreadable)?;
    to.interfaces = parse::interfaces(&texts.read(c"net/dev")?).map_err(unreadable)?;
    to.setgroups = texts.read(c"setgroups")?.trim().to_owned();
    to.personality = texts.read(c"personality")?.trim().to_owned();
    to.oom_score = texts.read(c"oom_score_adj")?.trim().to_owned();
    to.coredump_filter = texts.read_optional(c"coredump_filter")?;
    Ok(())
}

fn read_status(to: &mut Observed, texts: &mut Texts<'_>) -> Result<(), ObserveError> {
    let text = texts.read(c"status")?;
    let status = parse::status(&text).map_err(unreadable)?;
    fill_from_status(to, &status).map_err(unreadable)
}

fn fill_from_status(to: &mut Observed, status: &parse::Status<'_>) -> Result<(), ParseError> {
    to.parent = status.number("PPid")?;
    to.tracer = status.number("TracerPid")?;
    to.namespace_pids = status.numbers("NSpid")?;
    to.namespace_sessions = status.numbers("NSsid")?;
    to.uids = status.numbers("Uid")?;
    to.gids = status.numbers("Gid")?;
    to.groups = status.numbers("Groups")?;
    to.groups.sort_unstable();
    to.filters = status.number("Seccomp_filters")?;
    to.filter_mode = status.number("Seccomp")?;
    to.no_new_privileges = status.number("NoNewPrivs")?;
    for (slot, set) in to.capabilities.iter_mut().zip(CapabilitySet::ALL) {
        *slot = status.bits(set.status_field())?;
    }
    to.threads = status.number("Threads")?;
    to.blocked_signals = status.bits("SigBlk")?;
    to.ignored_signals = status.bits("SigIgn")?;
    to.caught_signals = status.bits("SigCgt")?;
    to.umask = status.field("Umask")?.to_owned();
    to.huge_pages = match status.optional("THP_enabled") {
        Some(_) => Some(status.number("THP_enabled")?),
        None => None,
    };
    Ok(())
}

fn is_alive(subject: &Subject<'_>) -> Result<bool, ObserveError> {
    subject
        .pidfd
        .has_ended()
        .map(|ended| !ended)
        .map_err(failed("the process's descriptor"))
}

struct Texts<'a> {
    dir: BorrowedFd<'a>,
    evidence: String,
}

impl Texts<'_> {
    fn read(&mut self, name: &CStr) -> Result<String, ObserveError> {
        let label = name.to_string_lossy();
        let text = read_text_at(self.dir, name).map_err(failed(&label))?;
        self.keep(&label, &text);
        Ok(text)
    }

    fn read_optional(&mut self, name: &CStr) -> Result<Option<String>, ObserveError> {
        let label = name.to_string_lossy();
        match read_text_at(self.dir, name) {
            Ok(text) => {
                self.keep(&label, &text);
                Ok(Some(text.trim().to_owned()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&label)(error)),
        }
    }

    fn keep(&mut self, label: &str, text: &str) {
        self.evidence.push_str("== ");
        self.evidence.push_str(label);
        self.evidence.push_str(" ==\n");
        self.evidence.push_str(text);
        if !text.ends_with('\n') {
            self.evidence.push('\n');
        }
    }
}

fn descriptors(proc_dir: BorrowedFd<'_>) -> Result<Vec<(u32, Inode)>, ObserveError> {
    let names = list(proc_dir, c"fd")?;
    let mut found = names
        .iter()
        .map(|name| {
            let number = name
                .parse()
                .map_err(|_| failed("descriptors")(io::Error::other("not a number")))?;
            let path = CString::new(format!("fd/{name}")).unwrap_or_default();
            let facts = sys::stat_at(proc_dir, &path).map_err(failed("a descriptor"))?;
            Ok((number, (facts.dev(), facts.ino())))
        })
        .collect::<Result<Vec<_>, ObserveError>>()?;
    found.sort_unstable();
    Ok(found)
}

/// The files as the process sees them, reached through its own root, and the program
/// that it runs.
fn read_files(to: &mut Observed, proc_dir: BorrowedFd<'_>) -> Result<(), ObserveError> {
    let root = sys::locate_at(proc_dir, c"root").map_err(failed("root"))?;
    let root = root.as_fd();
    let inode = |name: &CStr| -> Result<Inode, ObserveError> {
        let located = sys::path_only_at(root, name).map_err(failed("a file inside"))?;
        let facts = located.metadata().map_err(failed("a file inside"))?;
        Ok((facts.dev(), facts.ino()))
    };
    let content = |name: &CStr, limit: usize| -> Result<Sha256Digest, ObserveError> {
        let file: File = sys::open_at(root, name).map_err(failed("a file inside"))?;
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        digest_of(&file, limit).map_err(failed("a file inside"))
    };
    to.root_entries = list(root, c".")?;
    to.output_entries = list(root, c"out")?;
    to.launcher = inode(c"launcher")?;
    to.output = inode(c"out/result.json")?;
    to.package_sha256 = content(c"package.py", limits::PACKAGE_CODE_BYTES_MAX)?;
    to.input_sha256 = content(c"input.json", limits::INPUT_BYTES_MAX)?;
    let executable = sys::stat_at(proc_dir, c"exe").map_err(failed("the running program"))?;
    to.executable = InodeFacts::of(&executable);
    let directory = sys::read_link_at(proc_dir, c"cwd").map_err(failed("working directory"))?;
    to.working_directory = directory.to_string_lossy().into_owned();
    Ok(())
}

fn list(dir: BorrowedFd<'_>, name: &CStr) -> Result<Vec<String>, ObserveError> {
    let names = sys::list_directory(dir, name, ENTRIES_MAX)
        .map_err(failed(&format!("directory {}", name.to_string_lossy())))?;
    Ok(names
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .collect())
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> ObserveError {
    let what = what.to_owned();
    move |error| ObserveError {
        what,
        detail: error.to_string(),
    }
}

fn unreadable(error: ParseError) -> ObserveError {
    ObserveError {
        what: error.file.to_owned(),
        detail: error.detail,
    }
}
