//! Looks for what must not stand in a receipt.
//!
//! For tests, here and in the crates that make receipts: they plant a mark in every
//! host path, name and secret that they handle, and no receipt may carry it. A mark is
//! looked for as it is, in any case, in hexadecimal and in base64, in the bytes of the
//! receipt and in those of its payload.

use crate::base64;
use crate::envelope::Envelope;

/// The first of these marks that stands in a receipt or a bundle, if one does.
pub fn first_found<'a>(receipt: &[u8], marks: &[&'a str]) -> Option<&'a str> {
    let payload = Envelope::parse(receipt).map(|envelope| envelope.payload);
    let texts =
        [receipt.to_vec(), payload.unwrap_or_default()].map(|bytes| bytes.to_ascii_lowercase());
    let stands = |mark: &&&str| {
        let forms = forms(mark);
        texts
            .iter()
            .any(|text| forms.iter().any(|form| contains(text, form)))
    };
    marks.iter().find(stands).copied()
}

/// The mark as it could be written, in lower case.
fn forms(mark: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![
        mark.to_ascii_lowercase().into_bytes(),
        hex::encode(mark).into_bytes(),
    ];
    // Base64 shows a text in one of three ways, by what stands before it; the first
    // and the last characters depend on the neighbours and are left out.
    for before in 0..3 {
        let padded = [&vec![0; before][..], mark.as_bytes()].concat();
        let encoded = base64::encode(&padded);
        let inner = encoded
            .get(4..encoded.len().saturating_sub(4))
            .unwrap_or_default();
        if inner.len() >= 8 {
            forms.push(inner.to_ascii_lowercase().into_bytes());
        }
    }
    forms
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_however_it_is_written() {
        let mark = "sentinel-of-a-host-path";
        let marks = [mark];
        for before in ["", "x", "xy", "xyz"] {
            let hidden = base64::encode(format!("{before}{mark}{before}").as_bytes());
            assert_eq!(
                first_found(hidden.as_bytes(), &marks),
                Some(mark),
                "{before}"
            );
        }
        assert_eq!(
            first_found(mark.to_uppercase().as_bytes(), &marks),
            Some(mark)
        );
        assert_eq!(
            first_found(hex::encode(mark).as_bytes(), &marks),
            Some(mark)
        );
        assert_eq!(first_found(b"sentinel-of-another", &marks), None);
    }
}
