//! One observation that holds, and everything that may not be otherwise.

use proptest::prelude::*;

use super::*;

fn digest(byte: u8) -> Sha256Digest {
    Sha256Digest::from_bytes([byte; 32])
}

fn namespaces(base: u64) -> Namespaces {
    Namespaces {
        cgroup: base,
        ipc: base + 1,
        mount: base + 2,
        network: base + 3,
        pid: base + 4,
        user: base + 5,
        uts: base + 6,
    }
}

fn launcher_facts() -> InodeFacts {
    InodeFacts {
        inode: (1, 100),
        size_bytes: 9,
        access: (0o100_555, 0, 0),
        links: 1,
        changed: (1, 2, 3, 4),
    }
}

fn expected() -> Expected {
    Expected {
        pid: 40,
        bwrap_pid: 39,
        warden_pid: 38,
        uid: 1000,
        gid: 1001,
        groups: vec![4, 1001],
        inherited_filters: 2,
        pipes: [(7, 1), (7, 2), (7, 3)],
        namespaces: namespaces(10),
        time_namespace: Some(9),
        launcher: launcher_facts(),
        launcher_sha256: digest(1),
        output: (1, 200),
        package_sha256: digest(2),
        input_sha256: digest(3),
    }
}

fn mount(id: u32, parent: u32, point: &str, options: &str, file_system: &str) -> Mount {
    let mut options: Vec<String> = options.split(',').map(str::to_owned).collect();
    options.sort();
    Mount {
        id,
        parent,
        point: point.to_owned(),
        options,
        propagation: Vec::new(),
        file_system: file_system.to_owned(),
    }
}

fn observed() -> Observed {
    Observed {
        alive: true,
        parent: 39,
        tracer: 38,
        namespace_pids: vec![40, 1],
        namespace_sessions: vec![40, 1],
        terminal: 0,
        uids: vec![1000; 4],
        gids: vec![1001; 4],
        groups: vec![4, 1001],
        filters: 3,
        filter_mode: 2,
        no_new_privileges: 1,
        capabilities: [0; 5],
        threads: 1,
        blocked_signals: 0,
        ignored_signals: 0x0100_1000,
        caught_signals: 0,
        umask: "0077".to_owned(),
        huge_pages: Some(0),
        personality: "00000000".to_owned(),
        oom_score: "1000".to_owned(),
        coredump_filter: Some("00000000".to_owned()),
        descriptors: vec![(0, (7, 1)), (1, (7, 2)), (2, (7, 3))],
        limits: limits::expected_inside()
            .map(|(r, v)| (r, Some(v), Some(v)))
            .to_vec(),
        namespaces: namespaces(20),
        time_namespace: Some(9),
        mounts: vec![
            mount(50, 1, "/", "ro,nosuid,nodev,relatime", "tmpfs"),
            mount(51, 50, "/launcher", "ro,nosuid,nodev,noatime", "xfs"),
            mount(52, 50, "/package.py", "ro,nosuid,nodev,relatime", "tmpfs"),
            mount(53, 50, "/input.json", "ro,nosuid,nodev,relatime", "tmpfs"),
            mount(54, 50, "/out/result.json", "rw,nosuid,nodev,noexec", "ext4"),
        ],
        root_entries: ["input.json", "launcher", "out", "package.py"]
            .map(str::to_owned)
            .to_vec(),
        output_entries: vec!["result.json".to_owned()],
        launcher: (1, 100),
        output: (1, 200),
        package_sha256: digest(2),
        input_sha256: digest(3),
        uid_map: vec![[65534, 1000, 1]],
        gid_map: vec![[65534, 1001, 1]],
        setgroups: "deny".to_owned(),
        interfaces: vec!["lo".to_owned()],
        working_directory: "/".to_owned(),
        executable: launcher_facts(),
        executable_sha256: digest(1),
    }
}

fn wrong(observed: &Observed) -> Vec<Fact> {
    judge(&expected(), observed)
        .into_iter()
        .filter(|fact| !fact.holds)
        .map(|fact| fact.fact)
        .collect()
}

type Spoil = fn(&mut Observed);

/// What is changed, and the facts that then do not hold.
const SPOILT: &[(Spoil, &[Fact])] = &[
    (|o| o.alive = false, &[Fact::Alive]),
    (|o| o.parent = 1, &[Fact::Parent]),
    (|o| o.tracer = 0, &[Fact::Tracer]),
    (|o| o.namespace_pids = vec![40], &[Fact::NamespacePids]),
    (|o| o.namespace_pids = vec![40, 2], &[Fact::NamespacePids]),
    (
        |o| o.namespace_pids = vec![40, 7, 1],
        &[Fact::NamespacePids],
    ),
    (|o| o.namespace_sessions = vec![12, 0], &[Fact::Session]),
    (|o| o.terminal = 34816, &[Fact::Terminal]),
    (|o| o.uids[1] = 0, &[Fact::UserIds]),
    (|o| o.gids[3] = 0, &[Fact::GroupIds]),
    (|o| o.groups.clear(), &[Fact::SupplementaryGroups]),
    (|o| o.filters = 2, &[Fact::FilterCount]),
    (|o| o.filters = 4, &[Fact::FilterCount]),
    (|o| o.filter_mode = 1, &[Fact::FilterMode]),
    (|o| o.no_new_privileges = 0, &[Fact::NoNewPrivileges]),
    (
        |o| o.capabilities[0] = 1,
        &[Fact::Capabilities(CapabilitySet::Inheritable)],
    ),
    (
        |o| o.capabilities[3] = 1 << 40,
        &[Fact::Capabilities(CapabilitySet::Bounding)],
    ),
    (|o| o.threads = 2, &[Fact::Threads]),
    (|o| o.blocked_signals = 1, &[Fact::BlockedSignals]),
    (|o| o.ignored_signals |= 1 << 31, &[Fact::IgnoredSignals]),
    (|o| o.caught_signals = 1 << 10, &[Fact::CaughtSignals]),
    (|o| o.umask = "0022".to_owned(), &[Fact::Umask]),
    (|o| o.huge_pages = Some(1), &[Fact::HugePages]),
    (
        |o| o.personality = "00040000".to_owned(),
        &[Fact::Personality],
    ),
    (|o| o.oom_score = "0".to_owned(), &[Fact::OomScore]),
    (
        |o| o.coredump_filter = Some("00000033".to_owned()),
        &[Fact::CoredumpFilter],
    ),
    (|o| o.descriptors.push((3, (8, 8))), &[Fact::Descriptors]),
    (
        |o| o.descriptors.truncate(2),
        &[Fact::Descriptors, Fact::StandardStream(2)],
    ),
    (|o| o.descriptors[0].1 = (7, 2), &[Fact::StandardStream(0)]),
    (|o| o.time_namespace = None, &[Fact::TimeNamespace]),
    (|o| drop(o.mounts.pop()), &[Fact::Mounts]),
    (
        |o| {
            o.mounts
                .push(mount(60, 50, "/etc", "ro,nosuid,nodev", "ext4"))
        },
        &[Fact::Mounts],
    ),
    (|o| o.mounts.push(o.mounts[1].clone()), &[Fact::Mounts]),
    (
        |o| o.mounts[0].options = vec!["nodev".into(), "nosuid".into(), "rw".into()],
        &[Fact::Mounts],
    ),
    (
        |o| o.mounts[1].options = vec!["nodev".into(), "ro".into()],
        &[Fact::Mounts],
    ),
    (
        |o| o.mounts[4].options = vec!["nodev".into(), "nosuid".into(), "ro".into()],
        &[Fact::Mounts],
    ),
    (
        |o| o.mounts[2].file_system = "ext4".to_owned(),
        &[Fact::Mounts],
    ),
    (|o| o.mounts[3].parent = 54, &[Fact::Mounts]),
    (
        |o| o.mounts[1].propagation = vec!["shared:5".into()],
        &[Fact::Mounts],
    ),
    (
        |o| o.root_entries.push("tmp".to_owned()),
        &[Fact::RootEntries],
    ),
    (|o| o.output_entries.clear(), &[Fact::OutputEntries]),
    (|o| o.launcher = (1, 101), &[Fact::LauncherInode]),
    (|o| o.output = (2, 200), &[Fact::OutputInode]),
    (
        |o| o.package_sha256 = Sha256Digest::from_bytes([9; 32]),
        &[Fact::PackageContent],
    ),
    (
        |o| o.input_sha256 = Sha256Digest::from_bytes([9; 32]),
        &[Fact::InputContent],
    ),
    (|o| o.uid_map = vec![[0, 0, 4_294_967_295]], &[Fact::UidMap]),
    (|o| o.gid_map.push([0, 0, 1]), &[Fact::GidMap]),
    (|o| o.setgroups = "allow".to_owned(), &[Fact::Setgroups]),
    (
        |o| o.interfaces.push("eth0".to_owned()),
        &[Fact::NetworkInterfaces],
    ),
    (
        |o| o.working_directory = "/out".to_owned(),
        &[Fact::WorkingDirectory],
    ),
    (|o| o.executable.inode = (1, 101), &[Fact::ExecutableInode]),
    (|o| o.executable.changed.3 += 1, &[Fact::ExecutableInode]),
    (
        |o| o.executable_sha256 = Sha256Digest::from_bytes([9; 32]),
        &[Fact::ExecutableDigest],
    ),
];

#[test]
fn what_is_expected_holds_in_every_fact() {
    assert_eq!(wrong(&observed()), []);
}

#[test]
fn each_difference_is_found_and_named() {
    for (index, (spoil, facts)) in SPOILT.iter().enumerate() {
        let mut observed = observed();
        spoil(&mut observed);
        assert_eq!(wrong(&observed), *facts, "case {index}");
    }
}

type Share = fn(&mut Namespaces, &Namespaces);

#[test]
fn every_namespace_has_to_be_another_one() {
    let own = namespaces(10);
    let same: [(Share, NamespaceKind); 7] = [
        (|its, own| its.cgroup = own.cgroup, NamespaceKind::Cgroup),
        (|its, own| its.ipc = own.ipc, NamespaceKind::Ipc),
        (|its, own| its.mount = own.mount, NamespaceKind::Mount),
        (|its, own| its.network = own.network, NamespaceKind::Network),
        (|its, own| its.pid = own.pid, NamespaceKind::Pid),
        (|its, own| its.user = own.user, NamespaceKind::User),
        (|its, own| its.uts = own.uts, NamespaceKind::Uts),
    ];
    for (share, kind) in same {
        let mut observed = observed();
        share(&mut observed.namespaces, &own);
        assert_eq!(wrong(&observed), [Fact::Namespace(kind)]);
    }
}

#[test]
fn every_fact_of_the_list_is_judged_or_may_be_missing_on_a_kernel() {
    let mut observed = observed();
    observed.huge_pages = None;
    observed.coredump_filter = None;
    assert_eq!(wrong(&observed), []);
}

#[test]
fn a_mount_that_follows_the_hosts_is_accepted_because_root_alone_could_use_it() {
    let mut observed = observed();
    observed.mounts[1].propagation = vec!["master:1".into()];
    assert_eq!(wrong(&observed), []);
}

#[test]
fn a_place_of_the_host_is_never_shown() {
    let mut observed = observed();
    observed
        .mounts
        .push(mount(60, 50, "/home/secret", "rw", "ext4"));
    let facts = judge(&expected(), &observed);
    assert!(
        facts.iter().all(|fact| !fact.found.contains("secret")),
        "{facts:?}"
    );
}

proptest! {
    #[test]
    fn any_limit_with_another_value_is_found(
        index in 0_usize..16, hard in any::<bool>(), value in proptest::option::of(any::<u64>()),
    ) {
        let mut observed = observed();
        let row = &mut observed.limits[index];
        let slot = if hard { &mut row.2 } else { &mut row.1 };
        prop_assume!(*slot != value);
        *slot = value;
        let resource = row.0;
        prop_assert_eq!(wrong(&observed), vec![Fact::Limit(resource)]);
    }

    #[test]
    fn any_bit_of_any_capability_set_is_found(index in 0_usize..5, bit in 0_u32..64) {
        let mut observed = observed();
        observed.capabilities[index] = 1 << bit;
        prop_assert_eq!(wrong(&observed), vec![Fact::Capabilities(CapabilitySet::ALL[index])]);
    }

    #[test]
    fn any_missing_limit_is_found(index in 0_usize..16) {
        let mut observed = observed();
        let row = observed.limits.remove(index);
        prop_assert_eq!(wrong(&observed), vec![Fact::Limit(row.0)]);
    }
}
