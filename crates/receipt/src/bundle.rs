//! A receipt in other people's form: Sigstore bundle v0.3.
//!
//! The same payload with the P-256 signature alone, because readers of that form
//! want exactly one; the public key is named by a hint, there is no certificate and
//! no entry in a public log. A bundle is derived from a receipt and proves less than
//! it; it must never be taken in its place.

use lazaret_contract::json::{self, Object, Value};

use crate::base64;
use crate::envelope::{Envelope, PAYLOAD_TYPE};

/// The media type of the form.
pub const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// The bundle of a receipt, as its one text.
pub fn to_bytes(envelope: &Envelope) -> Vec<u8> {
    let [_, signature] = &envelope.signatures;
    let signature = object([
        ("keyid", signature.key_id.to_string().into()),
        ("sig", base64::encode(&signature.bytes).into()),
    ]);
    let dsse = object([
        ("payload", base64::encode(&envelope.payload).into()),
        ("payloadType", PAYLOAD_TYPE.into()),
        ("signatures", Value::Array(vec![signature])),
    ]);
    let hint = envelope.signatures[1].key_id.to_string();
    let material = object([
        ("publicKey", object([("hint", hint.into())])),
        ("tlogEntries", Value::Array(Vec::new())),
    ]);
    let mut bytes = json::write_compact(&object([
        ("dsseEnvelope", dsse),
        ("mediaType", BUNDLE_TYPE.into()),
        ("verificationMaterial", material),
    ]));
    bytes.push(b'\n');
    bytes
}

/// Whether `bundle` is the bundle of `envelope`, byte for byte.
pub fn is_of(bundle: &[u8], envelope: &Envelope) -> bool {
    bundle == to_bytes(envelope)
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let members = members.map(|(key, value)| (key.to_owned(), value));
    Value::Object(Object::from(members))
}
