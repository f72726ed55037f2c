//! Documents made from a seed: the second half of what both sides must agree
//! on. The verdict owed is the Rust side's; what is tested is that the other
//! side gives the same.
//!
//! Most are sound and written in as many ways as the grammar allows; some are
//! damaged in one place, so that the two sides must also agree on which fault
//! they name.

use super::{Case, Expected};
use crate::digest::Sha256Digest;
use crate::formatter;

/// `count` documents; the same seed gives the same ones.
pub fn generated_cases(seed: u64, count: usize) -> Vec<Case> {
    let mut chance = Chance(seed);
    (0..count)
        .map(|index| {
            let mut document = Vec::new();
            push_value(&mut document, &mut chance, 0);
            if chance.one_in(3) {
                damage(&mut document, &mut chance);
            }
            let expected = match formatter::format(&document) {
                Ok(output) => Expected::Accept {
                    output_bytes: output.len(),
                    output_sha256: Sha256Digest::of(&output),
                },
                Err(error) => Expected::Reject(error.kind),
            };
            Case {
                name: format!("generated/{seed}-{index}"),
                input: document,
                expected,
            }
        })
        .collect()
}

/// A small deterministic generator (splitmix64, Steele et al. 2014).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound.max(1) as u64)).unwrap_or(0)
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from.get(self.below(from.len()))
            .copied()
            .unwrap_or_default()
    }
}

fn push_value(document: &mut Vec<u8>, chance: &mut Chance, depth: usize) {
    push_space(document, chance);
    let kinds = if depth < 6 { 10 } else { 7 };
    match chance.below(kinds) {
        0 => document.extend(chance.pick(&["null", "true", "false"]).bytes()),
        1 | 2 => push_number(document, chance),
        3 => document.extend(f64_text(chance).bytes()),
        4..=6 => push_string(document, chance),
        7 => {
            // Now and then a tower, around the depth limit.
            let levels = if chance.one_in(6) {
                24 + chance.below(12)
            } else {
                1
            };
            document.extend(std::iter::repeat_n(b'[', levels));
            push_members(document, chance, |document, chance| {
                push_value(document, chance, depth + 1)
            });
            document.extend(std::iter::repeat_n(b']', levels));
        }
        _ => {
            document.push(b'{');
            push_members(document, chance, |document, chance| {
                push_space(document, chance);
                push_string(document, chance);
                push_space(document, chance);
                document.push(b':');
                push_value(document, chance, depth + 1);
            });
            document.push(b'}');
        }
    }
    push_space(document, chance);
}

fn push_members(
    document: &mut Vec<u8>,
    chance: &mut Chance,
    push_member: impl Fn(&mut Vec<u8>, &mut Chance),
) {
    for index in 0..chance.below(5) {
        if index > 0 {
            document.push(b',');
        }
        push_member(document, chance);
    }
}

fn push_space(document: &mut Vec<u8>, chance: &mut Chance) {
    if chance.one_in(4) {
        document.extend(chance.pick(&[" ", "\n", "\t", "\r", " \r\n\t "]).bytes());
    }
}

fn push_number(document: &mut Vec<u8>, chance: &mut Chance) {
    let mut digits = |longest: usize| -> String {
        (0..=chance.below(longest))
            .map(|_| char::from(b"0123456789"[chance.below(10)]))
            .collect()
    };
    let whole = digits(25);
    let fraction = digits(25);
    let exponent = digits(3);
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        significant => significant,
    };
    let sign = chance.pick(&["", "-"]);
    let text = match chance.below(4) {
        0 | 1 => format!("{sign}{whole}"),
        2 => format!("{sign}{whole}.{fraction}"),
        _ => {
            let mark = chance.pick(&["e", "E", "e+", "E-", "e-"]);
            format!("{sign}{whole}.{fraction}{mark}{exponent}")
        }
    };
    document.extend(text.bytes());
}

/// A double of random bits, as Rust writes it: another way than ours.
fn f64_text(chance: &mut Chance) -> String {
    let value = f64::from_bits(chance.next());
    if value.is_finite() {
        format!("{value:e}")
    } else {
        "0.5".to_owned()
    }
}

fn push_string(document: &mut Vec<u8>, chance: &mut Chance) {
    const PIECES: &[&str] = &[
        "a",
        "b",
        "key",
        "\\u0061",
        "\\n",
        "\\\"",
        "\\\\",
        "\\/",
        "\\b\\f\\r\\t",
        "\\u0000",
        "\\u001f",
        "\\u00e9",
        "\u{e9}",
        "e\u{301}",
        "\u{7f}",
        "\u{2028}",
        "\u{feff}",
        "\u{ffff}",
        "\u{10000}",
        "\u{1f600}",
        "\\ud83d\\ude00",
        "\\uDBFF\\uDFFF",
        "{",
        "[",
        "]",
        " ",
        "//",
    ];
    document.push(b'"');
    for _ in 0..chance.below(5) {
        document.extend(chance.pick(PIECES).bytes());
    }
    if chance.one_in(200) {
        document.extend(
            chance
                .pick(&["\\ud800", "\\udfff", "\\ude00\\ud83d"])
                .bytes(),
        );
    }
    document.push(b'"');
}

/// Takes something away, puts something in, or cuts the document short.
fn damage(document: &mut Vec<u8>, chance: &mut Chance) {
    const STRANGERS: &[&str] = &[
        ",",
        ":",
        "]",
        "}",
        "[",
        "{",
        "\"",
        "\\",
        "-",
        "+",
        ".",
        "e",
        "0",
        "NaN",
        "-Infinity",
        "Infinity",
        "1e999",
        "x",
        "\u{0}",
        "\u{a0}",
        "\u{feff}",
        "\\ud800",
        "'",
        "/*",
    ];
    let at = chance.below(document.len() + 1);
    match chance.below(4) {
        0 => document.truncate(at),
        1 if at < document.len() => {
            document.remove(at);
        }
        2 if at < document.len() => document[at] ^= 1 << chance.below(8),
        _ => {
            document.splice(at..at, chance.pick(STRANGERS).bytes());
        }
    }
}
