//! "Did you mean": the known name that a misspelt one is nearest to.

/// The longest name that is compared; longer ones are not typing mistakes.
const NAME_CHARS_MAX: usize = 40;

/// The one of `known` that `name` was probably meant to be, if any is near.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name: Vec<char> = name.chars().take(NAME_CHARS_MAX + 1).collect();
    if name.len() > NAME_CHARS_MAX {
        return None;
    }
    known
        .iter()
        .map(|candidate| {
            (
                distance(&name, &candidate.chars().collect::<Vec<_>>()),
                *candidate,
            )
        })
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 5)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance, ignoring ASCII case.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(!x.eq_ignore_ascii_case(y));
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_mistakes_find_their_word_and_other_words_find_none() {
        let known = ["additionalProperties", "minimum", "maxLength"];
        assert_eq!(
            nearest("additionalPropertys", &known),
            Some("additionalProperties")
        );
        assert_eq!(nearest("MinimuM", &known), Some("minimum"));
        assert_eq!(nearest("maxlenght", &known), Some("maxLength"));
        assert_eq!(nearest("title", &known), None);
        assert_eq!(nearest(&"m".repeat(10_000), &known), None);
    }
}
