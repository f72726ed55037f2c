//! What `seraph.tool.json-format` must produce, computed outside the sandbox.
//!
//! The formatter's output is not trusted: it is compared, as a value and byte
//! by byte, with what this module makes of the original input (ADR-013).

use crate::json::{self, Bounds, JsonError};
use crate::limits::OUTPUT_BYTES_MAX;

/// The formatted document: sorted keys, two spaces per level, one line feed at
/// the end; at most [`OUTPUT_BYTES_MAX`] bytes.
pub fn format(input: &[u8]) -> Result<Vec<u8>, JsonError> {
    let output = json::write_pretty(&json::parse(input)?);
    if output.len() > OUTPUT_BYTES_MAX {
        return Err(JsonError::output_too_large(&output, OUTPUT_BYTES_MAX));
    }
    Ok(output)
}

/// Why an output is not the formatter's answer to an input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The input itself is refused, so no output can be right.
    #[error("the input is refused: {0}")]
    Input(#[source] JsonError),
    /// The output is not strict JSON of the allowed size.
    #[error("the output is refused: {0}")]
    Output(#[source] JsonError),
    /// The output means something else than the input.
    #[error("the output holds another value than the input")]
    ValueDiffers,
    /// The output means the same but is not the one way to write it.
    #[error("the output holds the same value in other bytes, from byte {offset_bytes} on")]
    BytesDiffer {
        /// The first byte that differs, or the shorter one's length.
        offset_bytes: usize,
    },
}

/// Checks that `output` is exactly what the formatter owes for `input`.
pub fn verify(input: &[u8], output: &[u8]) -> Result<(), VerifyError> {
    // The two checks are independent on purpose: the value is compared as the
    // output's own reader would read it, the bytes with what our writer gives.
    let expected = format(input).map_err(VerifyError::Input)?;
    let input_value = json::parse(input).map_err(VerifyError::Input)?;
    let output_value = json::parse_bounded(output, Bounds::OUTPUT).map_err(VerifyError::Output)?;
    if input_value != output_value {
        return Err(VerifyError::ValueDiffers);
    }
    if expected != output {
        let same = expected
            .iter()
            .zip(output)
            .take_while(|(a, b)| a == b)
            .count();
        return Err(VerifyError::BytesDiffer { offset_bytes: same });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_answer_verifies() {
        let input = br#"{"b":[1.50,-0.0],"a":{}}"#;
        let output = b"{\n  \"a\": {},\n  \"b\": [\n    1.5,\n    -0.0\n  ]\n}\n";
        assert_eq!(format(input).unwrap(), output);
        assert_eq!(verify(input, output), Ok(()));
    }

    #[test]
    fn zeros_of_another_kind_or_sign_are_another_value() {
        for (input, output) in [
            ("[0]", "[\n  0.0\n]\n"),
            ("[0.0]", "[\n  -0.0\n]\n"),
            ("[-0]", "[\n  -0.0\n]\n"),
        ] {
            assert_eq!(
                verify(input.as_bytes(), output.as_bytes()),
                Err(VerifyError::ValueDiffers)
            );
        }
    }

    #[test]
    fn integers_that_a_double_cannot_tell_apart_are_another_value() {
        let verdict = verify(b"[9007199254740993]", b"[\n  9007199254740992\n]\n");
        assert_eq!(verdict, Err(VerifyError::ValueDiffers));
    }

    #[test]
    fn the_same_value_in_other_bytes_is_refused_with_the_place() {
        let input = br#"{"a":[1],"b":2}"#;
        let right = format(input).unwrap();
        for wrong in [
            &right[..right.len() - 1],
            &[&right[..], b"\n"].concat(),
            br#"{"a":[1],"b":2}"#,
            b"{\n  \"b\": 2,\n  \"a\": [\n    1\n  ]\n}\n",
        ] {
            let same = right.iter().zip(wrong).take_while(|(a, b)| a == b).count();
            assert_eq!(
                verify(input, wrong),
                Err(VerifyError::BytesDiffer { offset_bytes: same })
            );
        }
    }

    #[test]
    fn an_output_of_exactly_the_limit_passes_and_one_byte_more_does_not() {
        // A string of control characters grows sixfold when it is written.
        let document = |controls: usize, plain: usize| {
            let text = format!("\"{}{}\"", "\\u001f".repeat(controls), "x".repeat(plain));
            format!("[{}]", vec![text; 2].join(","))
        };
        // An array of empty arrays grows by its indentation.
        let nested = |count: usize, pad: usize| {
            format!(
                "[[[[[[\"{}\",{}]]]]]]",
                "x".repeat(pad),
                vec!["0"; count].join(",")
            )
        };
        assert!(format(document(2000, 0).as_bytes()).is_ok());
        let grown = format(nested(4000, 0).as_bytes()).unwrap().len();
        let pad = OUTPUT_BYTES_MAX - grown;
        assert_eq!(
            format(nested(4000, pad).as_bytes()).unwrap().len(),
            OUTPUT_BYTES_MAX
        );
        let error = format(nested(4000, pad + 1).as_bytes()).unwrap_err();
        assert_eq!(error.kind, json::JsonErrorKind::SizeOut);
    }
}
