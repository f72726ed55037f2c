//! The difference of two texts, line by line. White space is never ignored, nor is a
//! line feed that is missing at the end.

/// Beyond this many pairs of lines a changed stretch is shown as replaced as a whole:
/// still complete, only longer to read.
const PAIRS_MAX: usize = 4_000_000;

/// What became of a line; numbers count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// It is in both.
    Same {
        /// Its number in the old text.
        old: usize,
        /// Its number in the new text.
        new: usize,
        /// Its bytes, with its line feed.
        bytes: &'a [u8],
    },
    /// It was, and is no more.
    Removed {
        /// Its number in the old text.
        old: usize,
        /// Its bytes, with its line feed.
        bytes: &'a [u8],
    },
    /// It is new.
    Added {
        /// Its number in the new text.
        new: usize,
        /// Its bytes, with its line feed.
        bytes: &'a [u8],
    },
}

/// Every line of both texts, in order.
pub fn difference<'a>(old: &'a [u8], new: &'a [u8]) -> Vec<Line<'a>> {
    let a: Vec<&[u8]> = old.split_inclusive(|&byte| byte == b'\n').collect();
    let b: Vec<&[u8]> = new.split_inclusive(|&byte| byte == b'\n').collect();
    let equal = |pairs: (&&[u8], &&[u8])| pairs.0 == pairs.1;
    let head = a.iter().zip(&b).take_while(|pair| equal(*pair)).count();
    let (rest_a, rest_b) = (a.iter().skip(head).rev(), b.iter().skip(head).rev());
    let tail = rest_a.zip(rest_b).take_while(|pair| equal(*pair)).count();
    let middle = kept(
        a.get(head..a.len() - tail).unwrap_or_default(),
        b.get(head..b.len() - tail).unwrap_or_default(),
    );
    let mut pairs: Vec<(usize, usize)> = (0..head).map(|at| (at, at)).collect();
    pairs.extend(middle.into_iter().map(|(x, y)| (x + head, y + head)));
    pairs.extend(
        (0..tail)
            .rev()
            .map(|at| (a.len() - 1 - at, b.len() - 1 - at)),
    );
    pairs.push((a.len(), b.len()));

    let mut lines = Vec::new();
    let (mut x, mut y) = (0, 0);
    for (to_x, to_y) in pairs {
        for (at, bytes) in a.iter().enumerate().take(to_x).skip(x) {
            lines.push(Line::Removed { old: at + 1, bytes });
        }
        for (at, bytes) in b.iter().enumerate().take(to_y).skip(y) {
            lines.push(Line::Added { new: at + 1, bytes });
        }
        if let Some(bytes) = a.get(to_x) {
            let (old, new) = (to_x + 1, to_y + 1);
            lines.push(Line::Same { old, new, bytes });
        }
        (x, y) = (to_x + 1, to_y + 1);
    }
    lines
}

/// The pairs of a longest common subsequence, or none for texts that are too long.
fn kept(a: &[&[u8]], b: &[&[u8]]) -> Vec<(usize, usize)> {
    let width = b.len() + 1;
    if a.is_empty() || b.is_empty() || a.len().saturating_mul(b.len()) > PAIRS_MAX {
        return Vec::new();
    }
    // The length for what begins at each pair.
    let mut length = vec![0_u32; (a.len() + 1) * width];
    for x in (0..a.len()).rev() {
        for y in (0..b.len()).rev() {
            length[x * width + y] = if a[x] == b[y] {
                length[(x + 1) * width + y + 1] + 1
            } else {
                length[(x + 1) * width + y].max(length[x * width + y + 1])
            };
        }
    }
    let mut pairs = Vec::new();
    let (mut x, mut y) = (0, 0);
    while x < a.len() && y < b.len() {
        if a[x] == b[y] {
            pairs.push((x, y));
            (x, y) = (x + 1, y + 1);
        } else if length[(x + 1) * width + y] >= length[x * width + y + 1] {
            x += 1;
        } else {
            y += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(lines: &[Line<'_>], is_old: bool) -> Vec<u8> {
        lines
            .iter()
            .flat_map(|line| match line {
                Line::Same { bytes, .. } => bytes.to_vec(),
                Line::Removed { bytes, .. } if is_old => bytes.to_vec(),
                Line::Added { bytes, .. } if !is_old => bytes.to_vec(),
                _ => Vec::new(),
            })
            .collect()
    }

    #[test]
    fn both_texts_come_back_whole() {
        let texts: [&[u8]; 7] = [
            b"",
            b"a\nb\nc\n",
            b"a\nc\n",
            b"a\nb\nc",
            b"\n\n",
            b"c\nb\na\n",
            b"a \nb\nc\nd\n",
        ];
        for old in texts {
            for new in texts {
                let lines = difference(old, new);
                assert_eq!(
                    (side(&lines, true), side(&lines, false)),
                    (old.to_vec(), new.to_vec())
                );
                let same = lines.iter().all(|line| matches!(line, Line::Same { .. }));
                assert_eq!(same, old == new);
            }
        }
    }

    #[test]
    fn white_space_and_a_missing_line_feed_are_changes() {
        let lines = difference(b"a\nb\n", b"a\n b");
        let expected = [
            Line::Same {
                old: 1,
                new: 1,
                bytes: b"a\n",
            },
            Line::Removed {
                old: 2,
                bytes: b"b\n",
            },
            Line::Added {
                new: 2,
                bytes: b" b",
            },
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn texts_of_very_many_lines_are_shown_whole_and_at_once() {
        let (old, new) = ("\n".repeat(32_000), "x\n".repeat(16_000));
        let lines = difference(old.as_bytes(), new.as_bytes());
        assert_eq!(lines.len(), 48_000);
    }
}
