//! What changes from one schema to another, and in which direction.
//!
//! An update shows what it allows that was not allowed before. The answer is
//! cautious: what is not marked as widening allows nothing new; what is marked
//! may, where two schemas of different kinds meet, turn out to allow the same.

use std::collections::{BTreeMap, BTreeSet};

use super::{Node, Schema};
use crate::pointer::Pointer;
use crate::visible;

/// One difference between two schemas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaChange {
    /// Where in the values that the schemas describe; items of an array are
    /// written `*`.
    pub pointer: Pointer,
    /// Whether values may pass now that did not before.
    pub widens: bool,
    /// Whether values may fail now that did not before.
    pub narrows: bool,
    /// What was and what is, safe to print.
    pub what: String,
}

impl Schema {
    /// Everything that changes from this schema to `new`.
    pub fn changes_to(&self, new: &Self) -> Vec<SchemaChange> {
        let mut changes = Vec::new();
        compare(self.root(), new.root(), &Pointer::root(), &mut changes);
        changes
    }
}

fn compare(old: &Node, new: &Node, place: &Pointer, changes: &mut Vec<SchemaChange>) {
    if old == new {
        return;
    }
    let mut change = |widens: bool, narrows: bool| {
        if widens || narrows {
            let what = format!("{} becomes {}", old.wanted(), new.wanted());
            changes.push(SchemaChange {
                pointer: place.clone(),
                widens,
                narrows,
                what,
            });
        }
    };
    match (old, new) {
        (
            Node::Object {
                properties: old,
                required: old_required,
            },
            Node::Object {
                properties: new,
                required: new_required,
            },
        ) => compare_fields((old, old_required), (new, new_required), place, changes),
        (
            Node::Array {
                items: old_items,
                items_min: old_min,
                items_max: old_max,
            },
            Node::Array {
                items: new_items,
                items_min: new_min,
                items_max: new_max,
            },
        ) => {
            change(
                new_min < old_min || new_max > old_max,
                new_min > old_min || new_max < old_max,
            );
            compare(old_items, new_items, &place.member("*"), changes);
        }
        (
            Node::String {
                length_min: old_min,
                length_max: old_max,
            },
            Node::String {
                length_min: new_min,
                length_max: new_max,
            },
        ) => change(
            new_min < old_min || new_max > old_max,
            new_min > old_min || new_max < old_max,
        ),
        (
            Node::Integer {
                minimum: old_min,
                maximum: old_max,
            },
            Node::Integer {
                minimum: new_min,
                maximum: new_max,
            },
        ) => change(
            new_min < old_min || new_max > old_max,
            new_min > old_min || new_max < old_max,
        ),
        (Node::Enum(old), Node::Enum(new)) => change(!new.is_subset(old), !old.is_subset(new)),
        // Another kind of schema: nothing is claimed about what both allow.
        _ => change(true, true),
    }
}

type Fields<'a> = (&'a BTreeMap<String, Node>, &'a BTreeSet<String>);

fn compare_fields(
    (old, old_required): Fields<'_>,
    (new, new_required): Fields<'_>,
    place: &Pointer,
    changes: &mut Vec<SchemaChange>,
) {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for key in keys {
        let (pointer, name) = (place.member(key), visible::escape_cut(key, 60));
        let (was, is) = (old_required.contains(key), new_required.contains(key));
        let mut change = |widens: bool, narrows: bool, what: String| {
            changes.push(SchemaChange {
                pointer: pointer.clone(),
                widens,
                narrows,
                what,
            });
        };
        match (old.get(key), new.get(key)) {
            (None, Some(node)) => {
                change(
                    true,
                    is,
                    format!("the field \"{name}\" is new: {}", node.wanted()),
                );
            }
            (Some(_), None) => change(was, true, format!("the field \"{name}\" is gone")),
            (Some(old), Some(new)) => {
                if was != is {
                    let now = if is {
                        "must be there now"
                    } else {
                        "may be absent now"
                    };
                    change(was, is, format!("the field \"{name}\" {now}"));
                }
                compare(old, new, &pointer, changes);
            }
            (None, None) => {}
        }
    }
}
