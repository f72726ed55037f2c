//! The suite on a host that has the profile.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use lazaret_attack_suite::bench::{Bench, Parts, Tools};
use lazaret_attack_suite::case::{self, Case, Class};
use lazaret_attack_suite::record::{self, Record, Summary, Verdict};
use lazaret_attack_suite::runner::{Finished, Suite};
use lazaret_attack_suite::{by_hand, host, payload, report};
use lazaret_contract::digest::Sha256Digest;
use lazaret_engine::{Acting, closure as engine_closure, preflight};
use lazaret_profile::accepted::{ACCEPTED_SCHEMA, Accepted, NOT_REVIEWED};
use lazaret_profile::manifest::{ClosureManifest, Role};
use serde::{Deserialize, Serialize};

use super::{Arguments, programs};
use crate::EXIT_BLOCKED;
use crate::closure::{Blocked, BuildArguments, Standing, obtain};
use crate::process::{cargo, read};

/// Everything that the suite leaves, below the repository.
const PLACE: &str = ".lazaret/attack";

/// Raw logs of every invocation.
const EVIDENCE: &str = ".lazaret/evidence/attack";

/// Where retained results lie.
const RETAINED: &str = "attack-suite/results";

/// What has to be there before a case can run; also what a second process is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Prepared {
    accepted: Accepted,
    /// How the closure stands, in words.
    standing: String,
    closures: PathBuf,
    policy: PathBuf,
    warden: PathBuf,
    bare: PathBuf,
    bare_probe: PathBuf,
    parent: PathBuf,
    read_filter: PathBuf,
    launchers: BTreeMap<String, PathBuf>,
    bwraps: BTreeMap<String, PathBuf>,
    /// The digest over what cases share.
    shared: Sha256Digest,
}

/// Runs the suite.
///
/// # Errors
/// When the suite itself cannot be read, built or prepared.
pub fn main(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let all = case::read_all(&root.join("attack-suite/cases"))?;
    let cases = chosen(&all, arguments)?;
    if arguments.list {
        print!("{}", report::list(&cases));
        return Ok(ExitCode::SUCCESS);
    }
    let prepared = match &arguments.prepared {
        Some(file) => serde_json::from_slice(&fs::read(file).context("reading what is prepared")?)
            .context("reading what is prepared")?,
        None => match prepare(root, arguments) {
            Ok(prepared) => prepared,
            Err(error) if arguments.allow_not_run && error.is::<Blocked>() => {
                return Ok(not_run(&cases, &format!("{error:#}")));
            }
            Err(error) => return Err(error),
        },
    };
    if let Some(user) = &arguments.user {
        return as_user(root, arguments, &prepared, user);
    }
    let place = Place::make(root)?;
    if let Some(directory) = &arguments.by_hand {
        let bench = bench(&prepared, &place, arguments)?;
        for case in cases {
            by_hand::write(&bench, case, directory)?;
        }
        eprintln!("written to {}", directory.display());
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(refused) = refused_by_preflight(&prepared, &place)? {
        if arguments.allow_not_run {
            return Ok(not_run(&cases, &refused));
        }
        eprintln!("{refused}");
        return Ok(ExitCode::from(EXIT_BLOCKED));
    }
    let bench = bench(&prepared, &place, arguments)?;
    eprintln!(
        "{}: closure {}, {}; {} cases, {} runs at a time",
        bench.profile,
        bench.closure_digest,
        prepared.standing,
        cases.len(),
        bench.jobs
    );
    let suite = Suite::new(&bench, prepared.shared)?;
    let finished = suite.run_all(&cases, &|finished| eprintln!("{}", report::line(&finished.record)));
    conclude(root, arguments, &bench, &finished)
}

fn conclude(
    root: &Path,
    arguments: &Arguments,
    bench: &Bench,
    finished: &[Finished],
) -> Result<ExitCode> {
    let records: Vec<Record> = finished.iter().map(|one| one.record.clone()).collect();
    let summary = Summary::of(&bench.profile, bench.closure_digest, bench.inputs, &records);
    let evidence = keep_evidence(root, bench, finished, &records, &summary)?;
    if let Some(directory) = &arguments.out {
        let place = record::place(directory, &bench.profile, bench.inputs);
        record::write(&place, &records, &summary)?;
        eprintln!("records: {}", place.display());
    }
    eprintln!("\n{}", report::table(&records));
    if arguments.compare {
        let place = record::place(&root.join(RETAINED), &bench.profile, bench.inputs);
        let retained = record::read(&place)?;
        let lines = record::compare(&retained, &records);
        if retained.is_empty() {
            eprintln!("nothing is retained for these inputs in {RETAINED}");
        } else if lines.is_empty() {
            eprintln!("nothing changed against the retained results");
        }
        for line in lines {
            eprintln!("{line}");
        }
    }
    eprintln!("{}", report::words(&records));
    eprintln!("raw logs: {}", evidence.display());
    if arguments.json {
        let value = serde_json::json!({ "summary": summary, "records": records });
        println!("{}", serde_json::to_string_pretty(&value).context("serialising the records")?);
    }
    Ok(if report::all_contained(&records) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Raw text of every case, and the records, under the moment of the invocation.
fn keep_evidence(
    root: &Path,
    bench: &Bench,
    finished: &[Finished],
    records: &[Record],
    summary: &Summary,
) -> Result<PathBuf> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = now.context("the clock is before 1970")?.as_secs();
    let base = if bench.acting.uid == 0 || root.join(".lazaret").metadata().is_ok_and(|facts| {
        std::os::unix::fs::MetadataExt::uid(&facts) == bench.acting.uid
    }) {
        root.join(EVIDENCE)
    } else {
        bench.place.with_extension("evidence")
    };
    let place = base.join(format!("{}-{seconds}-{}", bench.profile, std::process::id()));
    fs::create_dir_all(&place).context("making the evidence's directory")?;
    fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).context("closing the evidence")?;
    record::write(&place, records, summary)?;
    for one in finished {
        let name = format!("{}.log", one.record.record.case.replace('/', "."));
        fs::write(place.join(name), &one.log).context("writing a log")?;
    }
    Ok(place)
}

fn chosen<'a>(all: &'a [Case], arguments: &Arguments) -> Result<Vec<&'a Case>> {
    for case in all {
        if let case::Payload::Host(routine) = &case.payload
            && case.pending.is_none()
            && !host::exists(routine)
        {
            bail!("case {}: there is no routine {routine:?}", case.id);
        }
    }
    let mut classes = Vec::new();
    for name in &arguments.class {
        let known = Class::ALL.map(Class::name).join(", ");
        let class = Class::by_name(name);
        classes.push(class.with_context(|| format!("there is no class {name:?}; there are: {known}"))?);
    }
    let wanted = |case: &&Case| {
        (classes.is_empty() || classes.contains(&case.class))
            && (arguments.case.is_empty()
                || arguments.case.iter().any(|pattern| report::matches_glob(pattern, &case.id)))
    };
    let cases: Vec<&Case> = all.iter().filter(wanted).collect();
    if cases.is_empty() {
        bail!("no case is meant by that; cargo xtask attack --list names them");
    }
    Ok(cases)
}

/// What a laptop without the profile's prerequisites gets, on its user's word.
fn not_run(cases: &[&Case], reason: &str) -> ExitCode {
    eprintln!("{reason}\n");
    let verdict = Verdict::NotRun(vec![reason.to_owned()]);
    eprintln!(
        "{} cases were {}: this host lacks what the profile needs. Nothing was attacked, and nothing \
         is known of the isolation here.",
        cases.len(),
        verdict.name()
    );
    ExitCode::SUCCESS
}

/// The closure, the programs and the warden.
fn prepare(root: &Path, arguments: &Arguments) -> Result<Prepared> {
    let mut wanted = BuildArguments::of_profile(&arguments.profile);
    wanted.git_mirror.clone_from(&arguments.git_mirror);
    let built = obtain(root, &wanted)?;
    let programs = programs::build(root, &wanted)?;
    let warden = build_warden(root)?;
    let record: serde_json::Value =
        serde_json::from_slice(&built.record).context("reading the build record")?;
    let inputs = record["inputs"].as_str().and_then(|text| text.parse().ok());
    let inputs = inputs.context("the build record names no inputs")?;
    let bytes = fs::read(built.directory.join("manifest.json")).context("reading the manifest")?;
    let manifest = ClosureManifest::parse(&bytes).context("reading the manifest")?;
    let digest = |role: Role| {
        let file = manifest.file(role);
        file.map(|file| file.sha256).with_context(|| format!("the manifest has no {role:?}"))
    };
    let accepted = Accepted {
        schema: ACCEPTED_SCHEMA.to_owned(),
        profile: built.profile.clone(),
        closure: built.digest,
        bwrap: digest(Role::Bwrap)?,
        launcher: digest(Role::Launcher)?,
        filter: digest(Role::Filter)?,
        inputs,
        review: None,
    };
    let standing = match built.standing {
        Standing::Accepted => NOT_REVIEWED.to_owned(),
        Standing::Stale | Standing::Unreviewed => {
            "not the accepted one of this tree, attacked all the same".to_owned()
        }
    };
    let directory = publish(root, &programs)?;
    let place = |name: &String| (name.clone(), directory.join(name));
    let tool = |name: &str| -> Result<PathBuf> {
        let all = [&programs.tools, &programs.launchers];
        let known = all.iter().any(|programs| programs.contains_key(name));
        if known { Ok(directory.join(name)) } else { bail!("programs.toml lists no {name}") }
    };
    let policy = format!("third_party/profiles/{}/policy.toml", arguments.profile);
    Ok(Prepared {
        accepted,
        standing,
        closures: root.join(".lazaret/closures"),
        policy: root.join(policy),
        warden: copy_program(&warden, &directory.join("lazaret-warden"))?,
        bare: tool("bare")?,
        bare_probe: tool("bare-probe")?,
        parent: tool("parent")?,
        read_filter: tool("read-filter")?,
        launchers: programs.launchers.keys().map(place).collect(),
        bwraps: programs.bwraps.keys().map(place).collect(),
        shared: shared_digest(&programs)?,
    })
}

/// The digest over payloads and programs: what every case shares.
fn shared_digest(programs: &programs::Programs) -> Result<Sha256Digest> {
    let mut text = String::new();
    for payload in [payload::ATTEMPT, payload::TAKEOVER, payload::BENIGN] {
        text.push_str(&format!("{}\n", Sha256Digest::of(payload.as_bytes())));
    }
    for (name, path) in programs.launchers.iter().chain(&programs.bwraps).chain(&programs.tools) {
        let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        text.push_str(&format!("{}  {name}\n", Sha256Digest::of(&bytes)));
    }
    Ok(Sha256Digest::of(text.as_bytes()))
}

/// Copies the programs to where a dropped uid and another user can execute them.
fn publish(root: &Path, programs: &programs::Programs) -> Result<PathBuf> {
    let directory = root.join(PLACE).join("programs");
    // What is there may be of another build.
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).context("making the programs' directory")?;
    for path in [root.join(PLACE), directory.clone()] {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o711)).context("opening a directory")?;
    }
    for (name, path) in programs.launchers.iter().chain(&programs.bwraps).chain(&programs.tools) {
        copy_program(path, &directory.join(name))?;
    }
    Ok(directory)
}

fn copy_program(from: &Path, to: &Path) -> Result<PathBuf> {
    fs::copy(from, to).with_context(|| format!("copying {}", from.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).context("making a program executable")?;
    Ok(to.to_owned())
}

fn build_warden(root: &Path) -> Result<PathBuf> {
    let messages = read(cargo(root).args([
        "build",
        "--quiet",
        "-p",
        "lazaret-warden",
        "--bin",
        "lazaret-warden",
        "--message-format=json",
    ]))?;
    for line in messages.lines() {
        let message: serde_json::Value = serde_json::from_str(line).context("reading cargo's messages")?;
        if let Some(program) = message["executable"].as_str() {
            return Ok(PathBuf::from(program));
        }
    }
    bail!("cargo named no warden")
}

/// A directory of this invocation; it goes with this value.
struct Place(PathBuf);

impl Place {
    fn make(root: &Path) -> Result<Self> {
        let parent = match std::env::var_os("LAZARET_ATTACK_PLACE") {
            Some(parent) => PathBuf::from(parent),
            None => root.join(PLACE),
        };
        fs::create_dir_all(&parent).with_context(|| format!("making {}", parent.display()))?;
        let path = parent.join(format!("run-{}", std::process::id()));
        // Of a process that had this number before.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).with_context(|| format!("making {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o711)).context("opening a directory")?;
        Ok(Self(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed lies below .lazaret/attack and is found there.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn bench(prepared: &Prepared, place: &Place, arguments: &Arguments) -> Result<Bench> {
    let acting = Acting::current(None)?;
    let closure = engine_closure::find(&[prepared.closures.clone()], &prepared.accepted, acting)?;
    let jobs = match arguments.jobs {
        Some(jobs) => jobs,
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let tools = Tools {
        bare: prepared.bare.clone(),
        bare_probe: prepared.bare_probe.clone(),
        parent: prepared.parent.clone(),
        read_filter: prepared.read_filter.clone(),
        launchers: prepared.launchers.clone(),
        bwraps: prepared.bwraps.clone(),
    };
    Ok(Bench::new(Parts {
        closure,
        policy: fs::read_to_string(&prepared.policy).context("reading policy.toml")?,
        warden: prepared.warden.clone(),
        tools,
        acting,
        place: place.0.clone(),
        jobs,
        inputs: prepared.accepted.inputs,
    })?)
}

/// What doctor would say, if it says that a run cannot start here.
fn refused_by_preflight(prepared: &Prepared, place: &Place) -> Result<Option<String>> {
    let report = preflight::probe(&preflight::Request {
        profile: prepared.accepted.profile.clone(),
        accepted: Ok(prepared.accepted.clone()),
        closure_places: vec![prepared.closures.clone()],
        warden: Ok(prepared.warden.clone()),
        data_dir: Ok(place.0.join("preflight")),
        acting: Acting::current(None),
    });
    if report.ready {
        return Ok(None);
    }
    let mut text = String::from("the preflight fails, so no case was run:");
    for probe in &report.probes {
        let found = match &probe.verdict {
            preflight::Verdict::Ok { .. } => continue,
            preflight::Verdict::Blocked(blocked) => {
                let advice = blocked.advice.iter().map(|step| format!("\n      {step}"));
                format!("{blocked}{}", advice.collect::<String>())
            }
            preflight::Verdict::NotTried { because } => format!("not tried: {because}"),
        };
        text.push_str(&format!("\n  {}: {found}", probe.need.title()));
    }
    Ok(Some(text))
}

/// The same suite by another user: a process of that user, with what root has prepared.
fn as_user(root: &Path, arguments: &Arguments, prepared: &Prepared, user: &str) -> Result<ExitCode> {
    let number = |option: &str| -> Result<u32> {
        let text = read(Command::new("id").args([option, user]))?;
        text.trim().parse().with_context(|| format!("id {option} {user} said {text:?}"))
    };
    let (uid, gid) = (number("-u")?, number("-g")?);
    let base = root.join(PLACE).join(format!("user-{uid}"));
    fs::create_dir_all(&base).context("making the user's directory")?;
    let file = root.join(PLACE).join(format!("prepared-{uid}.json"));
    let bytes = serde_json::to_vec_pretty(prepared).context("serialising what is prepared")?;
    fs::write(&file, bytes).context("writing what is prepared")?;
    let program = copy_program(
        &std::env::current_exe().context("looking for this program")?,
        &root.join(PLACE).join("programs/xtask"),
    )?;
    for (path, mode) in [(&base, 0o711), (&file, 0o644)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).context("opening a file")?;
    }
    std::os::unix::fs::chown(&base, Some(uid), Some(gid)).context("giving the directory away")?;
    let mut command = Command::new("setpriv");
    command
        .args([format!("--reuid={uid}"), format!("--regid={gid}")])
        .args(["--clear-groups", "--inh-caps=-all", "--"])
        .arg(program)
        .args(["attack", "--profile", &arguments.profile, "--prepared"])
        .arg(&file)
        .env("LAZARET_ATTACK_PLACE", &base)
        .env("CARGO_MANIFEST_DIR", root.join("xtask"))
        .env("HOME", &base);
    for class in &arguments.class {
        command.args(["--class", class]);
    }
    for case in &arguments.case {
        command.args(["--case", case]);
    }
    if let Some(jobs) = arguments.jobs {
        command.args(["--jobs", &jobs.to_string()]);
    }
    for (flag, given) in [("--json", arguments.json), ("--compare", arguments.compare)] {
        if given {
            command.arg(flag);
        }
    }
    let status = command.status().context("starting the suite as another user")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
