//! Where things lie: data directory, closures, the warden's program.
//!
//! Places are convenience. What decides about a closure is its digest, and about the
//! warden that it lies beside this very program in a directory that nobody else can
//! change.

use std::env;
use std::path::{Path, PathBuf};

use lazaret_custody::error::shown;
use lazaret_custody::{FileKind, HeldDir, RelativeName};
use lazaret_engine::{Acting, Blocked, Cause};

/// Names the directory of closures, instead of looking for it.
const CLOSURES_VARIABLE: &str = "LAZARET_CLOSURES";

/// The warden's program.
const WARDEN_NAME: &str = "lazaret-warden";

/// The data directory: the argument, else the XDG data directory.
pub fn data_dir(argument: Option<&Path>) -> Result<PathBuf, Blocked> {
    if let Some(path) = argument {
        return Ok(path.to_path_buf());
    }
    let absolute = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    // A relative path in the variable is to be ignored (XDG base directory
    // specification).
    if let Some(base) = absolute("XDG_DATA_HOME") {
        return Ok(base.join("lazaret"));
    }
    match absolute("HOME") {
        Some(home) => Ok(home.join(".local/share/lazaret")),
        None => Err(Blocked::new(
            Cause::DataDirectory,
            "the data directory",
            "neither XDG_DATA_HOME nor HOME names an absolute path",
        )
        .advise("name one with --data-dir")),
    }
}

/// Where closures are looked for, in order: what the variable names, and nothing
/// else; or `.lazaret/closures` of the repository that this program was built in,
/// and the data directory's `closures`.
pub fn closures(data_dir: &Path) -> Vec<PathBuf> {
    if let Some(named) = env::var_os(CLOSURES_VARIABLE).filter(|value| !value.is_empty()) {
        return vec![PathBuf::from(named)];
    }
    let mut places = Vec::new();
    if let Ok(program) = env::current_exe() {
        let mut above = program
            .ancestors()
            .skip(1)
            .map(|dir| dir.join(".lazaret/closures"));
        places.extend(above.find(|place| place.is_dir()));
    }
    places.push(data_dir.join("closures"));
    places
}

/// The warden's program, beside this one.
pub fn warden(acting: Acting) -> Result<PathBuf, Blocked> {
    const WHAT: &str = "the warden's program";
    let refuse = |why: String| Blocked::new(Cause::WardenMissing, WHAT, why);
    let program =
        env::current_exe().map_err(|error| Blocked::io(WHAT, "finding this program", &error))?;
    let dir = program
        .parent()
        .ok_or_else(|| refuse("this program has no directory".to_owned()))?;
    let held = HeldDir::open_trusted(dir, acting.trust())
        .map_err(|error| Blocked::custody(WHAT, &error))?;
    let path = held.path().join(WARDEN_NAME);
    let name = RelativeName::parse(WARDEN_NAME.as_bytes()).map_err(|e| refuse(e.to_string()))?;
    let facts = held.entry_facts(&name).map_err(|error| {
        refuse(error.to_string())
            .advise("install both programs of one build side by side")
            .advise("in the repository: cargo build -p lazaret-warden")
    })?;
    let ours = facts.uid == 0 || facts.uid == acting.uid;
    if facts.kind != FileKind::Regular || facts.mode & 0o111 == 0 {
        return Err(refuse(format!("{} is not a program", shown(&path))));
    }
    // Links are no fault here: cargo makes one. Who may write is what counts.
    if !ours || facts.mode & 0o022 != 0 {
        let why = format!(
            "{} belongs to uid {} and has mode {:04o}, so somebody else could change it",
            shown(&path),
            facts.uid,
            facts.mode
        );
        return Err(refuse(why).advise(format!("chmod 0755 {}", shown(&path))));
    }
    Ok(path)
}
