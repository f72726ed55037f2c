//! What a program lets through, found out from its bytes and written down so
//! that people can read it: a decompiler.
//!
//! It reads the canonical diagram, so two programs that do the same give the
//! same listing, however they were compiled. Everything that the listing does
//! not name is killed.

use std::fmt;
use std::ops::RangeInclusive;

use super::diagram::{Diagrams, Node, NodeId, WORD_BITS, Word};
use super::{Filter, symbolic};
use crate::policy::{AUDIT_ARCH_X86_64, Action, Call, Policy, Syscall, parameters_of};

/// No filter of ours comes near; a program with more terms is not listed.
const TERMS_MAX: usize = 65_536;

/// How many calls that are answered alike are named one by one.
const NAMES_MAX: usize = 16;

/// Some bits of an argument and what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgumentBits {
    /// Which argument, from 0.
    pub index: u8,
    /// The bits that the program looks at on this path.
    pub mask: u64,
    /// What they are; no bit outside the mask.
    pub value: u64,
}

/// What happens to a call whose arguments are so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Never the kill, which is everything that is not listed.
    pub action: Action,
    /// All of them together; empty if the arguments do not matter.
    pub arguments: Vec<ArgumentBits>,
}

/// What happens to some calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The AUDIT_ARCH values.
    pub architectures: RangeInclusive<u32>,
    /// The call numbers.
    pub numbers: RangeInclusive<u32>,
    /// The ways not to be killed, which do not overlap.
    pub outcomes: Vec<Outcome>,
    /// Whether no argument at all leads to the kill.
    pub never_kills: bool,
}

/// All calls that a program does not kill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedSet {
    /// By architecture and number, ascending.
    pub entries: Vec<Entry>,
}

/// The program distinguishes more cases than anybody would read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {TERMS_MAX} cases are distinguished")]
pub struct TooManyTerms;

impl AcceptedSet {
    /// Decompiles a program.
    pub fn of_filter(filter: &Filter) -> Result<Self, TooManyTerms> {
        let mut diagrams = Diagrams::new();
        let root = symbolic::of_filter(&mut diagrams, filter);
        Self::of_node(&diagrams, root)
    }

    /// The same listing for a policy, from its rules.
    pub fn of_policy(policy: &Policy) -> Result<Self, TooManyTerms> {
        let mut diagrams = Diagrams::new();
        let root = symbolic::of_policy(&mut diagrams, policy);
        Self::of_node(&diagrams, root)
    }

    fn of_node(diagrams: &Diagrams, root: NodeId) -> Result<Self, TooManyTerms> {
        let mut entries = Vec::new();
        for (architectures, below) in intervals(diagrams, Word::ARCHITECTURE, root)? {
            for (numbers, below) in intervals(diagrams, Word::NUMBER, below)? {
                let mut terms = Terms::default();
                terms.collect(diagrams, below, &mut Vec::new())?;
                if !terms.outcomes.is_empty() {
                    entries.push(Entry {
                        architectures: architectures.clone(),
                        numbers,
                        outcomes: terms.outcomes,
                        never_kills: !terms.kills,
                    });
                }
            }
        }
        Ok(Self { entries })
    }

    /// What the listing says about a call.
    pub fn answer(&self, call: &Call) -> Action {
        self.entries
            .iter()
            .filter(|entry| {
                entry.architectures.contains(&call.architecture)
                    && entry.numbers.contains(&call.number)
            })
            .flat_map(|entry| &entry.outcomes)
            .find(|outcome| outcome.arguments.iter().all(|bits| bits.holds(call)))
            .map_or(Action::KillProcess, |outcome| outcome.action)
    }

    /// Whether only native x86_64 calls without the x32 bit are in the set.
    pub fn is_native_only(&self) -> bool {
        self.entries.iter().all(|entry| {
            entry.architectures == (AUDIT_ARCH_X86_64..=AUDIT_ARCH_X86_64)
                && *entry.numbers.end() < crate::policy::X32_SYSCALL_BIT
        })
    }
}

/// The values of one word, in ranges that lead to the same node.
fn intervals(
    diagrams: &Diagrams,
    word: Word,
    root: NodeId,
) -> Result<Vec<(RangeInclusive<u32>, NodeId)>, TooManyTerms> {
    let mut found: Vec<(RangeInclusive<u32>, NodeId)> = Vec::new();
    // Nodes still to be looked at, with the bits that are decided; the lowest last.
    let mut open = vec![(root, 0_u32, WORD_BITS)];
    while let Some((id, value, undecided)) = open.pop() {
        match diagrams.node(id) {
            Node::Branch { level, zero, one } if level / WORD_BITS == word.0 => {
                let bit = WORD_BITS - 1 - level % WORD_BITS;
                if bit + 1 < undecided {
                    // The bits between do not matter here: both values of the next one.
                    open.push((id, value | 1 << (undecided - 1), undecided - 1));
                    open.push((id, value, undecided - 1));
                } else {
                    open.push((one, value | 1 << bit, bit));
                    open.push((zero, value, bit));
                }
            }
            _ => {
                let last = value
                    | u32::MAX
                        .checked_shr(u32::from(WORD_BITS - undecided))
                        .unwrap_or(0);
                match found.last_mut() {
                    Some((range, before)) if *before == id => *range = *range.start()..=last,
                    _ => found.push((value..=last, id)),
                }
            }
        }
        if found.len() + open.len() > TERMS_MAX {
            return Err(TooManyTerms);
        }
    }
    Ok(found)
}

#[derive(Default)]
struct Terms {
    outcomes: Vec<Outcome>,
    kills: bool,
}

impl Terms {
    /// Every path from a node to a leaf. At most 384 levels deep.
    fn collect(
        &mut self,
        diagrams: &Diagrams,
        id: NodeId,
        decided: &mut Vec<(u16, bool)>,
    ) -> Result<(), TooManyTerms> {
        match diagrams.node(id) {
            Node::Branch { level, zero, one } => {
                for (bit, next) in [(false, zero), (true, one)] {
                    decided.push((level, bit));
                    self.collect(diagrams, next, decided)?;
                    decided.pop();
                }
            }
            Node::Action(Action::KillProcess) | Node::False | Node::True => self.kills = true,
            Node::Action(action) => self.outcomes.push(Outcome {
                action,
                arguments: bits_of(decided),
            }),
        }
        if self.outcomes.len() > TERMS_MAX {
            return Err(TooManyTerms);
        }
        Ok(())
    }
}

/// The decided bits, argument by argument.
fn bits_of(decided: &[(u16, bool)]) -> Vec<ArgumentBits> {
    let mut arguments: Vec<ArgumentBits> = Vec::new();
    for &(level, bit) in decided {
        let word = (level / WORD_BITS).saturating_sub(Word::high(0).0);
        let index = u8::try_from(word / 2).unwrap_or(u8::MAX);
        let place = WORD_BITS - 1 - level % WORD_BITS;
        let half = if word.is_multiple_of(2) { WORD_BITS } else { 0 };
        let mask = 1_u64 << (half + place);
        if arguments.last().is_none_or(|last| last.index != index) {
            arguments.push(ArgumentBits {
                index,
                mask: 0,
                value: 0,
            });
        }
        if let Some(last) = arguments.last_mut() {
            last.mask |= mask;
            last.value |= if bit { mask } else { 0 };
        }
    }
    arguments
}

impl fmt::Display for AcceptedSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            let (first, last) = (*entry.numbers.start(), *entry.numbers.end());
            let name = Syscall::by_number(first).map_or("?", |known| known.name);
            if entry.architectures != (AUDIT_ARCH_X86_64..=AUDIT_ARCH_X86_64) {
                writeln!(f, "architectures {:x?}", entry.architectures)?;
            }
            for number in (first..=last).take(NAMES_MAX) {
                let name = Syscall::by_number(number).map_or("?", |known| known.name);
                writeln!(f, "{number} {name}")?;
            }
            if usize::try_from(last - first).unwrap_or(usize::MAX) >= NAMES_MAX {
                writeln!(f, "and so on to {last}")?;
            }
            entry.write_outcomes(f, name)?;
        }
        Ok(())
    }
}

impl Entry {
    /// Where nothing is killed, the action with the most terms is "otherwise":
    /// the complement of a few values is many terms and no information.
    fn write_outcomes(&self, f: &mut fmt::Formatter<'_>, syscall: &str) -> fmt::Result {
        let terms_of = |action| {
            self.outcomes
                .iter()
                .filter(|it| it.action == action)
                .count()
        };
        let rest = self
            .never_kills
            .then(|| self.outcomes.iter().map(|it| it.action))
            .and_then(|actions| actions.max_by_key(|&action| (terms_of(action), action)));
        for outcome in &self.outcomes {
            if Some(outcome.action) == rest {
                continue;
            }
            write!(f, "    {}", outcome.action)?;
            for (at, bits) in outcome.arguments.iter().enumerate() {
                f.write_str(if at == 0 { " if " } else { " and " })?;
                bits.write(f, syscall)?;
            }
            writeln!(f)?;
        }
        match rest {
            Some(action) if self.outcomes.iter().all(|it| it.action == action) => {
                writeln!(f, "    {action}")
            }
            Some(action) => writeln!(f, "    {action} otherwise"),
            None => writeln!(f, "    kill_process otherwise"),
        }
    }
}

impl ArgumentBits {
    /// Whether the call's argument has these bits.
    pub fn holds(&self, call: &Call) -> bool {
        call.argument(self.index) & self.mask == self.value
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, syscall: &str) -> fmt::Result {
        let parameter = parameters_of(syscall).and_then(|all| all.get(usize::from(self.index)));
        match parameter {
            Some(parameter) => f.write_str(parameter.name)?,
            None => write!(f, "args[{}]", self.index)?,
        }
        match self.mask {
            u64::MAX => write!(f, " == {:#x}", self.value),
            0xffff_ffff => write!(f, " == {:#x} (low 32 bits)", self.value),
            mask => write!(f, " & {mask:#x} == {:#x}", self.value),
        }
    }
}
