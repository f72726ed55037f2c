//! What is kept of a run, and what the dead have left.
//!
//! A run that is not done keeps its files: the exact package and input, the warden's
//! records, the kernel's raw texts at the barrier. They hold host paths and the
//! package's own output, so they stay private (0700). A run that is done leaves
//! nothing, unless the operator asked for it.
//!
//! A process that died left its run directory; the next run moves it to the evidence
//! ([`sweep`]). That is tidying: nothing here proves that a run has ended, and
//! nothing may be concluded from a directory that is gone.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lazaret_custody::run_dir::{Sweep, remove_tree};
use lazaret_custody::{
    CustodyError, FileRules, HeldDir, NameError, Owner, Refusal, RelativeName, RunDir,
};

use crate::blocked::Blocked;
use crate::data_dir::DataDir;
use crate::record::RunRecord;

/// The largest file that is kept, in bytes; a warden cannot write a larger one.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How many files of a run directory are kept.
const FILES_MAX: usize = 64;

/// How many left directories one run looks at.
const SWEPT_MAX: usize = 256;

/// How long a directory is left alone when it cannot be told whether its warden is
/// there: one whose controller has died needs a moment to kill, reap and record, at
/// most its deadline and the grace after it.
const ALONE: Duration = Duration::from_secs(15);

/// In a run directory once a warden is about to be started there; holds its process
/// id and start time once they are known.
const WARDEN_NAME: &str = "warden.txt";

/// What /proc/PID/comm says of a warden.
const WARDEN_COMMAND: &str = "lazaret-warden\n";

/// The largest such note, in bytes.
const NOTE_BYTES_MAX: u64 = 100;

/// Why evidence was not kept.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// A directory or file refused.
    #[error("{0}")]
    Custody(#[from] CustodyError),
    /// A name that is none.
    #[error("{0}")]
    Name(#[from] NameError),
    /// The data directory refused.
    #[error("{0}")]
    DataDirectory(#[from] Blocked),
    /// The kernel refused something else.
    #[error("{path:?}: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// The record has no written form.
    #[error("{0}")]
    Form(#[from] serde_json::Error),
}

/// Copies a run's files, and `extra` ones, to a fresh private directory below
/// `named` or the data directory's evidence. Gives its path.
///
/// # Errors
/// [`EvidenceError`]; what had been copied stays.
pub fn keep(
    data: &DataDir,
    named: Option<&Path>,
    run_dir: &RunDir,
    extra: &[(&str, &[u8])],
) -> Result<PathBuf, EvidenceError> {
    let base = match named {
        Some(path) => {
            std::fs::create_dir_all(path).map_err(|source| EvidenceError::Io {
                path: path.to_path_buf(),
                source,
            })?;
            HeldDir::open_named(path)?
        }
        None => data.evidence()?,
    };
    let place = base.create_dir(run_dir.name(), 0o700)?;
    for (name, bytes) in extra {
        place.write_new_durable(&RelativeName::parse(name.as_bytes())?, bytes, 0o600)?;
    }
    copy(run_dir.dir(), &place)?;
    base.sync()?;
    Ok(place.path().to_path_buf())
}

/// Writes the run's record beside its kept files.
///
/// # Errors
/// [`EvidenceError`].
pub fn add_record(place: &Path, record: &RunRecord) -> Result<(), EvidenceError> {
    let dir = HeldDir::open_named(place)?;
    let name = RelativeName::parse(b"record.json")?;
    Ok(dir.write_new_durable(&name, &record.to_bytes()?, 0o600)?)
}

/// Copies every regular file of `from` that belongs to its owner.
fn copy(from: &HeldDir, to: &HeldDir) -> Result<(), EvidenceError> {
    let rules = FileRules {
        limit_bytes: FILE_BYTES_MAX,
        owner: Owner::RootOr(from.facts()?.uid),
        may_be_executable: false,
        may_be_writable_by_others: true,
    };
    for entry in from.list(FILES_MAX)? {
        use std::os::unix::ffi::OsStrExt as _;
        let name = RelativeName::parse(entry.as_bytes())?;
        let bytes = from.read_file(&name, rules)?;
        match to.write_new_durable(&name, &bytes, 0o600) {
            // A file of the same name was kept from a better source.
            Err(error) if matches!(error.refusal, Refusal::Exists) => {}
            written => written?,
        }
    }
    Ok(())
}

/// Moves what dead processes left among the runs to the evidence. Gives what could
/// not be done, for the operator; a run goes on without it.
pub fn sweep(data: &DataDir, runs: &HeldDir) -> Vec<String> {
    let mut warnings = Vec::new();
    let swept = Sweep::begin(runs).and_then(|sweep| match sweep {
        Some(sweep) => sweep.abandoned(SWEPT_MAX),
        None => Ok(Vec::new()),
    });
    match swept {
        Ok(left) => {
            for name in left {
                if let Err(error) = move_left(data, runs, &name) {
                    warnings.push(format!("left run directory {name}: {error}"));
                }
            }
        }
        Err(error) => warnings.push(format!("looking for left run directories: {error}")),
    }
    warnings
}

fn move_left(data: &DataDir, runs: &HeldDir, name: &RelativeName) -> Result<(), EvidenceError> {
    let dir = match runs.open_dir(name) {
        // Its own process, or another sweep, has removed it meanwhile.
        Err(error) if matches!(error.refusal, Refusal::NotFound) => return Ok(()),
        opened => opened?,
    };
    match warden_of(&dir)? {
        Warden::Alive => return Ok(()),
        Warden::Untold if !is_older_than(&dir, ALONE)? => return Ok(()),
        // It never came so far as to leave anything.
        Warden::NeverStarted => return Ok(remove_tree(runs, name)?),
        Warden::Untold | Warden::Gone => {}
    }
    let place = match data.evidence()?.create_dir(name, 0o700) {
        Err(error) if matches!(error.refusal, Refusal::Exists) => {
            data.evidence()?.open_dir(name)?
        }
        created => created?,
    };
    copy(&dir, &place)?;
    place.sync()?;
    Ok(remove_tree(runs, name)?)
}

/// What is known of the warden of a left directory.
enum Warden {
    NeverStarted,
    Alive,
    Gone,
    Untold,
}

/// Reads the note that the controller left. It decides only what is tidied up.
fn warden_of(dir: &HeldDir) -> Result<Warden, EvidenceError> {
    let rules = FileRules::untrusted(NOTE_BYTES_MAX, dir.facts()?.uid);
    let note = match dir.read_file(&RelativeName::parse(WARDEN_NAME.as_bytes())?, rules) {
        Ok(note) => String::from_utf8_lossy(&note).into_owned(),
        Err(error) if matches!(error.refusal, Refusal::NotFound) => {
            return Ok(Warden::NeverStarted);
        }
        Err(error) => return Err(error.into()),
    };
    let mut words = note.split_whitespace();
    let (Some(pid), Some(start)) = (words.next(), words.next()) else {
        // Killed while it was starting one. A warden without its controller ends at
        // once; should there be any, it may be this one.
        return Ok(if some_warden_runs() {
            Warden::Untold
        } else {
            Warden::Gone
        });
    };
    match (pid.parse().ok().map(start_time_of), start.parse::<u64>()) {
        (Some(now), Ok(start)) if now == Some(start) => Ok(Warden::Alive),
        (Some(_), Ok(_)) => Ok(Warden::Gone),
        _ => Ok(Warden::Untold),
    }
}

/// Whether any process is named as a warden is.
fn some_warden_runs() -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return true;
    };
    processes.flatten().any(|process| {
        let pid = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        pid.and_then(start_time_of).is_some()
            && std::fs::read(process.path().join("comm"))
                .is_ok_and(|comm| comm == WARDEN_COMMAND.as_bytes())
    })
}

/// The ticks at which a process started, as field 22 of /proc/PID/stat has them; none
/// for one that is not there or is dead and only not reaped yet.
fn start_time_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field holds the program's name, in which anything may stand.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(fields.first(), Some(&("Z" | "X"))) {
        return None;
    }
    fields.get(19)?.parse().ok()
}

/// The note about the warden of a run.
#[derive(Debug)]
pub struct WardenNote(std::fs::File);

impl WardenNote {
    /// Notes that a warden is about to be started in a run directory.
    ///
    /// # Errors
    /// [`EvidenceError`].
    pub fn starting(run_dir: &RunDir) -> Result<Self, EvidenceError> {
        let name = RelativeName::parse(WARDEN_NAME.as_bytes())?;
        Ok(Self(run_dir.dir().create_file(&name, 0o600)?))
    }

    /// Notes which process it is.
    ///
    /// # Errors
    /// What write(2) says.
    pub fn started(mut self, pid: u32) -> std::io::Result<()> {
        use std::io::Write as _;
        // Our child, not yet reaped: the number is its own.
        let start = start_time_of(pid).unwrap_or(0);
        self.0.write_all(format!("{pid} {start}\n").as_bytes())
    }
}

/// By the wall clock: only how soon something is tidied up depends on it.
fn is_older_than(dir: &HeldDir, age: Duration) -> Result<bool, EvidenceError> {
    let changed = u64::try_from(dir.facts()?.changed.0).unwrap_or(u64::MAX);
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Ok(now.as_secs().saturating_sub(changed) > age.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acting::Acting;
    use std::os::unix::fs::PermissionsExt as _;

    fn data() -> (tempfile::TempDir, DataDir) {
        let root = tempfile::tempdir().unwrap();
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        let data = DataDir::open(&root.path().join("d"), Acting::current(None).unwrap()).unwrap();
        (root, data)
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_kept_is_private_and_complete() {
        let (root, data) = data();
        let run = RunDir::create(&data.runs().unwrap(), data.acting().run_owner).unwrap();
        std::fs::write(run.path().join("launch.json"), b"launched").unwrap();
        let extra: [(&str, &[u8]); 1] = [("input.json", b"[]")];
        let place = keep(&data, None, &run, &extra).unwrap();
        assert!(place.starts_with(root.path().canonicalize().unwrap().join("d/evidence")));
        assert_eq!(names(&place), ["input.json", "launch.json", "result.json"]);
        let mode = std::fs::metadata(&place).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700);

        let named = root.path().join("wanted/here");
        let place = keep(&data, Some(&named), &run, &extra).unwrap();
        assert_eq!(std::fs::read(place.join("input.json")).unwrap(), b"[]");
        run.remove().unwrap();
    }

    #[test]
    fn what_the_dead_left_becomes_evidence_and_the_living_are_left_alone() {
        let (root, data) = data();
        let runs = data.runs().unwrap();
        let make = |note: Option<&str>| {
            let run = RunDir::create(&runs, None).unwrap();
            if let Some(note) = note {
                std::fs::write(run.path().join(WARDEN_NAME), note).unwrap();
            }
            run
        };
        let own = std::process::id();
        let own_start = start_time_of(own).unwrap();
        let alive = make(Some(""));
        let left = [
            make(None),
            make(Some(&format!("{own} {own_start}\n"))),
            make(Some(&format!("{own} {}\n", own_start + 1))),
            make(Some("no number")),
        ]
        .map(|run| run.name().to_string());
        let [never_started, with_warden, without_warden, untold] = left;

        assert_eq!(sweep(&data, &runs), Vec::<String>::new());
        let mut expected = [alive.name().to_string(), with_warden, untold];
        expected.sort();
        assert_eq!(names(&root.path().join("d/runs")), expected);
        assert_eq!(
            names(&root.path().join("d/evidence")),
            [without_warden.as_str()]
        );
        assert!(!root.path().join("d/evidence").join(never_started).exists());
    }
}
