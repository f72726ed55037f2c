//! The life of a package in sentences, and every refusal by its code.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

use std::collections::BTreeSet;

use lazaret_lifecycle::*;
use world::{HOUR_MS, World, digest, id, identity};

const PACKAGE: &str = "local.tool";

fn v(name: &str) -> VersionIdentity {
    identity(PACKAGE, name, &format!("code {name}"))
}

/// v1 was in force, v2 is.
fn updated() -> World {
    let mut world = World::new(PACKAGE);
    world.activate_first(&v("1"));
    world.update_to(&v("2"));
    world
}

fn state(world: &World, name: &str) -> VersionState {
    world.state.versions[&v(name).content].state
}

#[test]
fn a_version_goes_from_installed_to_active_by_review_and_approval() {
    let mut world = World::new(PACKAGE);
    world.install(&v("1")).unwrap();
    assert_eq!(state(&world, "1"), VersionState::Installed);
    let review = world.review(&v("1"), ReviewKind::Full).unwrap();
    assert_eq!(state(&world, "1"), VersionState::Reviewed);
    let approval = world.ask(GivingAction::Activate, &v("1"), &review).unwrap();
    world.approve(&approval).unwrap();
    assert_eq!(state(&world, "1"), VersionState::Approved);
    let using = world.using(&approval, v("1").content);
    world.run(Request::Activate(using)).unwrap();
    assert_eq!(state(&world, "1"), VersionState::Active);
    let target = world.state.pointer.in_force().unwrap();
    assert_eq!((target.content, &target.review), (v("1").content, &review));
    assert_eq!(world.state.pointer.generation, Generation::FIRST);
}

#[test]
fn an_update_supersedes_and_going_back_from_a_healthy_version_is_an_update() {
    let mut world = updated();
    assert_eq!(state(&world, "1"), VersionState::Superseded);
    world.update_to(&v("1"));
    assert_eq!(state(&world, "1"), VersionState::Active);
    assert_eq!(state(&world, "2"), VersionState::Superseded);
    assert_eq!(world.state.pointer.generation.get(), 3);
}

#[test]
fn the_same_bytes_are_reviewed_anew_for_another_goal_and_the_pointer_keeps_its_own_until_then() {
    let mut world = World::new(PACKAGE);
    world.activate_first(&v("1"));
    let first = world.state.pointer.target.clone().unwrap();
    let kind = world.delta_to(&v("1"));
    let new = NewReview {
        named: world.named_for("other-goal"),
        id: id("second"),
        shown: v("1"),
        kind,
        unsigned_acknowledged: true,
    };
    world.run(Request::Review(new)).unwrap();
    assert_eq!(
        world.state.versions[&v("1").content].newest_review,
        Some(id("second"))
    );
    assert_eq!(
        world.state.pointer.target,
        Some(first),
        "metadata follow, the pointer does not"
    );
    assert_eq!(state(&world, "1"), VersionState::Active);
    let review = id("second");
    world.give(GivingAction::Update, &v("1"), &review).unwrap();
    assert_eq!(world.state.pointer.target.as_ref().unwrap().review, review);
    assert_eq!(state(&world, "1"), VersionState::Active);
}

#[test]
fn a_paused_package_goes_on_by_a_fresh_approval_or_is_updated() {
    let mut world = updated();
    world.pause().unwrap();
    assert_eq!(state(&world, "2"), VersionState::Paused);
    let review = world.state.pointer.target.as_ref().unwrap().review.clone();
    world.give(GivingAction::Resume, &v("2"), &review).unwrap();
    assert_eq!(state(&world, "2"), VersionState::Active);
    assert_eq!(world.state.pointer.paused_at.map(Generation::get), Some(3));
    let mut world = updated();
    world.pause().unwrap();
    world.update_to(&v("3"));
    assert_eq!(state(&world, "2"), VersionState::Superseded);
    assert_eq!(world.state.pointer.standing, Standing::Active);
}

#[test]
fn a_quarantined_version_gives_way_to_a_prior_one_by_a_fresh_review_and_stays_denied() {
    let mut world = updated();
    world.quarantine(v("2").content).unwrap();
    assert_eq!(world.state.pointer.standing, Standing::Quarantined);
    assert_eq!(world.state.pointer.in_force(), None);
    let stale = world.state.versions[&v("1").content]
        .newest_review
        .clone()
        .unwrap();
    assert_eq!(
        world.ask(GivingAction::Rollback, &v("1"), &stale),
        Err("review_not_fresh")
    );
    let review = world.review(&v("1"), ReviewKind::Full).unwrap();
    world
        .give(GivingAction::Rollback, &v("1"), &review)
        .unwrap();
    assert_eq!(state(&world, "1"), VersionState::Active);
    assert_eq!(state(&world, "2"), VersionState::Quarantined);
    assert_eq!(world.review(&v("2"), ReviewKind::Full), Err("tombstoned"));
}

#[test]
fn no_rollback_leads_out_of_a_revocation_and_a_new_version_does() {
    let mut world = updated();
    world.revoke(v("2").content).unwrap();
    let review = world.review(&v("1"), ReviewKind::Full).unwrap();
    for action in [GivingAction::Rollback, GivingAction::Activate] {
        let refused = world.ask(action, &v("1"), &review);
        assert_eq!(refused, Err("rollback_only_from_quarantine"), "{action:?}");
    }
    assert_eq!(
        world.ask(GivingAction::Update, &v("1"), &review),
        Err("nothing_in_force")
    );
    world.activate_first(&v("3"));
    assert_eq!(state(&world, "3"), VersionState::Active);
}

#[test]
fn a_revocation_after_a_quarantine_shuts_the_way_back() {
    let mut world = updated();
    world.quarantine(v("2").content).unwrap();
    world.revoke(v("2").content).unwrap();
    assert_eq!(world.state.pointer.standing, Standing::Revoked);
    let review = world.review(&v("1"), ReviewKind::Full).unwrap();
    let refused = world.ask(GivingAction::Rollback, &v("1"), &review);
    assert_eq!(refused, Err("rollback_only_from_quarantine"));
}

#[test]
fn renaming_does_not_escape_a_tombstone() {
    let mut world = World::new(PACKAGE);
    world.activate_first(&v("1"));
    world.revoke(v("1").content).unwrap();
    let same_code = identity(PACKAGE, "9", "code 1");
    assert_eq!(world.install(&same_code), Err("tombstoned"));
    let mut renamed = World::new("local.other-name");
    renamed.tombstones = world.tombstones.clone();
    assert_eq!(
        renamed.install(&identity("local.other-name", "1", "code 1")),
        Err("tombstoned")
    );
    let same_name = VersionIdentity {
        content: digest("new"),
        code: digest("new"),
        ..v("1")
    };
    let mut elsewhere = World::new(PACKAGE);
    elsewhere.tombstones = world.tombstones.clone();
    assert_eq!(elsewhere.install(&same_name), Err("tombstoned"));
}

#[test]
fn a_tombstone_of_one_owner_takes_the_version_from_the_others() {
    let mut alice = updated();
    alice.revoke(v("2").content).unwrap();
    let tombstone = alice.tombstones[0].clone();
    let mut bob = updated();
    bob.tombstones = alice.tombstones.clone();
    let decision = {
        let context = Context {
            now: &bob.now,
            root: &bob.root,
            session: None,
            goal: None,
            tombstones: &bob.tombstones,
            policy: &bob.policy,
        };
        withdraw_denied(&bob.state, &context, &tombstone).unwrap()
    };
    assert_eq!(decision.event.action, Action::Withdraw);
    assert_eq!(
        (&decision.event.actor, &decision.event.reason),
        (&None, &None)
    );
    bob.take(decision).unwrap();
    assert_eq!(bob.state.pointer.standing, Standing::Revoked);
    let context = Context {
        now: &bob.now,
        root: &bob.root,
        session: None,
        goal: None,
        tombstones: &bob.tombstones,
        policy: &bob.policy,
    };
    assert_eq!(
        withdraw_denied(&bob.state, &context, &tombstone),
        None,
        "it happens once"
    );
}

#[test]
fn an_uninstalled_package_starts_again_from_installation() {
    let mut world = updated();
    world.uninstall().unwrap();
    assert_eq!(world.state.pointer.standing, Standing::Uninstalled);
    assert_eq!(state(&world, "1"), VersionState::Uninstalled);
    assert_eq!(
        world.review(&v("1"), ReviewKind::Full),
        Err("not_installed")
    );
    world.activate_first(&v("1"));
    assert_eq!(state(&world, "2"), VersionState::Uninstalled);
    assert_eq!(world.state.reviews.len(), 3, "history stays");
}

#[test]
fn the_reserved_package_lives_once_and_pauses_like_any_other() {
    let fixed = identity("fixed.tool", "1", "fixed code");
    let mut world = World::new("fixed.tool");
    let other = identity("fixed.tool", "2", "other code");
    assert_eq!(world.install(&other), Err("fixed_identity_other_bytes"));
    world.activate_first(&fixed);
    world.pause().unwrap();
    let review = world.state.pointer.target.as_ref().unwrap().review.clone();
    world.give(GivingAction::Resume, &fixed, &review).unwrap();
    assert_eq!(world.install(&other), Err("fixed_identity_other_bytes"));
}

#[test]
fn wider_authority_needs_a_yes_to_just_that() {
    let wider = VersionIdentity {
        authority: digest("wider"),
        ..v("2")
    };
    let mut world = World::new(PACKAGE);
    world.activate_first(&v("1"));
    world.install(&wider).unwrap();
    let ReviewKind::Delta(mut difference) = world.delta_to(&wider) else {
        unreachable!()
    };
    difference.authority_widened = true;
    let review = world.review(&wider, ReviewKind::Delta(difference)).unwrap();
    let approval = world.ask(GivingAction::Update, &wider, &review).unwrap();
    assert_eq!(
        world.approve(&approval),
        Err("wider_authority_not_acknowledged")
    );
    let answer = Answer {
        wider_acknowledged: true,
        ..world.answer(&approval)
    };
    world.run(Request::Approve(answer)).unwrap();
    let using = world.using(&approval, wider.content);
    world.run(Request::Update(using)).unwrap();
}

#[test]
fn where_two_people_are_asked_for_one_cannot_answer_and_the_other_can() {
    let mut world = World::new(PACKAGE);
    world.policy.two_people = true;
    world.install(&v("1")).unwrap();
    let review = world.review(&v("1"), ReviewKind::Full).unwrap();
    let approval = world.ask(GivingAction::Activate, &v("1"), &review).unwrap();
    assert_eq!(world.approve(&approval), Err("same_person"));
    let answer = world.answer(&approval);
    let stolen = world.run_as("bob", "sa", Request::Approve(answer.clone()));
    assert_eq!(stolen, Err("session_of_other_owner"));
    world.run_as("bob", "sb", Request::Approve(answer)).unwrap();
    let using = world.using(&approval, v("1").content);
    let foreign = world.run_as("bob", "sb", Request::Activate(using.clone()));
    assert_eq!(
        foreign,
        Err("session_of_other_owner"),
        "bob answers; he does not own"
    );
    world.run(Request::Activate(using)).unwrap();
}

#[test]
fn a_withdrawal_needs_no_goal_and_no_generation_but_a_session() {
    for step in [
        World::pause as fn(&mut World) -> _,
        World::uninstall,
        revoke_2,
    ] {
        let mut world = updated();
        world.goals.clear();
        step(&mut world).unwrap();
        let mut world = updated();
        world.root.epoch = world.root.epoch.next().unwrap();
        assert_eq!(step(&mut world), Err("root_rotated"));
    }
}

fn revoke_2(world: &mut World) -> Result<(), &'static str> {
    world.revoke(v("2").content)
}

#[test]
fn an_event_holds_what_a_receipt_binds_also_of_a_refusal() {
    let mut world = updated();
    let event = world.events.last().unwrap();
    assert_eq!(event.action, Action::Update);
    assert_eq!(event.version, Some(v("2")));
    assert_eq!(event.from, Some(v("1").content));
    assert_eq!(event.goal, Some((id("goal"), Revision::FIRST)));
    assert!(event.review.is_some() && event.approval.is_some());
    assert_eq!(
        (event.generation_before.get(), event.generation_after.get()),
        (1, 2)
    );
    let approval = event.approval.clone().unwrap();
    let using = world.using(&approval, v("2").content);
    assert_eq!(world.run(Request::Update(using)), Err("approval_used"));
    let event = world.events.last().unwrap();
    assert_eq!(event.outcome, Outcome::Refused(Refusal::ApprovalUsed));
    assert_eq!(event.approval, Some(approval));
    assert_eq!(event.version, Some(v("2")));
    world.quarantine(v("2").content).unwrap();
    let event = world.events.last().unwrap();
    assert_eq!((event.action, &event.actor), (Action::Quarantine, &None));
    assert!(event.tombstone.is_some());
}

type Provoke = fn() -> Result<(), &'static str>;

/// One way to each refusal of the machine. The test below fails on a code that has none.
const PROVOCATIONS: &[(&str, Provoke)] = &[
    ("generation_moved", || {
        let mut world = updated();
        let withdrawal = Withdrawal {
            generation: Some(Generation::FIRST),
            ..world.withdrawal()
        };
        world.run(Request::Pause(withdrawal))
    }),
    ("generation_exhausted", || {
        let mut world = updated();
        world.state.pointer.generation = Generation::new(i64::MAX.cast_unsigned()).unwrap();
        world.pause()
    }),
    ("other_package", || {
        World::new("local.other").install(&v("1"))
    }),
    ("version_unknown", || {
        World::new(PACKAGE).revoke(v("1").content)
    }),
    ("not_installed", || {
        let mut world = updated();
        world.uninstall().unwrap();
        world.review(&v("1"), ReviewKind::Full).map(drop)
    }),
    ("already_installed", || updated().install(&v("2"))),
    ("version_name_taken", || {
        updated().install(&identity(PACKAGE, "2", "other code"))
    }),
    ("digests_differ", || {
        let shown = VersionIdentity {
            authority: digest("other"),
            ..v("2")
        };
        updated().review(&shown, ReviewKind::Full).map(drop)
    }),
    ("tombstoned", || {
        let mut world = updated();
        world.revoke(v("2").content).unwrap();
        world.review(&v("2"), ReviewKind::Full).map(drop)
    }),
    ("fixed_identity_other_bytes", || {
        World::new("fixed.tool").install(&identity("fixed.tool", "1", "other code"))
    }),
    ("capability_reserved", || {
        install_as(PACKAGE, "work.fixed.v1")
    }),
    ("capability_not_derived", || {
        install_as(PACKAGE, "pack.local.other.run.v1")
    }),
    ("unsigned_not_acknowledged", || {
        let mut world = World::new(PACKAGE);
        world.install(&v("1")).unwrap();
        let new = NewReview {
            named: world.named(),
            id: id("r"),
            shown: v("1"),
            kind: ReviewKind::Full,
            unsigned_acknowledged: false,
        };
        world.run(Request::Review(new))
    }),
    ("review_unknown", || {
        updated()
            .ask(GivingAction::Update, &v("1"), &id("nowhere"))
            .map(drop)
    }),
    ("review_exists", || {
        let mut world = updated();
        let known = world.state.reviews.keys().next().unwrap().clone();
        let new = NewReview {
            named: world.named(),
            id: known,
            shown: v("1"),
            kind: ReviewKind::Full,
            unsigned_acknowledged: true,
        };
        world.run(Request::Review(new))
    }),
    ("review_not_newest", || {
        let mut world = World::new(PACKAGE);
        world.install(&v("1")).unwrap();
        let first = world.review(&v("1"), ReviewKind::Full).unwrap();
        world.review(&v("1"), ReviewKind::Full).unwrap();
        world.ask(GivingAction::Activate, &v("1"), &first).map(drop)
    }),
    ("review_not_fresh", || {
        let mut world = updated();
        let delta = world.delta_to(&v("1"));
        let review = world.review(&v("1"), delta).unwrap();
        world.quarantine(v("2").content).unwrap();
        world
            .ask(GivingAction::Rollback, &v("1"), &review)
            .map(drop)
    }),
    ("review_not_delta", || {
        let mut world = updated();
        let review = world.review(&v("1"), ReviewKind::Full).unwrap();
        world.ask(GivingAction::Update, &v("1"), &review).map(drop)
    }),
    ("delta_from_other_version", || {
        let mut world = updated();
        let ReviewKind::Delta(difference) = world.delta_to(&v("1")) else {
            unreachable!()
        };
        let wrong = Difference {
            from: v("1").content,
            ..difference
        };
        world.review(&v("1"), ReviewKind::Delta(wrong)).map(drop)
    }),
    ("delta_misstates", || {
        let mut world = updated();
        let ReviewKind::Delta(difference) = world.delta_to(&v("1")) else {
            unreachable!()
        };
        let wrong = Difference {
            code_changed: false,
            ..difference
        };
        world.review(&v("1"), ReviewKind::Delta(wrong)).map(drop)
    }),
    ("approval_unknown", || {
        let mut world = updated();
        let using = world.using(&id("nowhere"), v("2").content);
        world.run(Request::Update(using))
    }),
    ("approval_exists", || {
        let (mut world, approval) = asked();
        let review = world.state.approvals[&approval].review.clone();
        let new = NewApproval {
            named: world.named(),
            id: approval,
            action: GivingAction::Activate,
            shown: v("1"),
            review,
            answer_ms: 1,
        };
        world.run(Request::Ask(new))
    }),
    ("approval_answered", || {
        let (mut world, approval) = asked();
        world.approve(&approval).unwrap();
        world.approve(&approval)
    }),
    ("approval_not_granted", || {
        let (mut world, approval) = asked();
        let using = world.using(&approval, v("1").content);
        world.run(Request::Activate(using))
    }),
    ("approval_denied", || {
        let (mut world, approval) = asked();
        let decline = Decline {
            approval: approval.clone(),
            reason: id("no"),
        };
        world.run(Request::Deny(decline)).unwrap();
        let using = world.using(&approval, v("1").content);
        world.run(Request::Activate(using))
    }),
    ("approval_used", || {
        let mut world = updated();
        let approval = world
            .state
            .pointer
            .target
            .as_ref()
            .unwrap()
            .approval
            .clone();
        let using = world.using(&approval, v("2").content);
        world.run(Request::Update(using))
    }),
    ("approval_expired", || {
        let (mut world, approval) = asked();
        world.approve(&approval).unwrap();
        world.pass_ms(HOUR_MS);
        let using = world.using(&approval, v("1").content);
        world.run(Request::Activate(using))
    }),
    ("approval_for_other_action", || {
        let (mut world, approval) = asked();
        world.approve(&approval).unwrap();
        let using = world.using(&approval, v("1").content);
        world.run(Request::Resume(using))
    }),
    ("approval_for_other_version", || {
        let (mut world, approval) = asked();
        world.install(&v("2")).unwrap();
        let answer = Answer {
            shown: v("2"),
            ..world.answer(&approval)
        };
        world.run(Request::Approve(answer))
    }),
    ("approval_for_other_goal", || {
        let (mut world, approval) = asked();
        let answer = Answer {
            named: world.named_for("other-goal"),
            ..world.answer(&approval)
        };
        world.run(Request::Approve(answer))
    }),
    ("approval_for_other_generation", || {
        let mut world = updated();
        let delta = world.delta_to(&v("1"));
        let review = world.review(&v("1"), delta).unwrap();
        let approval = world.ask(GivingAction::Update, &v("1"), &review).unwrap();
        world.pause().unwrap();
        world.approve(&approval)
    }),
    ("lifetime_too_long", || {
        let (mut world, approval) = asked();
        let answer = Answer {
            lifetime_ms: HOUR_MS + 1,
            ..world.answer(&approval)
        };
        world.run(Request::Approve(answer))
    }),
    ("same_person", || {
        let (mut world, approval) = asked();
        world.policy.two_people = true;
        world.approve(&approval)
    }),
    ("wider_authority_not_acknowledged", || {
        let wider = VersionIdentity {
            authority: digest("wider"),
            ..v("2")
        };
        let mut world = World::new(PACKAGE);
        world.activate_first(&v("1"));
        world.install(&wider).unwrap();
        let ReviewKind::Delta(difference) = world.delta_to(&wider) else {
            unreachable!()
        };
        let delta = ReviewKind::Delta(Difference {
            authority_widened: true,
            ..difference
        });
        let review = world.review(&wider, delta).unwrap();
        let approval = world.ask(GivingAction::Update, &wider, &review).unwrap();
        world.approve(&approval)
    }),
    ("already_in_force", || {
        let mut world = updated();
        world.install(&v("3")).unwrap();
        let review = world.review(&v("3"), ReviewKind::Full).unwrap();
        world
            .ask(GivingAction::Activate, &v("3"), &review)
            .map(drop)
    }),
    ("nothing_in_force", || World::new(PACKAGE).pause()),
    ("already_paused", || {
        let mut world = updated();
        world.pause().unwrap();
        world.pause()
    }),
    ("not_paused", || {
        let mut world = updated();
        let review = world.state.pointer.target.as_ref().unwrap().review.clone();
        world.ask(GivingAction::Resume, &v("2"), &review).map(drop)
    }),
    ("other_version_in_force", || {
        let mut world = updated();
        world.pause().unwrap();
        let review = world.state.versions[&v("1").content]
            .newest_review
            .clone()
            .unwrap();
        world.ask(GivingAction::Resume, &v("1"), &review).map(drop)
    }),
    ("rollback_only_from_quarantine", || {
        let mut world = updated();
        let review = world.review(&v("1"), ReviewKind::Full).unwrap();
        world
            .ask(GivingAction::Rollback, &v("1"), &review)
            .map(drop)
    }),
    ("use_rollback", || {
        let mut world = updated();
        world.quarantine(v("2").content).unwrap();
        let review = world.review(&v("1"), ReviewKind::Full).unwrap();
        world
            .ask(GivingAction::Activate, &v("1"), &review)
            .map(drop)
    }),
    ("not_a_prior_version", || {
        let mut world = updated();
        world.quarantine(v("2").content).unwrap();
        world.install(&v("3")).unwrap();
        let review = world.review(&v("3"), ReviewKind::Full).unwrap();
        world
            .ask(GivingAction::Rollback, &v("3"), &review)
            .map(drop)
    }),
    ("already_revoked", || {
        let mut world = updated();
        world.revoke(v("2").content).unwrap();
        world.revoke(v("2").content)
    }),
    ("already_quarantined", || {
        let mut world = updated();
        world.quarantine(v("2").content).unwrap();
        world.quarantine(v("2").content)
    }),
    ("nothing_installed", || World::new(PACKAGE).uninstall()),
];

fn asked() -> (World, ApprovalId) {
    let mut world = World::new(PACKAGE);
    world.install(&v("1")).unwrap();
    let review = world.review(&v("1"), ReviewKind::Full).unwrap();
    let approval = world.ask(GivingAction::Activate, &v("1"), &review).unwrap();
    (world, approval)
}

fn install_as(package: &str, capability: &str) -> Result<(), &'static str> {
    let mut world = World::new(package);
    let new = NewVersion {
        named: world.named(),
        identity: identity(package, "1", "code 1"),
        runtime: world::runtime(),
        capability: id(capability),
        provenance: Provenance::UnsignedLocal,
    };
    world.run(Request::Install(new))
}

#[test]
fn every_refusal_is_reached_and_says_its_code() {
    for (code, provoke) in PROVOCATIONS {
        assert_eq!(provoke(), Err(*code));
    }
    let reached: BTreeSet<&str> = PROVOCATIONS.iter().map(|(code, _)| *code).collect();
    let all: BTreeSet<&str> = Refusal::OWN_CODES.iter().copied().collect();
    assert_eq!(reached, all);
    assert_eq!(all.len(), Refusal::OWN_CODES.len(), "codes are distinct");
}

#[test]
fn a_goal_that_is_closed_revised_unknown_or_anothers_gives_no_authority() {
    let ask = |change: fn(&mut World)| {
        let mut world = World::new(PACKAGE);
        change(&mut world);
        world.install(&v("1"))
    };
    assert_eq!(ask(|w| w.goals[0].closed = true), Err("goal_closed"));
    let second = Revision::FIRST.next().unwrap();
    let mut world = World::new(PACKAGE);
    world.goals[0].revision = second;
    assert_eq!(world.install(&v("1")), Err("goal_revised"));
    assert_eq!(ask(|w| w.goals.clear()), Err("goal_unknown"));
    assert_eq!(ask(|w| w.goals[0].owner = id("bob")), Err("goal_unknown"));
}

#[test]
fn a_session_that_is_ended_or_past_gives_no_authority() {
    let mut world = World::new(PACKAGE);
    world.sessions[0].ended = Some(SessionEnd::LogOut);
    assert_eq!(world.install(&v("1")), Err("session_ended"));
    let mut world = World::new(PACKAGE);
    world.pass_ms(100 * HOUR_MS);
    assert_eq!(world.install(&v("1")), Err("session_idle"));
    let mut world = World::new(PACKAGE);
    world.now.unix_ms += 1_000 * i64::try_from(HOUR_MS).unwrap();
    assert_eq!(
        world.install(&v("1")),
        Ok(()),
        "a wall clock decides nothing"
    );
}
