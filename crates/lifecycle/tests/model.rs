//! The machine against a model that says in plain conditions what is allowed.
//!
//! The model keeps no rows: a standing, which version is in force, and for each approval what it
//! is for. It answers yes or no; the machine must answer the same, whatever its order of checks,
//! and the promises of DESIGN section 5 must hold after every step.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

use lazaret_lifecycle::*;
use proptest::prelude::*;
use world::{HOUR_MS, World, identity};

const PACKAGE: &str = "local.tool";

/// Five versions: the fourth has the code of the first, the fifth the name of the second.
fn universe() -> [VersionIdentity; 5] {
    [
        identity(PACKAGE, "1", "code a"),
        identity(PACKAGE, "2", "code b"),
        identity(PACKAGE, "3", "code c"),
        identity(PACKAGE, "4", "code a"),
        identity(PACKAGE, "2", "code e"),
    ]
}

/// What is wrong with the use of an approval.
#[derive(Debug, Clone, Copy)]
enum Spoil {
    Nothing,
    EarlierGeneration,
    LaterGeneration,
    OtherGoal,
}

#[derive(Debug, Clone)]
enum Step {
    Install(usize),
    ReviewFull(usize),
    ReviewDelta(usize),
    Ask(GivingAction, usize, usize),
    /// For the version that the review is of.
    AskByReview(GivingAction, usize),
    Approve(usize),
    Deny(usize),
    /// With any action and any version.
    Use(GivingAction, usize, usize),
    /// For what it is for.
    UseAsMeant(usize, Spoil),
    /// Asks for and grants, and leaves it to be used.
    Prepare(GivingAction, usize),
    /// Asks for, grants and uses in one go, so that deep states are reached.
    Give(GivingAction, usize),
    Pause,
    Revoke(usize),
    Quarantine(usize),
    Uninstall,
    PassHalfALifetime,
}

fn step() -> impl Strategy<Value = Step> {
    let version = 0..5_usize;
    let action = prop::sample::select(GivingAction::ALL.to_vec());
    // Counted from the newest: old rows are of little interest, and are tried too.
    let row = prop_oneof![5 => 0..3_usize, 1 => 0..64_usize];
    let spoil = prop::sample::select(vec![
        Spoil::Nothing,
        Spoil::Nothing,
        Spoil::Nothing,
        Spoil::EarlierGeneration,
        Spoil::LaterGeneration,
        Spoil::OtherGoal,
    ]);
    prop_oneof![
        3 => version.clone().prop_map(Step::Install),
        2 => version.clone().prop_map(Step::ReviewFull),
        2 => version.clone().prop_map(Step::ReviewDelta),
        3 => (action.clone(), version.clone(), row.clone()).prop_map(|(a, v, r)| Step::Ask(a, v, r)),
        3 => (action.clone(), row.clone()).prop_map(|(a, r)| Step::AskByReview(a, r)),
        3 => row.clone().prop_map(Step::Approve),
        1 => row.clone().prop_map(Step::Deny),
        2 => (action.clone(), row.clone(), version.clone()).prop_map(|(a, r, v)| Step::Use(a, r, v)),
        5 => (row, spoil).prop_map(|(r, s)| Step::UseAsMeant(r, s)),
        6 => (action.clone(), version.clone()).prop_map(|(a, v)| Step::Prepare(a, v)),
        6 => (action, version.clone()).prop_map(|(a, v)| Step::Give(a, v)),
        2 => Just(Step::Pause),
        1 => version.clone().prop_map(Step::Revoke),
        1 => version.prop_map(Step::Quarantine),
        1 => Just(Step::Uninstall),
        3 => Just(Step::PassHalfALifetime),
    ]
}

#[derive(Debug, Clone, Default)]
struct ModelVersion {
    installed: bool,
    known: bool,
    prior: bool,
    newest_review: Option<usize>,
    buried: Option<TombstoneCause>,
}

#[derive(Debug, Clone)]
struct ModelReview {
    id: ReviewId,
    version: usize,
    delta_from: Option<usize>,
    generation: u64,
}

#[derive(Debug, Clone)]
struct ModelApproval {
    id: ApprovalId,
    action: GivingAction,
    version: usize,
    review: usize,
    generation: u64,
    answer_until: u64,
    granted_until: Option<u64>,
    answered: bool,
    used: bool,
}

struct Model {
    generation: u64,
    standing: Standing,
    target: Option<(usize, usize)>,
    versions: [ModelVersion; 5],
    reviews: Vec<ModelReview>,
    approvals: Vec<ModelApproval>,
    graves: Vec<(usize, TombstoneCause)>,
    now: u64,
}

impl Model {
    fn new() -> Self {
        Self {
            generation: 0,
            standing: Standing::Vacant,
            target: None,
            versions: Default::default(),
            reviews: Vec::new(),
            approvals: Vec::new(),
            graves: Vec::new(),
            now: 0,
        }
    }

    fn in_force(&self) -> Option<(usize, usize)> {
        let there = matches!(self.standing, Standing::Active | Standing::Paused);
        self.target.filter(|_| there)
    }

    fn is_denied(&self, version: usize) -> bool {
        let all = universe();
        let me = &all[version];
        self.graves.iter().any(|(grave, _)| {
            let it = &all[*grave];
            it.content == me.content || it.code == me.code || it.version == me.version
        })
    }

    fn may_install(&self, version: usize) -> bool {
        let all = universe();
        let name_is_free = (0..5).all(|other| {
            other == version
                || !self.versions[other].known
                || all[other].version != all[version].version
        });
        !self.versions[version].installed && !self.is_denied(version) && name_is_free
    }

    fn may_review(&self, version: usize) -> bool {
        self.versions[version].installed && !self.is_denied(version)
    }

    fn is_possible(&self, action: GivingAction, version: usize, review: usize) -> bool {
        let Some(looked_at) = self.reviews.get(review) else {
            return false;
        };
        let it = &self.versions[version];
        let fit = looked_at.version == version && it.installed && !self.is_denied(version);
        let newest = it.newest_review == Some(review);
        let fresh = looked_at.generation == self.generation;
        let prior = it.prior;
        fit && match action {
            GivingAction::Activate => {
                let from_nothing =
                    matches!(self.standing, Standing::Vacant | Standing::Uninstalled);
                let onwards = matches!(self.standing, Standing::Revoked | Standing::Quarantined);
                newest && fresh && (from_nothing || onwards && !prior)
            }
            GivingAction::Update => self.in_force().is_some_and(|(target, by)| {
                newest && looked_at.delta_from == Some(target) && by != review
            }),
            GivingAction::Resume => {
                self.standing == Standing::Paused && self.target == Some((version, review))
            }
            GivingAction::Rollback => {
                self.standing == Standing::Quarantined && newest && fresh && prior
            }
        }
    }

    fn may_approve(&self, approval: &ModelApproval) -> bool {
        !approval.answered
            && self.now < approval.answer_until
            && approval.generation == self.generation
            && self.is_possible(approval.action, approval.version, approval.review)
    }

    /// No authority without an approval that is granted, unexpired, unused, for that very action,
    /// those digests and this state of the pointer.
    fn may_use(&self, action: GivingAction, approval: &ModelApproval, version: usize) -> bool {
        approval.action == action
            && approval.version == version
            && approval.granted_until.is_some_and(|until| self.now < until)
            && !approval.used
            && approval.generation == self.generation
            && self.is_possible(action, version, approval.review)
    }

    fn bring_into_force(&mut self, action: GivingAction, version: usize, review: usize) {
        self.generation += 1;
        self.standing = Standing::Active;
        if action != GivingAction::Resume {
            self.target = Some((version, review));
            self.versions[version].prior = true;
        }
    }

    fn bury(&mut self, version: usize, cause: TombstoneCause) {
        self.graves.push((version, cause));
        let denied_by_this = |m: &Self, other: usize| {
            let all = universe();
            let fresh = Self {
                graves: vec![(version, cause)],
                ..Self::new()
            };
            m.versions[other].known && fresh.is_denied(other) && all.len() > other
        };
        for other in 0..5 {
            let revoked = self.versions[other].buried == Some(TombstoneCause::Revocation);
            if denied_by_this(self, other) && !revoked {
                self.versions[other].buried = Some(cause);
            }
        }
        let standing = match cause {
            TombstoneCause::Revocation => Standing::Revoked,
            TombstoneCause::DigestMismatch => Standing::Quarantined,
        };
        let falls = self.in_force().is_some()
            || self.standing == Standing::Quarantined && standing == Standing::Revoked;
        if falls
            && self
                .target
                .is_some_and(|(target, _)| denied_by_this(self, target))
        {
            self.standing = standing;
            self.generation += 1;
        }
    }
}

struct Both {
    world: World,
    model: Model,
}

impl Both {
    fn row<T>(rows: &[T], wish: usize) -> Option<usize> {
        (!rows.is_empty()).then(|| rows.len() - 1 - wish % rows.len())
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Install(v) => self.install(*v),
            Step::ReviewFull(v) => {
                self.review(*v, false);
            }
            Step::ReviewDelta(v) => {
                self.review(*v, true);
            }
            Step::Ask(action, v, row) => {
                if let Some(review) = Self::row(&self.model.reviews, *row) {
                    self.ask(*action, *v, review);
                }
            }
            Step::AskByReview(action, row) => {
                if let Some(review) = Self::row(&self.model.reviews, *row) {
                    self.ask(*action, self.model.reviews[review].version, review);
                }
            }
            Step::Approve(row) => {
                if let Some(row) = Self::row(&self.model.approvals, *row) {
                    self.approve(row);
                }
            }
            Step::Deny(row) => self.deny(*row),
            Step::Use(action, row, v) => {
                if let Some(row) = Self::row(&self.model.approvals, *row) {
                    self.use_row(*action, row, *v, Spoil::Nothing);
                }
            }
            Step::UseAsMeant(row, spoil) => {
                if let Some(row) = Self::row(&self.model.approvals, *row) {
                    let approval = &self.model.approvals[row];
                    self.use_row(approval.action, row, approval.version, *spoil);
                }
            }
            Step::Prepare(action, v) => {
                self.prepare(*action, *v);
            }
            Step::Give(action, v) => self.give(*action, *v),
            Step::Pause => {
                let allowed = self.model.standing == Standing::Active;
                assert_eq!(self.world.pause().is_ok(), allowed);
                if allowed {
                    self.model.standing = Standing::Paused;
                    self.model.generation += 1;
                }
            }
            Step::Revoke(v) => {
                let m = &self.model.versions[*v];
                let allowed = m.known && m.buried != Some(TombstoneCause::Revocation);
                assert_eq!(self.world.revoke(universe()[*v].content).is_ok(), allowed);
                if allowed {
                    self.model.bury(*v, TombstoneCause::Revocation);
                }
            }
            Step::Quarantine(v) => {
                let m = &self.model.versions[*v];
                let allowed = m.known && m.buried.is_none();
                assert_eq!(
                    self.world.quarantine(universe()[*v].content).is_ok(),
                    allowed
                );
                if allowed {
                    self.model.bury(*v, TombstoneCause::DigestMismatch);
                }
            }
            Step::Uninstall => self.uninstall(),
            Step::PassHalfALifetime => {
                self.world.pass_ms(HOUR_MS / 2);
                self.model.now += HOUR_MS / 2;
            }
        }
    }

    fn install(&mut self, v: usize) {
        let allowed = self.model.may_install(v);
        assert_eq!(self.world.install(&universe()[v]).is_ok(), allowed);
        if allowed {
            let m = &mut self.model.versions[v];
            (m.installed, m.known, m.newest_review) = (true, true, None);
        }
    }

    fn review(&mut self, v: usize, delta: bool) -> Option<usize> {
        let target = self.model.target.map(|(target, _)| target);
        if delta && target.is_none() {
            return None;
        }
        let identity = &universe()[v];
        let kind = if delta {
            self.world.delta_to(identity)
        } else {
            ReviewKind::Full
        };
        let result = self.world.review(identity, kind);
        assert_eq!(result.is_ok(), self.model.may_review(v));
        let id = result.ok()?;
        self.model.reviews.push(ModelReview {
            id,
            version: v,
            delta_from: target.filter(|_| delta),
            generation: self.model.generation,
        });
        let row = self.model.reviews.len() - 1;
        self.model.versions[v].newest_review = Some(row);
        Some(row)
    }

    fn ask(&mut self, action: GivingAction, v: usize, review: usize) -> Option<usize> {
        let review_id = self.model.reviews[review].id.clone();
        let result = self.world.ask(action, &universe()[v], &review_id);
        assert_eq!(result.is_ok(), self.model.is_possible(action, v, review));
        let id = result.ok()?;
        self.model.approvals.push(ModelApproval {
            id,
            action,
            version: v,
            review,
            generation: self.model.generation,
            answer_until: self.model.now + HOUR_MS,
            granted_until: None,
            answered: false,
            used: false,
        });
        Some(self.model.approvals.len() - 1)
    }

    fn approve(&mut self, row: usize) {
        let allowed = self.model.may_approve(&self.model.approvals[row]);
        let id = self.model.approvals[row].id.clone();
        assert_eq!(self.world.approve(&id).is_ok(), allowed);
        if allowed {
            let until = self.model.now + HOUR_MS;
            let approval = &mut self.model.approvals[row];
            (approval.answered, approval.granted_until) = (true, Some(until));
        }
    }

    fn deny(&mut self, wish: usize) {
        let Some(row) = Self::row(&self.model.approvals, wish) else {
            return;
        };
        let approval = &mut self.model.approvals[row];
        let decline = Decline {
            approval: approval.id.clone(),
            reason: world::id("no"),
        };
        let result = self.world.run(Request::Deny(decline));
        assert_eq!(result.is_ok(), !approval.answered);
        approval.answered = true;
    }

    fn use_row(&mut self, action: GivingAction, row: usize, v: usize, spoil: Spoil) {
        let mut using = self
            .world
            .using(&self.model.approvals[row].id, universe()[v].content);
        let named = &mut using.named;
        let seen = named.generation;
        match spoil {
            Spoil::Nothing => {}
            Spoil::OtherGoal => named.goal = world::id("other-goal"),
            Spoil::LaterGeneration => named.generation = seen.next().unwrap(),
            Spoil::EarlierGeneration => {
                named.generation = Generation::new(seen.get().saturating_sub(1)).unwrap();
            }
        }
        let spoilt = named.generation != seen || matches!(spoil, Spoil::OtherGoal);
        let allowed = !spoilt && self.model.may_use(action, &self.model.approvals[row], v);
        let result = self.world.run(match action {
            GivingAction::Activate => Request::Activate(using),
            GivingAction::Update => Request::Update(using),
            GivingAction::Resume => Request::Resume(using),
            GivingAction::Rollback => Request::Rollback(using),
        });
        assert_eq!(result.is_ok(), allowed, "{result:?}");
        if allowed {
            self.model.approvals[row].used = true;
            let review = self.model.approvals[row].review;
            self.model.bring_into_force(action, v, review);
        }
    }

    fn prepare(&mut self, action: GivingAction, v: usize) -> Option<usize> {
        let target = self.model.target;
        // A resumption makes sense for what is paused alone.
        let v = if action == GivingAction::Resume {
            target?.0
        } else {
            v
        };
        self.install(v);
        let review = match action {
            GivingAction::Resume => target.map(|(_, review)| review),
            GivingAction::Update => self.review(v, true),
            GivingAction::Activate | GivingAction::Rollback => self.review(v, false),
        };
        let row = self.ask(action, v, review?)?;
        self.approve(row);
        Some(row)
    }

    fn give(&mut self, action: GivingAction, v: usize) {
        if let Some(row) = self.prepare(action, v) {
            let version = self.model.approvals[row].version;
            self.use_row(action, row, version, Spoil::Nothing);
        }
    }

    fn uninstall(&mut self) {
        let m = &self.model;
        let something = m
            .versions
            .iter()
            .any(|it| it.installed && it.buried.is_none());
        let vacated = matches!(m.standing, Standing::Vacant | Standing::Uninstalled);
        let allowed = something || !vacated;
        assert_eq!(self.world.uninstall().is_ok(), allowed);
        if allowed {
            self.model.standing = Standing::Uninstalled;
            self.model.target = None;
            self.model.generation += 1;
            for it in &mut self.model.versions {
                if it.buried.is_none() {
                    it.installed = false;
                }
            }
        }
    }

    /// The promises of DESIGN section 5, read off the machine's own rows.
    fn check_promises(&self, before: &PackageState) {
        let (state, model) = (&self.world.state, &self.model);
        assert_eq!(state.pointer.generation.get(), model.generation);
        assert_eq!(state.pointer.standing, model.standing);
        let target = state.pointer.target.as_ref().map(|target| target.content);
        assert_eq!(
            target,
            model.target.map(|(version, _)| universe()[version].content)
        );
        assert!(state.pointer.generation >= before.pointer.generation);
        if let Some(target) = state.pointer.in_force() {
            let version = &state.versions[&target.content];
            assert_eq!(
                denial(&self.world.tombstones, &version.identity),
                None,
                "denied in force"
            );
            let in_force = [VersionState::Active, VersionState::Paused];
            let count = state
                .versions
                .values()
                .filter(|v| in_force.contains(&v.state))
                .count();
            assert_eq!(count, 1, "one version is in force");
            assert!(in_force.contains(&version.state));
            let approval = &state.approvals[&target.approval];
            assert!(matches!(approval.state, ApprovalState::Used(_)));
            assert_eq!(approval.identity, version.identity);
        } else {
            let none = state
                .versions
                .values()
                .all(|v| !matches!(v.state, VersionState::Active | VersionState::Paused));
            assert!(none, "nothing is in force");
        }
        for (id, review) in &before.reviews {
            assert_eq!(
                state.reviews.get(id),
                Some(review),
                "a review never changes"
            );
        }
        for (id, approval) in &before.approvals {
            if let ApprovalState::Used(_) | ApprovalState::Denied { .. } = approval.state {
                assert_eq!(state.approvals.get(id), Some(approval), "an end is an end");
            }
        }
        for (content, version) in &before.versions {
            let now = &state.versions[content];
            assert_eq!(
                now.identity, version.identity,
                "a version's bytes never change"
            );
            if version.state == VersionState::Revoked {
                assert_eq!(now.state, VersionState::Revoked, "a revocation is for ever");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn the_machine_allows_what_the_model_allows(steps in prop::collection::vec(step(), 1..90)) {
        let mut both = Both { world: World::new(PACKAGE), model: Model::new() };
        for step in &steps {
            let before = both.world.state.clone();
            let tombstones = both.world.tombstones.len();
            both.step(step);
            both.check_promises(&before);
            prop_assert!(both.world.tombstones.len() >= tombstones);
        }
    }
}
