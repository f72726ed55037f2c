//! What a job needs at each stage, as a table: one fact is spoilt at a time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

use lazaret_lifecycle::*;
use world::{BOOT, HOUR_MS, World, digest, id, identity};

/// A world in which v1 is in force, and a job that is bound to it.
struct Job {
    world: World,
    binding: Binding,
    cancelled: bool,
    owner_removed: bool,
    session: String,
    lease: Deadline,
    denial: Option<Denial>,
}

const PACKAGE: &str = "local.tool";

fn v1() -> VersionIdentity {
    identity(PACKAGE, "1", "code 1")
}

impl Job {
    fn new() -> Self {
        let mut world = World::new(PACKAGE);
        world.activate_first(&v1());
        let target = world.state.pointer.target.clone().unwrap();
        let version = &world.state.versions[&target.content];
        let binding = Binding {
            owner: id("alice"),
            root: id("root"),
            root_epoch: Epoch::FIRST,
            session: id("sa"),
            goal: id("goal"),
            goal_revision: Revision::FIRST,
            task: id("task"),
            attempt: Some(id("attempt")),
            lease: Some(id("lease")),
            fence: Some(Fence::FIRST),
            capability: version.capability.clone(),
            package: id(PACKAGE),
            package_version: id("1"),
            content: target.content,
            authority: version.identity.authority,
            dependency: version.identity.dependency,
            review: target.review.clone(),
            approval: target.approval.clone(),
            pointer_generation: Some(world.state.pointer.generation),
            profile: version.runtime.profile.clone(),
            closure: version.runtime.closure,
            policy: version.runtime.policy,
            input: digest("input"),
            output_slot: Some(id("slot")),
            priority: Priority::DEFAULT,
            first_deadline: Some(Deadline::after(&world.now, 10_000)),
        };
        let lease = Deadline::after(&world.now, 15_000);
        Self {
            world,
            binding,
            cancelled: false,
            owner_removed: false,
            session: "sa".to_owned(),
            lease,
            denial: None,
        }
    }

    fn codes(&self, stage: Stage) -> Vec<&'static str> {
        let w = &self.world;
        let goal = |name: &GoalId| w.goals.iter().find(|goal| goal.id == *name);
        let rows = Canonical {
            now: &w.now,
            cancelled: self.cancelled,
            root: &w.root,
            owner_removed: self.owner_removed,
            session: w.sessions.iter().find(|s| s.id.as_str() == self.session),
            goal: goal(&self.binding.goal),
            version: w.state.versions.get(&self.binding.content),
            pointer: &w.state.pointer,
            package_goal: w
                .state
                .pointer
                .target
                .as_ref()
                .and_then(|target| goal(&target.goal)),
            approval: w.state.approvals.get(&self.binding.approval),
            denial: self.denial.as_ref(),
            lease_deadline: Some(&self.lease),
        };
        let first = first_refusal(stage, &self.binding, &rows).map(|refusal| refusal.code());
        let all: Vec<_> = if stage == Stage::Reading {
            reading_refusals(&self.binding, &rows)
                .iter()
                .map(AuthorityRefusal::code)
                .collect()
        } else {
            first.into_iter().collect()
        };
        assert_eq!(all.first().copied(), first);
        all
    }
}

fn deny(job: &mut Job, cause: TombstoneCause) {
    job.denial = Some(Denial {
        tombstone: id("grave"),
        cause,
        by: DeniedBy::Code,
    });
}

/// What is spoilt, with the code that it gives at admission, claim, arming, release, adoption and
/// reading; an empty text means that it stops nothing there.
type Row = (&'static str, fn(&mut Job), [&'static str; 6]);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    ("nothing", |_| {}, ["", "", "", "", "", ""]),
    ("a cancellation", |j| j.cancelled = true,
        ["cancelled", "cancelled", "cancelled", "cancelled", "cancelled", ""]),
    ("a rotated Root", |j| j.world.root.epoch = j.world.root.epoch.next().unwrap(),
        ["root_rotated", "root_rotated", "root_rotated", "root_rotated", "root_rotated", "root_rotated"]),
    ("a removed owner", |j| j.owner_removed = true,
        ["owner_removed", "owner_removed", "owner_removed", "owner_removed", "owner_removed", "owner_removed"]),
    ("an ended session", |j| j.world.sessions[0].ended = Some(SessionEnd::LogOut),
        ["session_ended", "session_ended", "session_ended", "session_ended", "session_ended", "session_ended"]),
    ("another owner's session", |j| { j.session = "sb".to_owned(); j.binding.session = id("sb"); },
        ["session_of_other_owner", "session_of_other_owner", "session_of_other_owner",
         "session_of_other_owner", "session_of_other_owner", "session_of_other_owner"]),
    ("a closed Goal", |j| { j.binding.goal = id("other-goal"); j.world.goals[1].closed = true; },
        ["goal_closed", "goal_closed", "goal_closed", "goal_closed", "goal_closed", ""]),
    ("a revised Goal", |j| j.world.goals[0].revision = Revision::new(2).unwrap(),
        ["goal_revised", "goal_revised", "goal_revised", "goal_revised", "goal_revised", ""]),
    ("a tombstone of a revocation", |j| deny(j, TombstoneCause::Revocation),
        ["version_revoked", "version_revoked", "version_revoked", "version_revoked", "version_revoked", "version_revoked"]),
    ("a tombstone of a mismatch", |j| deny(j, TombstoneCause::DigestMismatch),
        ["version_quarantined", "version_quarantined", "version_quarantined", "version_quarantined",
         "version_quarantined", "version_quarantined"]),
    ("a revocation", |j| j.world.revoke(v1().content).unwrap(),
        ["version_revoked", "version_revoked", "version_revoked", "version_revoked", "version_revoked", "version_revoked"]),
    ("a quarantine", |j| j.world.quarantine(v1().content).unwrap(),
        ["version_quarantined", "version_quarantined", "version_quarantined", "version_quarantined",
         "version_quarantined", "version_quarantined"]),
    ("an uninstallation", |j| j.world.uninstall().unwrap(),
        ["package_uninstalled", "package_uninstalled", "package_uninstalled", "package_uninstalled",
         "package_uninstalled", "package_uninstalled"]),
    ("a pause", |j| j.world.pause().unwrap(),
        ["package_paused", "package_paused", "package_paused", "package_paused", "package_paused", ""]),
    ("an update", |j| j.world.update_to(&identity(PACKAGE, "2", "code 2")),
        ["version_not_active", "version_not_active", "version_not_active", "version_not_active", "", ""]),
    ("another closure", |j| j.binding.closure = digest("other"),
        ["version_differs", "version_differs", "version_differs", "version_differs", "version_differs", "version_differs"]),
    ("an unused approval", |j| {
        let approval = j.world.state.approvals.get_mut(&j.binding.approval).unwrap();
        approval.state = ApprovalState::Requested;
    }, ["approval_invalid", "approval_invalid", "approval_invalid", "approval_invalid", "approval_invalid", ""]),
    ("a deadline that is past", |j| j.world.pass_ms(10_000),
        ["", "deadline_past", "deadline_past", "deadline_past", "deadline_past", ""]),
    ("a lease that is past", |j| { j.world.pass_ms(1); j.lease = Deadline { boot: BOOT, boottime_ns: 0 }; },
        ["", "", "lease_past", "lease_past", "lease_past", ""]),
    ("another boot", |j| j.world.now.boot = BootId::from_bytes([9; 16]),
        ["session_expired", "session_expired", "session_expired", "session_expired", "session_expired", "session_expired"]),
];

#[test]
fn each_fact_stops_a_job_where_the_design_says_and_nowhere_else() {
    for (name, spoil, expected) in TABLE {
        for (stage, expected) in Stage::ALL.into_iter().zip(expected) {
            let mut job = Job::new();
            spoil(&mut job);
            let first = job.codes(stage).first().copied().unwrap_or_default();
            assert_eq!(first, *expected, "{name} at {stage}");
        }
    }
}

#[test]
fn a_pause_stops_what_was_released_for_good_although_the_package_was_resumed() {
    let mut job = Job::new();
    let review = job.binding.review.clone();
    job.world.pause().unwrap();
    job.world
        .give(GivingAction::Resume, &v1(), &review)
        .unwrap();
    assert_eq!(job.codes(Stage::Adoption), ["package_paused"]);
    assert!(job.codes(Stage::Reading).is_empty());
    job.binding.pointer_generation = None;
    assert!(
        job.codes(Stage::Claim).is_empty(),
        "a queued task may start after the resumption"
    );
    job.binding.pointer_generation = Some(job.world.state.pointer.generation);
    assert!(
        job.codes(Stage::Adoption).is_empty(),
        "what started after it may end"
    );
}

#[test]
fn a_pointer_that_moved_between_claim_and_release_stops_the_launch() {
    let mut job = Job::new();
    job.world.state.pointer.generation = job.world.state.pointer.generation.next().unwrap();
    assert_eq!(job.codes(Stage::Arming), ["pointer_moved"]);
    assert_eq!(job.codes(Stage::Release), ["pointer_moved"]);
    assert!(job.codes(Stage::Adoption).is_empty());
}

#[test]
fn output_from_before_an_uninstallation_stays_unread_when_the_same_bytes_come_back() {
    let mut job = Job::new();
    job.world.uninstall().unwrap();
    job.world.activate_first(&v1());
    assert_eq!(job.codes(Stage::Reading), ["package_uninstalled"]);
    assert_eq!(job.codes(Stage::Adoption), ["package_uninstalled"]);
}

#[test]
fn a_launch_needs_the_goal_of_the_package_to_be_open_and_a_result_does_not() {
    let mut job = Job::new();
    job.binding.goal = id("other-goal");
    job.world.goals[0].closed = true;
    assert_eq!(job.codes(Stage::Claim), ["package_goal_closed"]);
    assert!(job.codes(Stage::Adoption).is_empty());
}

#[test]
fn a_reading_names_every_reason() {
    let mut job = Job::new();
    job.world.pass_ms(300 * HOUR_MS);
    job.world.root.epoch = Epoch::new(2).unwrap();
    deny(&mut job, TombstoneCause::Revocation);
    let codes = job.codes(Stage::Reading);
    assert_eq!(codes, ["root_rotated", "root_rotated", "version_revoked"]);
}

#[test]
fn a_binding_names_the_first_field_that_differs() {
    let job = Job::new();
    let stored = &job.binding;
    let presented: Vec<Binding> = vec![
        Binding {
            owner: id("bob"),
            ..stored.clone()
        },
        Binding {
            fence: Fence::new(2),
            ..stored.clone()
        },
        Binding {
            first_deadline: Some(Deadline::after(&job.world.now, 1)),
            ..stored.clone()
        },
    ];
    let fields: Vec<_> = presented
        .iter()
        .map(|p| {
            p.check_against(stored, Stage::Release)
                .unwrap_err()
                .field()
                .as_str()
        })
        .collect();
    assert_eq!(fields, ["owner", "fence", "first_deadline"]);
    assert_eq!(stored.check_against(stored, Stage::Release), Ok(()));
    let early = Binding {
        attempt: None,
        ..stored.clone()
    };
    assert_eq!(early.check_complete(Stage::Admission), Ok(()));
    let lacks = early.check_against(stored, Stage::Claim);
    let expected = BindingRefusal::Lacks {
        stage: Stage::Claim,
        field: BindingField::Attempt,
    };
    assert_eq!(lacks, Err(expected));
}

#[test]
fn the_binding_is_the_list_of_the_design() {
    let names: Vec<_> = BindingField::ALL
        .iter()
        .map(|field| field.as_str())
        .collect();
    let listed = "owner root root_epoch session goal goal_revision task attempt lease fence \
        capability package package_version content authority dependency review approval \
        pointer_generation profile closure policy input output_slot priority first_deadline";
    assert_eq!(names, listed.split_whitespace().collect::<Vec<_>>());
    let entries = Job::new().binding.entries();
    assert_eq!(entries.len(), names.len());
    assert!(entries.iter().all(|(_, text)| text.is_some()));
}

#[test]
fn a_reserved_package_runs_by_its_own_capability_and_path_alone() {
    let world = World::new(PACKAGE);
    let check = |package: &str, capability: &str, path| {
        check_execution(&world.policy, &id(package), &id(capability), path)
            .map_err(ExecutionRefusal::code)
    };
    use ExecutionPath::{Generic, Local, NativeJob};
    assert_eq!(check("fixed.tool", "work.fixed.v1", NativeJob), Ok(()));
    let generic = Err("fixed_identity_generic_execution");
    assert_eq!(check("fixed.tool", "work.fixed.v1", Generic), generic);
    assert_eq!(check("fixed.tool", "work.fixed.v1", Local), generic);
    assert_eq!(
        check("fixed.tool", "pack.fixed.tool.run.v1", NativeJob),
        generic
    );
    assert_eq!(check(PACKAGE, "pack.local.tool.run.v1", Generic), Ok(()));
    assert_eq!(
        check(PACKAGE, "pack.local.tool.run.v1", Local),
        Err("local_execution")
    );
    assert_eq!(
        check(PACKAGE, "work.fixed.v1", NativeJob),
        Err("capability_shadowed")
    );
    let other = Err("capability_of_other_package");
    assert_eq!(check(PACKAGE, "pack.local.other.run.v1", NativeJob), other);
    assert_eq!(check("local", "pack.local.tool.run.v1", NativeJob), other);
}
