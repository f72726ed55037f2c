//! Canonical decision diagrams over the bits that a filter can see.
//!
//! An ordered, reduced decision diagram (Bryant 1986) with actions at its
//! leaves: each function from calls to actions has exactly one diagram, so two
//! ways of saying the same thing become the same node, and equality is a
//! comparison of two numbers, whatever the sets are. The order of the bits is:
//! architecture, number, then argument by argument, high half first, each word
//! from its highest bit down; comparisons of magnitude stay small in it.

use std::collections::HashMap;

use super::instruction::Test;
use super::verify::holds;
use crate::policy::{Action, Call};

/// Words that a filter can see: architecture, number, two halves of six arguments.
pub(super) const WORD_COUNT: u16 = 14;

/// Bits of a word.
pub(super) const WORD_BITS: u16 = 32;

/// A word by its place in the order of the diagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Word(pub(super) u16);

impl Word {
    pub(super) const ARCHITECTURE: Self = Self(0);
    pub(super) const NUMBER: Self = Self(1);

    /// The high half of an argument.
    pub(super) fn high(argument: u8) -> Self {
        Self(2 + 2 * u16::from(argument))
    }

    /// The low half of an argument.
    pub(super) fn low(argument: u8) -> Self {
        Self(3 + 2 * u16::from(argument))
    }

    /// The word's value in a call.
    pub(super) fn of(self, call: &Call) -> u32 {
        match self {
            Self::ARCHITECTURE => call.architecture,
            Self::NUMBER => call.number,
            Self(place) => {
                let argument = call.argument(u8::try_from((place - 2) / 2).unwrap_or(u8::MAX));
                let half = if place.is_multiple_of(2) {
                    argument >> 32
                } else {
                    argument
                };
                u32::try_from(half & 0xffff_ffff).unwrap_or_default()
            }
        }
    }

    /// The place of one of its bits in the order of the diagram.
    fn level(self, bit: u16) -> u16 {
        self.0 * WORD_BITS + (WORD_BITS - 1 - bit)
    }
}

/// A node, by its number in the [`Diagrams`] that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeId(u32);

/// What stands at a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// A condition that does not hold.
    False,
    /// A condition that holds.
    True,
    /// The action of a call.
    Action(Action),
    /// Look at one bit.
    Branch {
        /// The bit's place in the order.
        level: u16,
        /// Where to go on if it is 0.
        zero: NodeId,
        /// Where to go on if it is 1; never the same node as `zero`.
        one: NodeId,
    },
}

impl Node {
    fn level(self) -> u16 {
        match self {
            Self::Branch { level, .. } => level,
            _ => u16::MAX,
        }
    }
}

/// An arena of nodes in which equal nodes exist once.
#[derive(Debug, Default)]
pub(super) struct Diagrams {
    nodes: Vec<Node>,
    known: HashMap<Node, NodeId>,
    selected: HashMap<(NodeId, NodeId, NodeId), NodeId>,
}

impl Diagrams {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn node(&self, id: NodeId) -> Node {
        usize::try_from(id.0)
            .ok()
            .and_then(|at| self.nodes.get(at))
            .copied()
            .unwrap_or(Node::False)
    }

    fn intern(&mut self, node: Node) -> NodeId {
        if let Some(&id) = self.known.get(&node) {
            return id;
        }
        // 2^32 nodes would be 48 GiB; the process ends long before.
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node);
        self.known.insert(node, id);
        id
    }

    pub(super) fn constant(&mut self, value: bool) -> NodeId {
        self.intern(if value { Node::True } else { Node::False })
    }

    pub(super) fn action(&mut self, action: Action) -> NodeId {
        self.intern(Node::Action(action))
    }

    fn branch(&mut self, level: u16, zero: NodeId, one: NodeId) -> NodeId {
        if zero == one {
            return zero;
        }
        self.intern(Node::Branch { level, zero, one })
    }

    /// The condition that a masked word compares so with an operand.
    pub(super) fn test(&mut self, word: Word, mask: u32, test: Test, operand: u32) -> NodeId {
        // With no bit left to look at, the comparison is one of constants.
        let mut node = self.constant(match test {
            Test::Equal | Test::AtLeast => true,
            Test::Above | Test::AnyBit => false,
        });
        for bit in 0..WORD_BITS {
            let wanted = operand >> bit & 1 == 1;
            let seen = mask >> bit & 1 == 1;
            let (zero, one) = self.one_bit(test, wanted, node);
            node = if seen {
                self.branch(word.level(bit), zero, one)
            } else {
                zero
            };
        }
        debug_assert!(mask != 0 || node == self.constant(holds(test, 0, operand)));
        node
    }

    /// What a comparison comes to when one more bit, higher than those that
    /// gave `rest`, is 0 and when it is 1.
    fn one_bit(&mut self, test: Test, wanted: bool, rest: NodeId) -> (NodeId, NodeId) {
        let no = self.constant(false);
        let yes = self.constant(true);
        match (test, wanted) {
            (Test::Equal, true) => (no, rest),
            (Test::Equal, false) => (rest, no),
            (Test::Above | Test::AtLeast, true) => (no, rest),
            (Test::Above | Test::AtLeast, false) => (rest, yes),
            (Test::AnyBit, true) => (rest, yes),
            (Test::AnyBit, false) => (rest, rest),
        }
    }

    /// `then` where the condition holds, `otherwise` elsewhere.
    pub(super) fn select(&mut self, condition: NodeId, then: NodeId, otherwise: NodeId) -> NodeId {
        match self.node(condition) {
            Node::True => return then,
            Node::False => return otherwise,
            _ if then == otherwise => return then,
            _ => {}
        }
        let key = (condition, then, otherwise);
        if let Some(&known) = self.selected.get(&key) {
            return known;
        }
        let level = [condition, then, otherwise]
            .into_iter()
            .map(|id| self.node(id).level())
            .min()
            .unwrap_or(u16::MAX);
        let (condition_0, condition_1) = self.split(condition, level);
        let (then_0, then_1) = self.split(then, level);
        let (otherwise_0, otherwise_1) = self.split(otherwise, level);
        let zero = self.select(condition_0, then_0, otherwise_0);
        let one = self.select(condition_1, then_1, otherwise_1);
        let node = self.branch(level, zero, one);
        self.selected.insert(key, node);
        node
    }

    /// Both conditions.
    pub(super) fn both(&mut self, one: NodeId, other: NodeId) -> NodeId {
        let no = self.constant(false);
        self.select(one, other, no)
    }

    /// Either condition.
    pub(super) fn either(&mut self, one: NodeId, other: NodeId) -> NodeId {
        let yes = self.constant(true);
        self.select(one, yes, other)
    }

    /// The opposite of a condition.
    pub(super) fn not(&mut self, condition: NodeId) -> NodeId {
        let (no, yes) = (self.constant(false), self.constant(true));
        self.select(condition, no, yes)
    }

    fn split(&self, id: NodeId, level: u16) -> (NodeId, NodeId) {
        match self.node(id) {
            Node::Branch {
                level: own,
                zero,
                one,
            } if own == level => (zero, one),
            _ => (id, id),
        }
    }

    /// Follows a call down to its leaf.
    pub(super) fn follow(&self, root: NodeId, call: &Call) -> Node {
        let mut node = self.node(root);
        while let Node::Branch { level, zero, one } = node {
            let value = Word(level / WORD_BITS).of(call);
            let bit = WORD_BITS - 1 - level % WORD_BITS;
            node = self.node(if value >> bit & 1 == 1 { one } else { zero });
        }
        node
    }

    /// A call that two diagrams send to different leaves, if they are not the
    /// same function. Bits that do not matter are 0.
    pub(super) fn difference(&self, one: NodeId, other: NodeId) -> Option<Call> {
        let (mut left, mut right) = (one, other);
        let mut words = [0_u32; WORD_COUNT as usize];
        while left != right {
            let level = self.node(left).level().min(self.node(right).level());
            if level == u16::MAX {
                return Some(call_of(&words));
            }
            let (left_0, left_1) = self.split(left, level);
            let (right_0, right_1) = self.split(right, level);
            if left_0 == right_0 {
                // Canonical: equal functions are equal nodes, so the other side differs.
                if let Some(word) = words.get_mut(usize::from(level / WORD_BITS)) {
                    *word |= 1 << (WORD_BITS - 1 - level % WORD_BITS);
                }
                (left, right) = (left_1, right_1);
            } else {
                (left, right) = (left_0, right_0);
            }
        }
        None
    }
}

fn call_of(words: &[u32; WORD_COUNT as usize]) -> Call {
    let [architecture, number, halves @ ..] = words;
    let mut arguments = [0; 6];
    for (argument, half) in arguments.iter_mut().zip(halves.as_chunks::<2>().0) {
        let [high, low] = half;
        *argument = u64::from(*high) << 32 | u64::from(*low);
    }
    Call {
        number: *number,
        architecture: *architecture,
        arguments,
    }
}
