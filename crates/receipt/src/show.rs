//! A receipt for people's eyes.
//!
//! Every text is escaped before it is shown, also that of a genuine receipt: a
//! signature says who said it, not that it is safe on a terminal. Nothing is left
//! out; the one text of the statement has no member that is not shown.

use lazaret_contract::json::Value;
use lazaret_contract::visible;

use crate::statement::Statement;
use crate::verify::Verified;

/// A statement as lines: kind, subjects, and what it says, member by member.
pub fn statement(statement: &Statement) -> Vec<String> {
    let kind = statement.kind();
    let mut lines = vec![
        format!("kind: {kind}"),
        format!("type: {}", kind.type_uri()),
        "subjects:".to_owned(),
    ];
    for subject in &statement.subjects {
        lines.push(format!(
            "  {}  sha256:{}",
            subject.name, subject.digest.sha256
        ));
    }
    lines.push("says:".to_owned());
    push_members(&mut lines, &statement.predicate.to_value(), 1);
    lines
}

/// What was and what was not checked of a receipt, as lines.
pub fn verification(verified: &Verified) -> Vec<String> {
    let kind = verified.statement.kind();
    let mut lines = vec![
        format!("receipt: sha256:{}", verified.digest),
        format!("kind: {kind}"),
        format!("signed by: {} ({})", verified.signer, kind.purpose()),
    ];
    if let Some(place) = &verified.log {
        let (index, size) = (place.index, place.size);
        lines.push(format!(
            "log: entry {index} of {}, under a checkpoint of {size}",
            place.origin
        ));
        for signer in &place.signers {
            lines.push(format!(
                "  checkpoint signed by: {} ({})",
                signer.name, signer.purpose
            ));
        }
    }
    for claim in &verified.checked {
        lines.push(format!("checked: {claim}: {}", claim.meaning(kind)));
    }
    for claim in &verified.not_checked {
        lines.push(format!("not checked: {claim}: {}", claim.meaning(kind)));
    }
    lines
}

fn push_members(lines: &mut Vec<String>, value: &Value, level: usize) {
    let indent = "  ".repeat(level);
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                push_member(
                    lines,
                    &format!("{indent}{}:", visible::escape(key)),
                    member,
                    level,
                );
            }
        }
        Value::Array(items) => {
            for item in items {
                push_member(lines, &format!("{indent}-"), item, level);
            }
        }
        scalar => lines.push(format!("{indent}{}", shown(scalar))),
    }
}

fn push_member(lines: &mut Vec<String>, lead: &str, value: &Value, level: usize) {
    match value {
        Value::Object(members) if members.is_empty() => lines.push(format!("{lead} nothing")),
        Value::Array(items) if items.is_empty() => lines.push(format!("{lead} none")),
        Value::Object(_) | Value::Array(_) => {
            lines.push(lead.to_owned());
            push_members(lines, value, level + 1);
        }
        scalar => lines.push(format!("{lead} {}", shown(scalar))),
    }
}

fn shown(scalar: &Value) -> String {
    match scalar {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Integer(integer) => integer.to_string(),
        Value::Float(float) => float.to_string(),
        Value::String(text) => visible::escape(text),
        // Containers never come here.
        Value::Array(_) | Value::Object(_) => String::new(),
    }
}
