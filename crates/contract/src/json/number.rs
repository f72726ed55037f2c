//! Numbers: integers of any size as their digits, floats as CPython has them.
//!
//! An integer is never a float and never loses a digit; a float is a finite
//! double, told apart by its bits, so that -0.0 is not 0.0 and 0 is neither.

use std::fmt;

/// An integer, kept as its canonical decimal digits: an optional minus sign,
/// no leading zero, and `0` for every spelling of zero.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Integer(Box<str>);

impl Integer {
    /// The integer that a JSON integer token stands for. The caller has
    /// checked the token against the grammar; `-0` is 0, as in Python.
    pub(super) fn from_token(token: &str) -> Self {
        Self(if token == "-0" {
            "0".into()
        } else {
            token.into()
        })
    }

    /// The canonical decimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value, where it fits. Never rounds: what does not fit is `None`.
    pub fn to_i64(&self) -> Option<i64> {
        self.0.parse().ok()
    }

    /// How many digits it has; the sign does not count.
    pub fn digits(&self) -> usize {
        self.0.trim_start_matches('-').len()
    }
}

impl From<i64> for Integer {
    fn from(value: i64) -> Self {
        Self(value.to_string().into())
    }
}

impl From<u64> for Integer {
    fn from(value: u64) -> Self {
        Self(value.to_string().into())
    }
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A finite double. Two of them are equal when their bits are.
#[derive(Clone, Copy)]
pub struct Float(f64);

impl Float {
    /// The float of this value, unless it is not finite.
    pub fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(value))
    }

    /// The value; always finite.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Float {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Float {}

/// Writes what CPython's `repr` writes (case A02): the shortest digits that
/// read back as the same double, ties to even; positional for a decimal
/// exponent from -4 to 15 and always with a point; else scientific with a sign
/// and at least two digits of exponent.
impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = zmij::Buffer::new();
        let shortest = buffer.format_finite(self.0);
        let (sign, magnitude) = match shortest.strip_prefix('-') {
            Some(magnitude) => ("-", magnitude),
            None => ("", shortest),
        };
        let (digits, exponent) = decompose(magnitude);
        f.pad(&lay_out(sign, &digits, exponent))
    }
}

impl fmt::Debug for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The significant digits of a decimal text, and the exponent of the first of
/// them: 1230.0 is ("123", 3). The layout of the text is of no concern, only
/// its digits are taken from zmij (case A03). Zero is ("0", 0).
fn decompose(magnitude: &str) -> (String, i32) {
    let (mantissa, exponent) = match magnitude.split_once(['e', 'E']) {
        // zmij writes at most four characters of exponent.
        Some((mantissa, exponent)) => (mantissa, exponent.parse().unwrap_or(0)),
        None => (magnitude, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0');
    if significant.is_empty() {
        return ("0".to_owned(), 0);
    }
    let leading_zeros = count_i32(all.len() - significant.len());
    let first = exponent + count_i32(whole.len()) - 1 - leading_zeros;
    (significant.trim_end_matches('0').to_owned(), first)
}

fn count_i32(count: usize) -> i32 {
    // Counts characters of a double's shortest text, of which there are few.
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn lay_out(sign: &str, digits: &str, exponent: i32) -> String {
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    match exponent {
        -4..=-1 => format!("{sign}0.{}{digits}", zeros(-exponent - 1)),
        0..=15 => {
            let whole_digits = usize::try_from(exponent + 1).unwrap_or(0);
            match digits.split_at_checked(whole_digits) {
                Some((whole, fraction)) if !fraction.is_empty() => {
                    format!("{sign}{whole}.{fraction}")
                }
                _ => {
                    let missing = exponent + 1 - count_i32(digits.len());
                    format!("{sign}{digits}{}.0", zeros(missing))
                }
            }
        }
        _ => {
            let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, ""));
            let point = if rest.is_empty() { "" } else { "." };
            let exponent_sign = if exponent < 0 { '-' } else { '+' };
            format!(
                "{sign}{first}{point}{rest}e{exponent_sign}{:02}",
                exponent.abs()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: f64) -> String {
        Float::new(value).unwrap().to_string()
    }

    #[test]
    fn floats_are_laid_out_as_cpython_lays_them_out() {
        let rows = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (100.0, "100.0"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (0.000_123_4, "0.0001234"),
            (1e15, "1000000000000000.0"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1e16, "1e+16"),
            (1.5e16, "1.5e+16"),
            (1e100, "1e+100"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (123.456, "123.456"),
        ];
        for (value, text) in rows {
            assert_eq!(shown(value), text);
        }
    }

    #[test]
    fn what_is_not_finite_is_no_float() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Float::new(value), None);
        }
    }

    #[test]
    fn zeros_of_different_sign_are_different_floats() {
        assert_ne!(Float::new(0.0), Float::new(-0.0));
        assert_eq!(Float::new(-0.0), Float::new(-0.0));
    }

    #[test]
    fn an_integer_that_does_not_fit_is_never_rounded() {
        assert_eq!(
            Integer::from_token("9223372036854775807").to_i64(),
            Some(i64::MAX)
        );
        assert_eq!(
            Integer::from_token("-9223372036854775808").to_i64(),
            Some(i64::MIN)
        );
        assert_eq!(Integer::from_token("9223372036854775808").to_i64(), None);
        assert_eq!(Integer::from_token("-0"), Integer::from(0_i64));
        assert_eq!(Integer::from_token("-120").digits(), 3);
    }
}
