//! The expectation, and the comparison with what was observed. Pure.
//!
//! Every difference counts, in either direction: a stricter state than expected is
//! as wrong as a weaker one, because it means that something else ran than what was
//! accepted.

use std::fmt::Write as _;

use lazaret_contract::digest::Sha256Digest;

use super::parse::{LimitRow, Mount};
use super::{CapabilitySet, Fact, JudgedFact, NamespaceKind};
use crate::bwrap_args::INSIDE_ID;
use crate::inode::InodeFacts;
use crate::limits;
use crate::limits::Resource;
use crate::record::Namespaces;

/// A device and an inode number.
pub type Inode = (u64, u64);

/// What has to be found, from what the warden knows of itself and has staged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The launcher's pid in the warden's namespace.
    pub pid: i32,
    /// The pid of bwrap.
    pub bwrap_pid: i32,
    /// The warden's own pid.
    pub warden_pid: i32,
    /// The run's uid on the host.
    pub uid: u32,
    /// The run's gid on the host.
    pub gid: u32,
    /// The warden's supplementary groups, sorted.
    pub groups: Vec<u32>,
    /// System-call filters that the warden has itself.
    pub inherited_filters: u32,
    /// The warden's pipes, as descriptors 0, 1 and 2.
    pub pipes: [Inode; 3],
    /// The warden's namespaces.
    pub namespaces: Namespaces,
    /// The warden's time namespace.
    pub time_namespace: Option<u64>,
    /// The staged launcher.
    pub launcher: InodeFacts,
    /// Its accepted digest.
    pub launcher_sha256: Sha256Digest,
    /// The output inode.
    pub output: Inode,
    /// The staged package.
    pub package_sha256: Sha256Digest,
    /// The staged input.
    pub input_sha256: Sha256Digest,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Whether the process was there before and after.
    pub alive: bool,
    /// Its parent.
    pub parent: i32,
    /// Its tracer; 0 if none.
    pub tracer: i32,
    /// Its pids, from the reader's namespace inwards.
    pub namespace_pids: Vec<i32>,
    /// Its session, in the same way.
    pub namespace_sessions: Vec<i32>,
    /// Its controlling terminal; 0 if none.
    pub terminal: i32,
    /// Its four uids.
    pub uids: Vec<u32>,
    /// Its four gids.
    pub gids: Vec<u32>,
    /// Its supplementary groups, sorted.
    pub groups: Vec<u32>,
    /// Number of filters.
    pub filters: u32,
    /// Seccomp mode.
    pub filter_mode: u32,
    /// no_new_privs.
    pub no_new_privileges: u32,
    /// The five sets, in the order of [`CapabilitySet::ALL`].
    pub capabilities: [u64; 5],
    /// Number of threads.
    pub threads: u32,
    /// Blocked signals of the thread.
    pub blocked_signals: u64,
    /// Ignored signals.
    pub ignored_signals: u64,
    /// Signals with a handler.
    pub caught_signals: u64,
    /// The mask, as the kernel writes it.
    pub umask: String,
    /// `THP_enabled`, on kernels that say it.
    pub huge_pages: Option<u32>,
    /// /proc/PID/personality.
    pub personality: String,
    /// /proc/PID/oom_score_adj.
    pub oom_score: String,
    /// /proc/PID/coredump_filter, where there is one.
    pub coredump_filter: Option<String>,
    /// Open descriptors and what they lead to, sorted.
    pub descriptors: Vec<(u32, Inode)>,
    /// The limits.
    pub limits: Vec<LimitRow>,
    /// Its namespaces.
    pub namespaces: Namespaces,
    /// Its time namespace.
    pub time_namespace: Option<u64>,
    /// Its mounts.
    pub mounts: Vec<Mount>,
    /// Entries of its root directory, sorted.
    pub root_entries: Vec<String>,
    /// Entries of its output directory, sorted.
    pub output_entries: Vec<String>,
    /// What `/launcher` is in it.
    pub launcher: Inode,
    /// What `/out/result.json` is in it.
    pub output: Inode,
    /// The digest of `/package.py` in it.
    pub package_sha256: Sha256Digest,
    /// The digest of `/input.json` in it.
    pub input_sha256: Sha256Digest,
    /// Its uid map.
    pub uid_map: Vec<[u32; 3]>,
    /// Its gid map.
    pub gid_map: Vec<[u32; 3]>,
    /// /proc/PID/setgroups.
    pub setgroups: String,
    /// Its network interfaces.
    pub interfaces: Vec<String>,
    /// Its working directory, seen from its root.
    pub working_directory: String,
    /// The program that it runs.
    pub executable: InodeFacts,
    /// The digest of that program.
    pub executable_sha256: Sha256Digest,
}

impl Observed {
    /// What nobody has looked at yet. Every value is overwritten by looking.
    #[must_use]
    pub fn nothing(executable_sha256: Sha256Digest) -> Self {
        let unknown = Sha256Digest::from_bytes([0; 32]);
        Self {
            alive: false,
            parent: 0,
            tracer: 0,
            namespace_pids: Vec::new(),
            namespace_sessions: Vec::new(),
            terminal: -1,
            uids: Vec::new(),
            gids: Vec::new(),
            groups: vec![u32::MAX],
            filters: 0,
            filter_mode: 0,
            no_new_privileges: 0,
            capabilities: [u64::MAX; 5],
            threads: 0,
            blocked_signals: u64::MAX,
            ignored_signals: u64::MAX,
            caught_signals: u64::MAX,
            umask: String::new(),
            huge_pages: Some(u32::MAX),
            personality: String::new(),
            oom_score: String::new(),
            coredump_filter: Some(String::new()),
            descriptors: Vec::new(),
            limits: Vec::new(),
            namespaces: Namespaces {
                cgroup: 0,
                ipc: 0,
                mount: 0,
                network: 0,
                pid: 0,
                user: 0,
                uts: 0,
            },
            time_namespace: None,
            mounts: Vec::new(),
            root_entries: Vec::new(),
            output_entries: Vec::new(),
            launcher: (0, 0),
            output: (0, 0),
            package_sha256: unknown,
            input_sha256: unknown,
            uid_map: Vec::new(),
            gid_map: Vec::new(),
            setgroups: String::new(),
            interfaces: Vec::new(),
            working_directory: String::new(),
            executable: InodeFacts {
                inode: (0, 0),
                size_bytes: 0,
                access: (0, 0, 0),
                links: 0,
                changed: (0, 0, 0, 0),
            },
            executable_sha256,
        }
    }
}

/// Compares everything. The order is fixed; the first one that does not hold is the
/// one that is named when a run is refused.
#[must_use]
pub fn judge(expected: &Expected, observed: &Observed) -> Vec<JudgedFact> {
    let mut facts = Facts(Vec::new());
    judge_process(&mut facts, expected, observed);
    judge_privileges(&mut facts, expected, observed);
    judge_descriptors(&mut facts, expected, observed);
    for (resource, value) in limits::expected_inside() {
        facts.equal(
            Fact::Limit(resource),
            limit_text(Some((resource, Some(value), Some(value)))),
            limit_text(
                observed
                    .limits
                    .iter()
                    .copied()
                    .find(|row| row.0 == resource),
            ),
        );
    }
    judge_namespaces(&mut facts, expected, observed);
    judge_files(&mut facts, expected, observed);
    facts.0
}

struct Facts(Vec<JudgedFact>);

impl Facts {
    fn equal(&mut self, fact: Fact, expected: impl ToString, found: impl ToString) {
        let (expected, found) = (expected.to_string(), found.to_string());
        let holds = expected == found;
        self.0.push(JudgedFact {
            fact,
            expected,
            found,
            holds,
        });
    }

    /// For values that say nothing to a reader or would tell something of the host.
    fn same<T: PartialEq>(&mut self, fact: Fact, what: &str, expected: &T, found: &T) {
        let found = if expected == found {
            what.to_owned()
        } else {
            "another".to_owned()
        };
        self.equal(fact, what, found);
    }
}

fn judge_process(facts: &mut Facts, expected: &Expected, observed: &Observed) {
    facts.equal(Fact::Alive, true, observed.alive);
    facts.equal(Fact::Parent, expected.bwrap_pid, observed.parent);
    facts.equal(Fact::Tracer, expected.warden_pid, observed.tracer);
    facts.equal(
        Fact::NamespacePids,
        list([expected.pid, 1]),
        list(&observed.namespace_pids),
    );
    facts.equal(
        Fact::Session,
        list([expected.pid, 1]),
        list(&observed.namespace_sessions),
    );
    facts.equal(Fact::Terminal, 0, observed.terminal);
    facts.equal(Fact::Threads, 1, observed.threads);
    facts.equal(
        Fact::BlockedSignals,
        "0",
        format!("{:x}", observed.blocked_signals),
    );
    let ignored = format!(
        "{:x}",
        signal_bit(libc::SIGPIPE) | signal_bit(libc::SIGXFSZ)
    );
    facts.equal(
        Fact::IgnoredSignals,
        ignored,
        format!("{:x}", observed.ignored_signals),
    );
    facts.equal(
        Fact::CaughtSignals,
        "0",
        format!("{:x}", observed.caught_signals),
    );
    facts.equal(Fact::Umask, "0077", &observed.umask);
    if let Some(huge_pages) = observed.huge_pages {
        facts.equal(Fact::HugePages, 0, huge_pages);
    }
    facts.equal(Fact::Personality, "00000000", &observed.personality);
    facts.equal(Fact::OomScore, "1000", &observed.oom_score);
    if let Some(filter) = &observed.coredump_filter {
        facts.equal(Fact::CoredumpFilter, "00000000", filter);
    }
}

/// A signal's bit in the masks of /proc/PID/status.
fn signal_bit(signal: i32) -> u64 {
    u32::try_from(signal - 1)
        .ok()
        .and_then(|bit| 1_u64.checked_shl(bit))
        .unwrap_or(0)
}

fn judge_privileges(facts: &mut Facts, expected: &Expected, observed: &Observed) {
    facts.equal(Fact::UserIds, list([expected.uid; 4]), list(&observed.uids));
    facts.equal(
        Fact::GroupIds,
        list([expected.gid; 4]),
        list(&observed.gids),
    );
    facts.equal(
        Fact::SupplementaryGroups,
        list(&expected.groups),
        list(&observed.groups),
    );
    facts.equal(
        Fact::FilterCount,
        expected.inherited_filters.saturating_add(1),
        observed.filters,
    );
    // SECCOMP_MODE_FILTER (seccomp(2)).
    facts.equal(Fact::FilterMode, 2, observed.filter_mode);
    facts.equal(Fact::NoNewPrivileges, 1, observed.no_new_privileges);
    for (set, bits) in CapabilitySet::ALL.into_iter().zip(observed.capabilities) {
        facts.equal(Fact::Capabilities(set), "0", format!("{bits:x}"));
    }
    facts.equal(
        Fact::UidMap,
        map_text(&[[INSIDE_ID, expected.uid, 1]]),
        map_text(&observed.uid_map),
    );
    facts.equal(
        Fact::GidMap,
        map_text(&[[INSIDE_ID, expected.gid, 1]]),
        map_text(&observed.gid_map),
    );
    facts.equal(Fact::Setgroups, "deny", &observed.setgroups);
}

fn judge_descriptors(facts: &mut Facts, expected: &Expected, observed: &Observed) {
    let numbers: Vec<u32> = observed
        .descriptors
        .iter()
        .map(|(number, _)| *number)
        .collect();
    facts.equal(Fact::Descriptors, list([0, 1, 2]), list(&numbers));
    for (number, pipe) in (0_u8..).zip(expected.pipes) {
        let found = observed
            .descriptors
            .iter()
            .find(|(found, _)| *found == u32::from(number));
        let found = found.map(|(_, inode)| *inode);
        facts.same(
            Fact::StandardStream(number),
            "the warden's pipe",
            &Some(pipe),
            &found,
        );
    }
}

fn judge_namespaces(facts: &mut Facts, expected: &Expected, observed: &Observed) {
    let (own, its) = (&expected.namespaces, &observed.namespaces);
    let pairs = [
        (NamespaceKind::User, own.user, its.user),
        (NamespaceKind::Mount, own.mount, its.mount),
        (NamespaceKind::Pid, own.pid, its.pid),
        (NamespaceKind::Network, own.network, its.network),
        (NamespaceKind::Ipc, own.ipc, its.ipc),
        (NamespaceKind::Uts, own.uts, its.uts),
        (NamespaceKind::Cgroup, own.cgroup, its.cgroup),
    ];
    for (kind, own, its) in pairs {
        let found = if own == its {
            "the warden's"
        } else {
            "its own"
        };
        facts.equal(Fact::Namespace(kind), "its own", found);
    }
    let (own, its) = (&expected.time_namespace, &observed.time_namespace);
    facts.same(Fact::TimeNamespace, "the warden's", own, its);
    facts.equal(Fact::NetworkInterfaces, "lo", observed.interfaces.join(" "));
}

fn judge_files(facts: &mut Facts, expected: &Expected, observed: &Observed) {
    facts.equal(
        Fact::Mounts,
        mounts_expected(),
        mounts_found(&observed.mounts),
    );
    facts.equal(
        Fact::RootEntries,
        "input.json launcher out package.py",
        observed.root_entries.join(" "),
    );
    facts.equal(
        Fact::OutputEntries,
        "result.json",
        observed.output_entries.join(" "),
    );
    let staged = "as staged";
    facts.same(
        Fact::LauncherInode,
        staged,
        &expected.launcher.inode,
        &observed.launcher,
    );
    facts.same(
        Fact::OutputInode,
        "the run's output",
        &expected.output,
        &observed.output,
    );
    facts.equal(
        Fact::PackageContent,
        expected.package_sha256,
        observed.package_sha256,
    );
    facts.equal(
        Fact::InputContent,
        expected.input_sha256,
        observed.input_sha256,
    );
    facts.equal(Fact::WorkingDirectory, "/", &observed.working_directory);
    facts.same(
        Fact::ExecutableInode,
        staged,
        &expected.launcher,
        &observed.executable,
    );
    facts.equal(
        Fact::ExecutableDigest,
        expected.launcher_sha256,
        observed.executable_sha256,
    );
}

fn list<T: ToString>(values: impl IntoIterator<Item = T>) -> String {
    values
        .into_iter()
        .map(|value| value.to_string())
        .collect::<Vec<_>>()
        .join(" ")
}

fn map_text(map: &[[u32; 3]]) -> String {
    map.iter().map(list).collect::<Vec<_>>().join(", ")
}

fn limit_text(row: Option<(Resource, Option<u64>, Option<u64>)>) -> String {
    let value = |value: Option<u64>| value.map_or("unlimited".to_owned(), |v| v.to_string());
    match row {
        None => "missing".to_owned(),
        Some((_, soft, hard)) => format!("{} {}", value(soft), value(hard)),
    }
}

/// One mount as it has to be.
struct MountRule {
    point: &'static str,
    writable: bool,
    /// The type of the file system, where it is ours to choose.
    file_system: Option<&'static str>,
}

/// All of them. `/out` itself lies on the read-only root.
const MOUNT_RULES: [MountRule; 5] = [
    MountRule {
        point: "/",
        writable: false,
        file_system: Some("tmpfs"),
    },
    MountRule {
        point: "/input.json",
        writable: false,
        file_system: Some("tmpfs"),
    },
    MountRule {
        point: "/launcher",
        writable: false,
        file_system: None,
    },
    MountRule {
        point: "/out/result.json",
        writable: true,
        file_system: None,
    },
    MountRule {
        point: "/package.py",
        writable: false,
        file_system: Some("tmpfs"),
    },
];

/// Options that a bind mount keeps from the place it comes from, and that take
/// nothing from the isolation: how access times are kept, and a prohibition.
const INDIFFERENT_OPTIONS: [&str; 6] = [
    "relatime",
    "noatime",
    "nodiratime",
    "strictatime",
    "lazytime",
    "noexec",
];

fn mounts_expected() -> String {
    MOUNT_RULES
        .iter()
        .map(|rule| {
            let access = if rule.writable { "rw" } else { "ro" };
            format!(
                "{}({},{access},nodev,nosuid)",
                rule.point,
                rule.file_system.unwrap_or("any")
            )
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// The mounts in the same form. One that is not expected is only counted: its place
/// could be a host path.
fn mounts_found(mounts: &[Mount]) -> String {
    let mut text = String::new();
    let mut known = 0;
    for rule in &MOUNT_RULES {
        for mount in mounts.iter().filter(|mount| mount.point == rule.point) {
            known += 1;
            let separator = if text.is_empty() { "" } else { " " };
            let _ = write!(text, "{separator}{}", mount_text(rule, mount, mounts));
        }
    }
    let strangers = mounts.len() - known;
    if strangers > 0 {
        let _ = write!(text, " and {strangers} unexpected");
    }
    text
}

fn mount_text(rule: &MountRule, mount: &Mount, mounts: &[Mount]) -> String {
    let mut options: Vec<&str> = mount
        .options
        .iter()
        .map(String::as_str)
        .filter(|option| !INDIFFERENT_OPTIONS.contains(option))
        .collect();
    // The access first, then the rest in order: `ro` and `rw` sort behind `nosuid`.
    options.sort_by_key(|option| (!matches!(*option, "ro" | "rw"), *option));
    // A master can only be mounted over from the host, which root alone can do; a
    // shared mount would carry mounts outwards.
    let tags: Vec<&str> = mount
        .propagation
        .iter()
        .map(String::as_str)
        .filter(|tag| !tag.starts_with("master:") && !tag.starts_with("propagate_from:"))
        .collect();
    let file_system = match rule.file_system {
        Some(_) => mount.file_system.as_str(),
        None => "any",
    };
    let on_root = rule.point == "/"
        || mounts
            .iter()
            .any(|root| root.point == "/" && root.id == mount.parent);
    let mut text = format!("{}({file_system},{}", rule.point, options.join(","));
    if !tags.is_empty() {
        let _ = write!(text, ",{}", tags.join(","));
    }
    text.push(')');
    if !on_root {
        text.push_str("-not-on-root");
    }
    text
}

#[cfg(test)]
mod tests;
