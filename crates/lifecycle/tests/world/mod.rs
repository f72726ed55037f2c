//! A deployment in memory: what the board would keep, for tests of the machine.

#![allow(dead_code, reason = "each test file uses a part of it")]

use lazaret_contract::digest::Sha256Digest;
use lazaret_lifecycle::*;

pub const HOUR_MS: u64 = 3_600_000;
pub const BOOT: BootId = BootId::from_bytes([7; 16]);

pub fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

pub fn digest(text: &str) -> Sha256Digest {
    Sha256Digest::of(text.as_bytes())
}

/// The version `name` of the package, with code of its own unless another is named.
pub fn identity(package: &str, name: &str, code: &str) -> VersionIdentity {
    VersionIdentity {
        package: id(package),
        version: id(name),
        content: digest(&format!("{package} {name} {code}")),
        authority: digest("no authority"),
        dependency: digest("profile, closure, policy"),
        code: digest(code),
    }
}

pub struct World {
    pub state: PackageState,
    pub tombstones: Vec<Tombstone>,
    pub policy: Policy,
    pub root: Root,
    pub sessions: Vec<Session>,
    pub goals: Vec<Goal>,
    pub now: Now,
    pub events: Vec<Event>,
    ids: u32,
}

impl World {
    pub fn new(package: &str) -> Self {
        let now = Now {
            boot: BOOT,
            boottime_ns: 1_000,
            unix_ms: 1_700_000_000_000,
        };
        let session = |name: &str, owner: &str| Session {
            id: id(name),
            owner: id(owner),
            root_epoch: Epoch::FIRST,
            idle_deadline: Deadline::after(&now, 100 * HOUR_MS),
            absolute_deadline: Deadline::after(&now, 200 * HOUR_MS),
            ended: None,
        };
        let goal = |name: &str, owner: &str| Goal {
            id: id(name),
            owner: id(owner),
            revision: Revision::FIRST,
            closed: false,
        };
        Self {
            state: PackageState::new(id("alice"), id(package)),
            tombstones: Vec::new(),
            policy: Policy {
                two_people: false,
                answer_ms_max: HOUR_MS,
                lifetime_ms_max: HOUR_MS,
                fixed: vec![FixedIdentity {
                    package: id("fixed.tool"),
                    content: identity("fixed.tool", "1", "fixed code").content,
                    capability: id("work.fixed.v1"),
                }],
            },
            root: Root {
                id: id("root"),
                epoch: Epoch::FIRST,
            },
            sessions: vec![session("sa", "alice"), session("sb", "bob")],
            goals: vec![
                goal("goal", "alice"),
                goal("other-goal", "alice"),
                goal("bobs", "bob"),
            ],
            now,
            events: Vec::new(),
            ids: 0,
        }
    }

    pub fn fresh<T: std::str::FromStr<Err: std::fmt::Debug>>(&mut self, prefix: &str) -> T {
        self.ids += 1;
        id(&format!("{prefix}{}", self.ids))
    }

    pub fn named(&self) -> Named {
        self.named_for("goal")
    }

    pub fn named_for(&self, goal: &str) -> Named {
        Named {
            goal: id(goal),
            goal_revision: Revision::FIRST,
            generation: self.state.pointer.generation,
        }
    }

    /// What the machine says, with its code; accepted changes are made.
    pub fn run(&mut self, request: Request) -> Result<(), &'static str> {
        self.run_as("alice", "sa", request)
    }

    pub fn run_as(
        &mut self,
        owner: &str,
        session: &str,
        request: Request,
    ) -> Result<(), &'static str> {
        let command = Command {
            actor: Actor {
                owner: id(owner),
                session: id(session),
            },
            request,
        };
        let goal = goal_of(&command.request).cloned();
        let decision = {
            let context = Context {
                now: &self.now,
                root: &self.root,
                session: self.sessions.iter().find(|s| s.id == command.actor.session),
                goal: self.goals.iter().find(|g| Some(&g.id) == goal.as_ref()),
                tombstones: &self.tombstones,
                policy: &self.policy,
            };
            decide(&self.state, &context, &command)
        };
        self.take(decision)
    }

    pub fn quarantine(&mut self, content: Sha256Digest) -> Result<(), &'static str> {
        let found = Quarantine {
            content,
            observed: Some(digest("flipped")),
            tombstone: self.fresh("grave"),
            reason: id("one byte differs"),
        };
        let decision = {
            let context = Context {
                now: &self.now,
                root: &self.root,
                session: None,
                goal: None,
                tombstones: &self.tombstones,
                policy: &self.policy,
            };
            quarantine(&self.state, &context, &found)
        };
        self.take(decision)
    }

    /// What every decision promises is checked here, for every test.
    pub fn take(&mut self, decision: Decision) -> Result<(), &'static str> {
        let before = self.state.pointer.generation;
        let event = decision.event;
        assert_eq!(event.generation_before, before);
        let result = match decision.result {
            Err(refusal) => {
                assert_eq!(event.outcome, Outcome::Refused(refusal.clone()));
                assert_eq!(
                    event.generation_after, before,
                    "a refusal moved the pointer"
                );
                Err(refusal.code())
            }
            Ok(changes) => {
                assert_eq!(event.outcome, Outcome::Accepted);
                assert!(!changes.is_empty(), "an accepted request changes something");
                for change in &changes {
                    self.store(change);
                }
                assert_eq!(event.generation_after, self.state.pointer.generation);
                assert_eq!(event.standing_after, self.state.pointer.standing);
                let moved = changes.iter().any(|c| matches!(c, Change::SetPointer(_)));
                let step = self.state.pointer.generation.get() - before.get();
                assert_eq!(
                    step,
                    u64::from(moved),
                    "one change of the pointer, one generation"
                );
                Ok(())
            }
        };
        self.events.push(event);
        result
    }

    fn store(&mut self, change: &Change) {
        match change {
            Change::InsertReview(review) => {
                assert!(
                    !self.state.reviews.contains_key(&review.id),
                    "a review never changes"
                );
            }
            Change::InsertApproval(approval) => {
                assert!(!self.state.approvals.contains_key(&approval.id));
            }
            Change::InsertTombstone(tombstone) => self.tombstones.push(tombstone.clone()),
            _ => {}
        }
        self.state.apply(change);
    }

    pub fn install(&mut self, identity: &VersionIdentity) -> Result<(), &'static str> {
        let package = &identity.package;
        let capability = match self.policy.fixed_for(package) {
            Some(fixed) => fixed.capability.clone(),
            None => id(&format!("pack.{package}.run.v1")),
        };
        let new = NewVersion {
            named: self.named(),
            identity: identity.clone(),
            runtime: runtime(),
            capability,
            provenance: Provenance::UnsignedLocal,
        };
        self.run(Request::Install(new))
    }

    pub fn review(
        &mut self,
        identity: &VersionIdentity,
        kind: ReviewKind,
    ) -> Result<ReviewId, &'static str> {
        let review: ReviewId = self.fresh("review");
        let new = NewReview {
            named: self.named(),
            id: review.clone(),
            shown: identity.clone(),
            kind,
            unsigned_acknowledged: true,
        };
        self.run(Request::Review(new)).map(|()| review)
    }

    /// The true difference from what the pointer points at.
    pub fn delta_to(&self, to: &VersionIdentity) -> ReviewKind {
        let from = self.state.pointer.target.as_ref().unwrap().content;
        let known = &self.state.versions[&from].identity;
        ReviewKind::Delta(Difference {
            from,
            shown: digest("the difference"),
            code_changed: known.code != to.code,
            schemas_changed: false,
            resources_changed: false,
            authority_changed: known.authority != to.authority,
            authority_widened: false,
        })
    }

    pub fn ask(
        &mut self,
        action: GivingAction,
        identity: &VersionIdentity,
        review: &ReviewId,
    ) -> Result<ApprovalId, &'static str> {
        let approval: ApprovalId = self.fresh("approval");
        let new = NewApproval {
            named: self.named(),
            id: approval.clone(),
            action,
            shown: identity.clone(),
            review: review.clone(),
            answer_ms: HOUR_MS,
        };
        self.run(Request::Ask(new)).map(|()| approval)
    }

    pub fn approve(&mut self, approval: &ApprovalId) -> Result<(), &'static str> {
        let answer = self.answer(approval);
        self.run(Request::Approve(answer))
    }

    pub fn answer(&self, approval: &ApprovalId) -> Answer {
        Answer {
            named: self.named(),
            approval: approval.clone(),
            shown: self.state.approvals[approval].identity.clone(),
            lifetime_ms: HOUR_MS,
            wider_acknowledged: false,
        }
    }

    pub fn using(&self, approval: &ApprovalId, content: Sha256Digest) -> Use {
        Use {
            named: self.named(),
            approval: approval.clone(),
            content,
        }
    }

    /// Asks for, grants and uses an approval.
    pub fn give(
        &mut self,
        action: GivingAction,
        identity: &VersionIdentity,
        review: &ReviewId,
    ) -> Result<(), &'static str> {
        let approval = self.ask(action, identity, review)?;
        self.approve(&approval)?;
        let using = self.using(&approval, identity.content);
        self.run(match action {
            GivingAction::Activate => Request::Activate(using),
            GivingAction::Update => Request::Update(using),
            GivingAction::Resume => Request::Resume(using),
            GivingAction::Rollback => Request::Rollback(using),
        })
    }

    /// Installs, reviews, approves and activates a first version.
    pub fn activate_first(&mut self, identity: &VersionIdentity) {
        self.install(identity).unwrap();
        let review = self.review(identity, ReviewKind::Full).unwrap();
        self.give(GivingAction::Activate, identity, &review)
            .unwrap();
    }

    /// Installs, reviews the difference, approves and updates.
    pub fn update_to(&mut self, identity: &VersionIdentity) {
        if !self.state.versions.contains_key(&identity.content) {
            self.install(identity).unwrap();
        }
        let delta = self.delta_to(identity);
        let review = self.review(identity, delta).unwrap();
        self.give(GivingAction::Update, identity, &review).unwrap();
    }

    pub fn withdrawal(&self) -> Withdrawal {
        Withdrawal {
            generation: None,
            reason: id("the operator says so"),
        }
    }

    pub fn pause(&mut self) -> Result<(), &'static str> {
        let withdrawal = self.withdrawal();
        self.run(Request::Pause(withdrawal))
    }

    pub fn uninstall(&mut self) -> Result<(), &'static str> {
        let withdrawal = self.withdrawal();
        self.run(Request::Uninstall(withdrawal))
    }

    pub fn revoke(&mut self, content: Sha256Digest) -> Result<(), &'static str> {
        let tombstone = self.fresh("grave");
        self.run(Request::Revoke(Revocation {
            generation: None,
            content,
            tombstone,
            reason: id("the operator says so"),
        }))
    }

    pub fn pass_ms(&mut self, ms: u64) {
        self.now.boottime_ns += ms * 1_000_000;
    }
}

pub fn runtime() -> RuntimePin {
    RuntimePin {
        profile: id("profile-v1"),
        closure: digest("closure"),
        policy: digest("policy"),
    }
}

/// The Goal that a request names: the row that the board would look up.
pub fn goal_of(request: &Request) -> Option<&GoalId> {
    match request {
        Request::Install(new) => Some(&new.named.goal),
        Request::Review(new) => Some(&new.named.goal),
        Request::Ask(new) => Some(&new.named.goal),
        Request::Approve(answer) => Some(&answer.named.goal),
        Request::Activate(using)
        | Request::Update(using)
        | Request::Resume(using)
        | Request::Rollback(using) => Some(&using.named.goal),
        Request::Deny(_) | Request::Pause(_) | Request::Revoke(_) | Request::Uninstall(_) => None,
    }
}
