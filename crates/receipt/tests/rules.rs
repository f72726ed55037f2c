//! Statements that contradict themselves are never signed.

#![expect(
    clippy::unwrap_used,
    reason = "what fails in a helper of these tests fails the test"
)]

use lazaret_contract::digest::Sha256Digest;
use lazaret_receipt::predicate::attack::{AttackRun, TestOutcome};
use lazaret_receipt::predicate::run::{OutputClaim, RunEnding, RunFacts};
use lazaret_receipt::predicate::shared::{
    Architecture, CLOSURE_SUBJECT, Establishes, NotEstablished, OperatingSystem, Standing,
};
use lazaret_receipt::predicate::{Predicate, bom, build};
use lazaret_receipt::statement::StatementError;
use lazaret_receipt::{Envelope, Kind, Purpose, Statement, Subject, samples};

fn run(change: impl Fn(&mut RunFacts)) -> Result<Statement, StatementError> {
    let mut facts = samples::run_facts().unwrap();
    change(&mut facts);
    facts.statement()
}

fn attack(change: impl Fn(&mut AttackRun)) -> Result<Statement, StatementError> {
    let mut attack = samples::attack_run().unwrap();
    change(&mut attack);
    attack.statement()
}

fn reach_of(statement: &Statement) -> (&[Establishes], &[NotEstablished]) {
    match &statement.predicate {
        Predicate::Run(run) => (&run.establishes, &run.does_not_establish),
        Predicate::Blocked(blocked) => (&blocked.establishes, &blocked.does_not_establish),
        Predicate::Attack(attack) => (
            &attack.details.establishes,
            &attack.details.does_not_establish,
        ),
        _ => (&[], &[]),
    }
}

#[test]
fn output_needs_exit_0_unchanged_digests_and_proved_cleanup() {
    assert!(run(|_| ()).is_ok());
    let faults: [fn(&mut RunFacts); 6] = [
        |facts| facts.process.exit_code = Some(1),
        |facts| {
            facts.process.ending = RunEnding::CpuLimit;
            facts.process.exit_code = None;
        },
        |facts| facts.closing_digests_unchanged = false,
        |facts| facts.cleanup.none_left = false,
        |facts| facts.cleanup.descriptors_show_end = false,
        |facts| {
            facts.process.ending = RunEnding::Unknown;
            facts.process.exit_code = None;
        },
    ];
    for fault in faults {
        assert!(run(fault).is_err());
        let without = |facts: &mut RunFacts| {
            fault(facts);
            facts.output = None;
        };
        assert!(
            run(without).is_ok(),
            "without output it is a run like any other"
        );
    }
}

#[test]
fn an_end_has_its_own_number_and_no_other() {
    let faults: [fn(&mut RunFacts); 6] = [
        |facts| facts.process.exit_code = None,
        |facts| facts.process.exit_code = Some(128),
        |facts| facts.process.signal = Some(9),
        |facts| facts.process.denied_call = Some(57),
        |facts| facts.process.ending = RunEnding::Signalled,
        |facts| facts.process.ending = RunEnding::DeniedCall,
    ];
    for fault in faults {
        let without = |facts: &mut RunFacts| {
            facts.output = None;
            fault(facts);
        };
        assert!(run(without).is_err());
    }
    let denied = run(|facts| {
        facts.output = None;
        facts.process.ending = RunEnding::DeniedCall;
        facts.process.exit_code = None;
        facts.process.denied_call = Some(57);
    });
    assert!(denied.is_ok());
}

#[test]
fn a_run_says_what_its_facts_leave_open() {
    let schema_valid = run(|facts| {
        if let Some((_, claim)) = &mut facts.output {
            *claim = OutputClaim::SchemaValid;
        }
    })
    .unwrap();
    let (establishes, open) = reach_of(&schema_valid);
    assert!(open.contains(&NotEstablished::OutputCorrect));
    assert!(!establishes.contains(&Establishes::OutputExact));
    assert!(open.contains(&NotEstablished::IndependentReview));
    let reviewed = run(|facts| facts.profile.standing = Standing::AcceptedAndReviewed).unwrap();
    assert!(
        !reach_of(&reviewed)
            .1
            .contains(&NotEstablished::IndependentReview)
    );
    let unproved = run(|facts| {
        facts.output = None;
        facts.cleanup.none_left = false;
    })
    .unwrap();
    let (establishes, open) = reach_of(&unproved);
    assert!(!establishes.contains(&Establishes::CleanupProved));
    assert!(open.contains(&NotEstablished::Cleanup));
    assert!(open.contains(&NotEstablished::OutputTruth));
}

#[test]
fn nobody_can_claim_more_than_the_facts() {
    let statement = run(|facts| facts.output = None).unwrap();
    let Predicate::Run(mut run) = statement.predicate.clone() else {
        unreachable!()
    };
    run.establishes.push(Establishes::OutputExact);
    let more = Statement::new(statement.subjects.clone(), Predicate::Run(run.clone()));
    assert!(matches!(more, Err(StatementError::Form(_))));
    run.establishes.pop();
    run.does_not_establish.pop();
    let less = Statement::new(statement.subjects, Predicate::Run(run));
    assert!(matches!(less, Err(StatementError::Form(_))));
}

#[test]
fn a_blocked_receipt_of_a_host_without_the_profile_establishes_no_isolated_execution() {
    let statement = samples::statement(Kind::Blocked).unwrap();
    let (establishes, open) = reach_of(&statement);
    assert_eq!(establishes, [Establishes::NothingRan]);
    assert!(open.contains(&NotEstablished::IsolatedExecution));
}

#[test]
fn nothing_was_released_where_there_is_no_profile() {
    for (os, architecture) in [
        (OperatingSystem::Macos, Architecture::X86_64),
        (OperatingSystem::Linux, Architecture::Aarch64),
        (OperatingSystem::Other, Architecture::Other),
    ] {
        let elsewhere = run(|facts| {
            facts.platform.os = os;
            facts.platform.architecture = architecture;
        });
        assert!(elsewhere.is_err());
    }
    assert!(run(|facts| facts.barrier.clear()).is_err());
    assert!(run(|facts| facts.barrier.reverse()).is_err());
}

#[test]
fn subjects_are_the_digests_that_the_predicate_speaks_of() {
    let other = Sha256Digest::of(b"other");
    for kind in Kind::ALL.iter().copied() {
        let statement = samples::statement(kind).unwrap();
        for index in 0..statement.subjects.len() {
            let mut changed = statement.subjects.clone();
            changed[index].digest = other.into();
            let result = Statement::new(changed, statement.predicate.clone());
            // A build names its files as subjects and nowhere else.
            let is_free = kind == Kind::Build;
            assert_eq!(result.is_ok(), is_free, "{kind} {index}");
            let mut fewer = statement.subjects.clone();
            fewer.remove(index);
            let result = Statement::new(fewer, statement.predicate.clone());
            let is_free =
                kind == Kind::Bom && statement.subjects[index].name.as_str() != CLOSURE_SUBJECT;
            assert_eq!(result.is_ok(), is_free, "{kind} without {index}");
        }
        let mut more = statement.subjects.clone();
        more.push(Subject::new("zzz/other".parse().unwrap(), other));
        assert!(
            Statement::new(more, statement.predicate.clone()).is_err(),
            "{kind}"
        );
        let twice = [statement.subjects.clone(), statement.subjects.clone()].concat();
        assert!(
            Statement::new(twice, statement.predicate.clone()).is_err(),
            "{kind}"
        );
        assert!(
            Statement::new(Vec::new(), statement.predicate.clone()).is_err(),
            "{kind}"
        );
    }
}

#[test]
fn the_result_of_an_attack_run_follows_from_its_cases() {
    let result = |statement: Statement| match statement.predicate {
        Predicate::Attack(attack) => attack.result,
        _ => unreachable!(),
    };
    assert_eq!(result(attack(|_| ()).unwrap()), TestOutcome::Passed);
    let name = |text: &str| text.parse().unwrap();
    let warned = attack(|run| run.not_run.push(name("filter/not-here"))).unwrap();
    assert_eq!(result(warned), TestOutcome::Warned);
    let failed = attack(|run| run.failed.push(name("filter/escaped"))).unwrap();
    assert_eq!(reach_of(&failed).0, []);
    assert_eq!(result(failed), TestOutcome::Failed);
    assert!(attack(|run| run.failed.push(run.passed[0].clone())).is_err());
    assert!(attack(|run| run.passed.push(run.passed[0].clone())).is_err());
    assert!(attack(|run| run.passed.clear()).is_err());
}

#[test]
fn a_bill_of_materials_alone_is_the_predicate_of_the_signed_one() {
    let manifest = samples::manifest();
    let statement = bom::statement(&manifest).unwrap();
    let Predicate::Bom(signed) = &statement.predicate else {
        unreachable!()
    };
    assert_eq!(signed.to_document(), bom::document(&manifest).unwrap());
    assert!(build::is_about(&statement, &manifest));
    let mut other = manifest;
    other.target = "other".to_owned();
    assert!(!build::is_about(&statement, &other));
}

#[test]
fn an_integer_that_readers_may_round_is_never_signed() {
    let statement = run(|facts| facts.input.size_bytes = (1 << 53) - 1).unwrap();
    let pair = samples::pair(Purpose::Run).unwrap();
    assert!(Envelope::sign(&statement, &pair).is_ok());
    for size_bytes in [1 << 53, u64::MAX] {
        let statement = run(|facts| facts.input.size_bytes = size_bytes).unwrap();
        assert!(Envelope::sign(&statement, &pair).is_err());
    }
}
