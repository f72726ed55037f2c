//! Schemas in words, for messages and for people who approve them.

use super::Node;
use crate::closed::shown;
use crate::json::{self, Value};
use crate::visible;

impl Node {
    /// What the schema wants, on one short line. Of a long enum only some
    /// strings are named; [`Node::outline`] has them all.
    pub fn wanted(&self) -> String {
        const ENUM_NAMED: usize = 8;
        self.described(ENUM_NAMED)
    }

    fn described(&self, enum_named: usize) -> String {
        match self {
            Self::Object { .. } => "an object".to_owned(),
            Self::Array {
                items_min,
                items_max,
                ..
            } => {
                format!("an array of {} items", range(*items_min, *items_max))
            }
            Self::String {
                length_min,
                length_max,
            } => {
                format!(
                    "a string of {} code points",
                    range(*length_min, *length_max)
                )
            }
            Self::Enum(listed) => {
                let mut named: Vec<String> = listed
                    .iter()
                    .take(enum_named)
                    .map(|text| format!("\"{}\"", visible::escape_cut(text, 40)))
                    .collect();
                if listed.len() > enum_named {
                    named.push(format!("or {} others", listed.len() - enum_named));
                }
                format!("one of {}", named.join(", "))
            }
            Self::Integer { minimum, maximum } => format!("an integer from {minimum} to {maximum}"),
            Self::Boolean => "true or false".to_owned(),
            Self::Null => "null".to_owned(),
            Self::Const(literal) => format!("exactly {}", literal_text(literal)),
        }
    }

    /// The schema as an indented outline, one line for each node; what an
    /// operator approves is shown like this.
    pub fn outline(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.add_outline(&mut lines, 0, "");
        lines
    }

    fn add_outline(&self, lines: &mut Vec<String>, level: usize, name: &str) {
        let described = self.described(usize::MAX);
        lines.push(format!("{}{name}{described}", "  ".repeat(level)));
        match self {
            Self::Object {
                properties,
                required,
            } => {
                for (key, node) in properties {
                    let optional = if required.contains(key) {
                        ""
                    } else {
                        " (optional)"
                    };
                    let name = format!("\"{}\"{optional}: ", visible::escape(key));
                    node.add_outline(lines, level + 1, &name);
                }
            }
            Self::Array { items, .. } => items.add_outline(lines, level + 1, "each: "),
            _ => {}
        }
    }
}

fn range(least: u64, greatest: u64) -> String {
    match least {
        0 => format!("at most {greatest}"),
        _ if least == greatest => format!("exactly {least}"),
        _ => format!("{least} to {greatest}"),
    }
}

/// A literal as an operator sees it: whole when it is short.
fn literal_text(literal: &Value) -> String {
    const LITERAL_CHARS_MAX: usize = 200;
    match literal {
        Value::Array(_) | Value::Object(_) => {
            let text = json::write_compact(literal);
            visible::escape_cut(&String::from_utf8_lossy(&text), LITERAL_CHARS_MAX)
        }
        scalar => shown(scalar),
    }
}
