//! Nothing that was changed verifies: every receipt of every kind, at every byte,
//! and every other way in which a receipt can be made to look like one.

#![expect(
    clippy::unwrap_used,
    reason = "what fails in a helper of these tests fails the test"
)]

use lazaret_contract::digest::Sha256Digest;
use lazaret_receipt::envelope::{Envelope, PAYLOAD_TYPE, pre_authentication_encoding};
use lazaret_receipt::keys::{Purpose, SigningPair};
use lazaret_receipt::log::entry::EntryKind;
use lazaret_receipt::log::file::LogFile;
use lazaret_receipt::log::proof::Inclusion;
use lazaret_receipt::statement::Statement;
use lazaret_receipt::text::KeyName;
use lazaret_receipt::trust::{Revocation, TrustStore, TrustedKey};
use lazaret_receipt::{Expectations, Kind, Refused, Verified, samples, verify};
use proptest::prelude::*;

/// A receipt of a kind with the one key that may sign it.
struct Sample {
    pair: SigningPair,
    trust: TrustStore,
    receipt: Vec<u8>,
}

impl Sample {
    fn of(kind: Kind) -> Self {
        let pair = samples::pair(kind.purpose()).unwrap();
        let trust = samples::trust(&[&pair]).unwrap();
        let statement = samples::statement(kind).unwrap();
        let receipt = Envelope::sign(&statement, &pair).unwrap().to_bytes();
        Self {
            pair,
            trust,
            receipt,
        }
    }

    fn verify(&self, receipt: &[u8]) -> Result<Verified, Refused> {
        verify(receipt, &self.trust, &Expectations::default())
    }

    fn code(&self, receipt: &[u8]) -> &'static str {
        match self.verify(receipt) {
            Ok(_) => "verified",
            Err(refused) => refused.code(),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.receipt.clone()).unwrap()
    }

    /// The receipt of these payload bytes, validly signed.
    fn sign_raw(&self, payload: &[u8]) -> Vec<u8> {
        raw_envelope(&self.pair, PAYLOAD_TYPE, payload)
    }
}

/// An envelope of any payload, validly signed: what a broken signer would issue.
/// Goes through the public key file, as another program would have to.
fn raw_envelope(pair: &SigningPair, payload_type: &str, payload: &[u8]) -> Vec<u8> {
    use ed25519_dalek::Signer as _;
    let file = pair.to_file();
    let file = std::str::from_utf8(&file).unwrap();
    let secret = |line: usize, key: &str| -> [u8; 32] {
        let text = file.lines().nth(line).unwrap().strip_prefix(key).unwrap();
        decode(text).try_into().unwrap()
    };
    let message = pre_authentication_encoding(payload_type, payload);
    let ed25519 = ed25519_dalek::SigningKey::from_bytes(&secret(3, "ed25519 "));
    let p256 = p256::ecdsa::SigningKey::from_slice(&secret(4, "p256 ")).unwrap();
    let p256_signature: p256::ecdsa::Signature = p256.sign(&message);
    let ids = pair.public();
    format!(
        "{{\"payload\":\"{}\",\"payloadType\":\"{payload_type}\",\"signatures\":[\
         {{\"keyid\":\"{}\",\"sig\":\"{}\"}},{{\"keyid\":\"{}\",\"sig\":\"{}\"}}]}}\n",
        encode(payload),
        ids.ed25519_id(),
        encode(&ed25519.sign(&message).to_bytes()),
        ids.p256_id(),
        encode(p256_signature.normalize_s().to_der().as_bytes()),
    )
    .into_bytes()
}

fn encode(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn decode(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap()
}

#[test]
fn a_receipt_of_every_kind_verifies_and_has_the_same_bytes_each_time() {
    for kind in Kind::ALL.iter().copied() {
        let sample = Sample::of(kind);
        let verified = sample.verify(&sample.receipt).unwrap();
        assert_eq!(verified.statement, samples::statement(kind).unwrap());
        assert_eq!(verified.digest, Sha256Digest::of(&sample.receipt));
        let again = Envelope::sign(&verified.statement, &sample.pair)
            .unwrap()
            .to_bytes();
        assert_eq!(again, sample.receipt, "{kind}");
        assert_eq!(
            raw_envelope(
                &sample.pair,
                PAYLOAD_TYPE,
                &verified.statement.to_bytes().unwrap()
            ),
            again
        );
    }
}

#[test]
fn each_single_byte_change_of_a_receipt_of_every_kind_is_refused() {
    for kind in Kind::ALL.iter().copied() {
        let sample = Sample::of(kind);
        for at in 0..sample.receipt.len() {
            for bit in [1, 0x20] {
                let mut changed = sample.receipt.clone();
                changed[at] ^= bit;
                let refused = sample.verify(&changed);
                assert!(refused.is_err(), "{kind}: byte {at} ^ {bit:#x} passed");
            }
        }
    }
}

proptest! {
    #[test]
    fn any_replacement_insertion_or_removal_at_any_place_is_refused(
        kind in prop::sample::select(Kind::ALL),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        how in 0..3,
    ) {
        let sample = Sample::of(kind);
        let mut changed = sample.receipt.clone();
        let at = place.index(changed.len());
        match how {
            0 => changed[at] = byte,
            1 => changed.insert(at, byte),
            _ => { changed.remove(at); }
        }
        prop_assume!(changed != sample.receipt);
        prop_assert!(sample.verify(&changed).is_err());
    }

    #[test]
    fn a_validly_signed_payload_that_is_changed_anywhere_is_never_another_receipt(
        kind in prop::sample::select(Kind::ALL),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        // The signer is honest and its bytes were hit before signing: whatever
        // passes says exactly what its text says, in its one spelling.
        let sample = Sample::of(kind);
        let mut payload = samples::statement(kind).unwrap().to_bytes().unwrap();
        let at = place.index(payload.len());
        payload[at] = byte;
        if let Ok(verified) = sample.verify(&sample.sign_raw(&payload)) {
            prop_assert_eq!(verified.statement.to_bytes().unwrap(), payload);
        }
    }

    #[test]
    fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        let sample = Sample::of(Kind::Refusal);
        prop_assert!(sample.verify(&bytes).is_err());
    }
}

#[test]
fn white_space_order_and_escapes_of_the_envelope_are_signed_too() {
    let sample = Sample::of(Kind::Refusal);
    let text = sample.text();
    let line = text.trim_end();
    for other in [
        line.to_owned(),
        format!("{text}\n"),
        format!(" {text}"),
        text.replacen("\"payload\":", "\"payload\": ", 1),
        text.replacen("payloadType", "payload\\u0054ype", 1),
        text.replacen("application/vnd", "application\\/vnd", 1),
    ] {
        assert_eq!(
            sample.code(other.as_bytes()),
            "envelope_not_canonical",
            "{other}"
        );
    }
}

#[test]
fn a_missing_third_swapped_or_doubled_signature_is_refused() {
    let sample = Sample::of(Kind::Refusal);
    let text = sample.text();
    let from = text.find("[{").unwrap() + 1;
    let to = text.find("}]").unwrap() + 1;
    let (first, second) = text[from..to].split_once("},").unwrap();
    let first = format!("{first}}}");
    let with = |signatures: &[&str]| {
        format!("{}{}{}", &text[..from], signatures.join(","), &text[to..]).into_bytes()
    };
    assert_eq!(with(&[&first, second]), sample.receipt);
    for (signatures, code) in [
        (&[][..], "signature_count"),
        (&[first.as_str()], "signature_count"),
        (&[second], "signature_count"),
        (&[&first, second, &first], "signature_count"),
        (&[&first, second, second], "signature_count"),
        (&[second, &first], "foreign_key"),
        (&[&first, &first], "foreign_key"),
        (&[second, second], "foreign_key"),
    ] {
        assert_eq!(sample.code(&with(signatures)), code);
    }
}

#[test]
fn duplicate_keys_unknown_members_huge_numbers_and_nesting_are_refused() {
    let sample = Sample::of(Kind::Refusal);
    let text = sample.text();
    let twice = text.replacen("{\"payload\"", "{\"payload\":\"\",\"payload\"", 1);
    assert_eq!(sample.code(twice.as_bytes()), "duplicate_key");
    let unknown = text.replacen("{\"payload\"", "{\"extra\":1,\"payload\"", 1);
    assert_eq!(sample.code(unknown.as_bytes()), "envelope_form");
    let number = text.replacen(
        "{\"payload\"",
        &format!("{{\"n\":{},\"payload\"", "9".repeat(5000)),
        1,
    );
    assert_eq!(sample.code(number.as_bytes()), "number");
    let infinite = text.replacen("{\"payload\"", "{\"n\":1e999,\"payload\"", 1);
    assert_eq!(sample.code(infinite.as_bytes()), "number");
    let deep = text.replacen(
        "{\"payload\"",
        &format!("{{\"n\":{}{},\"payload\"", "[".repeat(40), "]".repeat(40)),
        1,
    );
    assert_eq!(sample.code(deep.as_bytes()), "nesting");
    assert_eq!(sample.code("[".repeat(1 << 20).as_bytes()), "nesting");
    let large = vec![b' '; lazaret_receipt::limits::ENVELOPE_BYTES_MAX + 1];
    assert_eq!(sample.code(&large), "too_large");
    for no_json in [&b""[..], b"\xef\xbb\xbf{}", b"\xff", b"nothing"] {
        assert_eq!(sample.code(no_json), "not_json");
    }
}

#[test]
fn the_same_faults_inside_a_validly_signed_payload_are_refused() {
    let sample = Sample::of(Kind::Refusal);
    let statement = samples::statement(Kind::Refusal)
        .unwrap()
        .to_bytes()
        .unwrap();
    let text = String::from_utf8(statement.clone()).unwrap();
    let insert = |member: &str| text.replacen('{', &format!("{{{member},"), 1);
    let control = sample.sign_raw(&statement);
    assert_eq!(sample.code(&control), "verified");
    for (payload, code) in [
        (insert("\"_type\":\"x\""), "duplicate_key"),
        (insert("\"A\":1"), "statement_form"),
        (insert(&format!("\"A\":{}", "1".repeat(4301))), "number"),
        (
            insert(&format!("\"A\":{}0{}", "[".repeat(33), "]".repeat(33))),
            "nesting",
        ),
        (
            insert(&format!("\"A\":[{}0]", "0,".repeat(70_000))),
            "nesting",
        ),
        (format!(" {text}"), "statement_not_canonical"),
        (format!("{text}\n"), "statement_not_canonical"),
        (
            text.replace("Statement/v1", "Statement/v0.1"),
            "statement_form",
        ),
        (
            text.replace("refusal/v1", "refusal/v2"),
            "predicate_unknown",
        ),
        (
            text.replace("\"root_epoch\":1", "\"root_epoch\":9007199254740992"),
            "statement_form",
        ),
        (
            text.replace("\"root_epoch\":1", "\"root_epoch\":-1"),
            "statement_form",
        ),
        (
            text.replace("\"root_epoch\":1", "\"root_epoch\":1.0"),
            "statement_form",
        ),
        (
            text.replace("\"root_epoch\":1", "\"root_epoch\":1e0"),
            "statement_not_canonical",
        ),
        (
            text.replace("\"root_epoch\":1", "\"root_epoch\":null"),
            "statement_form",
        ),
        (
            text.replace("\"no_learning\":true", "\"no_learning\":false"),
            "statement_form",
        ),
        (
            text.replace(
                "\"output_claim\":\"none\"",
                "\"output_claim\":\"exact-bytes\"",
            ),
            "statement_form",
        ),
        (
            text.replace(
                "[\"no-package-code-ran\",",
                "[\"cleanup-proved\",\"no-package-code-ran\",",
            ),
            "statement_form",
        ),
        (String::new(), "not_json"),
        ("[]".to_owned(), "statement_form"),
        ("\u{feff}{}".to_owned(), "not_json"),
    ] {
        assert_ne!(payload.as_bytes(), statement, "{code}");
        assert_eq!(
            sample.code(&sample.sign_raw(payload.as_bytes())),
            code,
            "{payload:.80}"
        );
    }
}

#[test]
fn another_payload_type_is_refused_even_when_it_is_signed() {
    let sample = Sample::of(Kind::Refusal);
    let payload = samples::statement(Kind::Refusal)
        .unwrap()
        .to_bytes()
        .unwrap();
    for other in ["application/vnd.in-toto+xml", "application/json", ""] {
        let receipt = raw_envelope(&sample.pair, other, &payload);
        assert_eq!(sample.code(&receipt), "payload_type");
    }
}

#[test]
fn base64_that_is_not_canonical_is_refused() {
    let sample = Sample::of(Kind::Refusal);
    let text = sample.text();
    let padded = text.find("=\"").unwrap();
    let mut stray = text.clone().into_bytes();
    let last = text[..padded].trim_end_matches('=').len() - 1;
    stray[last] += 1;
    assert_eq!(
        sample.code(&stray),
        "base64",
        "stray bits in the last character"
    );
    let unpadded = text.replacen("=\"", "\"", 1);
    assert_eq!(sample.code(unpadded.as_bytes()), "base64");
    let broken = text.replacen("\"payload\":\"", "\"payload\":\"\\n", 1);
    assert_eq!(sample.code(broken.as_bytes()), "base64");
}

#[test]
fn foreign_keys_two_pairs_and_no_key_are_refused_each_with_its_reason() {
    let sample = Sample::of(Kind::Refusal);
    let expected = Expectations::default();
    let code = |trust: &TrustStore| {
        verify(&sample.receipt, trust, &expected)
            .unwrap_err()
            .code()
    };
    assert_eq!(code(&TrustStore::default()), "no_trusted_key");
    let stranger = samples::pair(Purpose::Run).unwrap();
    assert_eq!(code(&samples::trust(&[&stranger]).unwrap()), "foreign_key");
    // A store that has each of the two keys, in two pairs.
    let mixed = |first: &SigningPair, second: &SigningPair| TrustedKey {
        p256: Some(second.public().p256),
        ..TrustedKey::of(&first.public())
    };
    let keys = [
        mixed(&sample.pair, &stranger),
        mixed(&stranger, &sample.pair),
    ];
    assert_eq!(code(&TrustStore::new(keys).unwrap()), "two_key_pairs");
}

#[test]
fn signatures_of_one_purpose_never_pass_as_anothers() {
    for kind in Kind::ALL.iter().copied() {
        let statement = samples::statement(kind).unwrap();
        for purpose in Purpose::ALL
            .iter()
            .copied()
            .filter(|other| *other != kind.purpose())
        {
            let pair = samples::pair(purpose).unwrap();
            assert!(Envelope::sign(&statement, &pair).is_err());
            let receipt = raw_envelope(&pair, PAYLOAD_TYPE, &statement.to_bytes().unwrap());
            let trust = samples::trust(&[&pair]).unwrap();
            let refused = verify(&receipt, &trust, &Expectations::default()).unwrap_err();
            assert_eq!(refused.code(), "key_purpose", "{kind} by {purpose}");
        }
    }
}

/// A log of run receipts of two key pairs, the second in use from `replaced_at`.
struct Rotation {
    trust: TrustStore,
    receipts: Vec<Vec<u8>>,
    log: LogFile,
    checkpoint: Vec<u8>,
    origin: KeyName,
    pairs: [SigningPair; 2],
}

const REPLACED_AT: u64 = 3;

impl Rotation {
    fn new() -> Self {
        let origin: KeyName = "sample/log".parse().unwrap();
        let log_pair = SigningPair::generate(Purpose::Checkpoint, origin.clone()).unwrap();
        let pairs = [
            samples::pair(Purpose::Run).unwrap(),
            samples::pair(Purpose::Run).unwrap(),
        ];
        let mut trust = samples::trust(&[&pairs[0], &log_pair]).unwrap();
        trust
            .rotate(&pairs[1].public(), origin.clone(), REPLACED_AT)
            .unwrap();
        let mut log = LogFile::default();
        // Entries 0 to 2 by the first pair, then one late one of it, then the second's.
        let signers = [0, 0, 0, 0, 1, 1];
        let receipts: Vec<Vec<u8>> = signers
            .iter()
            .enumerate()
            .map(|(index, signer)| {
                let mut facts = samples::run_facts().unwrap();
                facts.authority.task = Some(format!("task-{index}").parse().unwrap());
                let statement = facts.statement().unwrap();
                Envelope::sign(&statement, &pairs[*signer])
                    .unwrap()
                    .to_bytes()
            })
            .collect();
        for receipt in &receipts {
            log.push(EntryKind::Receipt, Sha256Digest::of(receipt))
                .unwrap();
        }
        let checkpoint = log.head(origin.clone()).sign(&log_pair).unwrap().to_bytes();
        Self {
            trust,
            receipts,
            log,
            checkpoint,
            origin,
            pairs,
        }
    }

    fn proof(&self, index: u64) -> Inclusion {
        self.log
            .inclusion(index, self.log.size(), self.checkpoint.clone())
            .unwrap()
    }

    fn code(&self, trust: &TrustStore, receipt: usize, proof: Option<&Inclusion>) -> &'static str {
        let inclusion = proof.map(Inclusion::to_bytes);
        let expected = Expectations {
            inclusion,
            ..Expectations::default()
        };
        match verify(&self.receipts[receipt], trust, &expected) {
            Ok(_) => "verified",
            Err(refused) => refused.code(),
        }
    }
}

#[test]
fn after_a_rotation_old_receipts_stay_valid_by_their_place_and_late_ones_do_not() {
    let rotation = Rotation::new();
    let code =
        |index: usize| rotation.code(&rotation.trust, index, Some(&rotation.proof(index as u64)));
    assert_eq!([0, 1, 2].map(code), ["verified"; 3]);
    assert_eq!(code(3), "key_expired");
    assert_eq!([4, 5].map(code), ["verified"; 2]);
    for index in 0..6 {
        assert_eq!(rotation.code(&rotation.trust, index, None), "proof_needed");
        // A proof of another entry is no proof of this one.
        let other = rotation.proof((index as u64 + 1) % 6);
        assert_eq!(
            rotation.code(&rotation.trust, index, Some(&other)),
            "not_in_log"
        );
    }
}

#[test]
fn a_new_key_does_not_count_before_its_index_or_in_another_log() {
    let rotation = Rotation::new();
    let ranged = |from_index, log: &str| {
        let keys = rotation.trust.keys().cloned().map(|mut key| {
            if key.ed25519 == rotation.pairs[1].public().ed25519 {
                let log = log.parse().unwrap();
                key.range = Some(lazaret_receipt::trust::Range {
                    from_index,
                    log,
                    until_index: None,
                });
            }
            key
        });
        TrustStore::new(keys).unwrap()
    };
    let proof = rotation.proof(4);
    let code = |trust: &TrustStore| rotation.code(trust, 4, Some(&proof));
    assert_eq!(code(&ranged(4, rotation.origin.as_str())), "verified");
    assert_eq!(code(&ranged(5, rotation.origin.as_str())), "key_not_yet");
    assert_eq!(code(&ranged(0, "sample/other")), "key_other_log");
}

#[test]
fn a_revoked_key_counts_for_nothing_but_what_an_older_log_holds() {
    let rotation = Rotation::new();
    let revoked = |sound_before_index| {
        let mut trust = rotation.trust.clone();
        let reason = "stolen".parse().unwrap();
        let revocation = Revocation {
            reason,
            sound_before_index,
        };
        assert!(trust.revoke(rotation.pairs[0].public().p256_id(), revocation));
        trust
    };
    let proof = |index: usize| rotation.proof(index as u64);
    for index in 0..4 {
        let code = |trust: &TrustStore| rotation.code(trust, index, Some(&proof(index)));
        assert_eq!(code(&revoked(None)), "key_revoked");
        let expected = if index < 2 { "verified" } else { "key_revoked" };
        assert_eq!(code(&revoked(Some(2))), expected);
        assert_eq!(rotation.code(&revoked(Some(2)), index, None), "key_revoked");
    }
}

#[test]
fn each_changed_byte_of_an_inclusion_proof_is_refused() {
    let rotation = Rotation::new();
    let proof = rotation.proof(2).to_bytes();
    for at in 0..proof.len() {
        let mut changed = proof.clone();
        changed[at] ^= 1;
        let expected = Expectations {
            inclusion: Some(changed),
            ..Expectations::default()
        };
        let refused = verify(&rotation.receipts[2], &rotation.trust, &expected);
        assert!(refused.is_err(), "byte {at}");
    }
}

#[test]
fn what_is_expected_must_hold() {
    let sample = Sample::of(Kind::Run);
    let closure = samples::profile().unwrap().closure_sha256;
    let other = Sha256Digest::of(b"other");
    let code = |expectations: &[String]| {
        let mut expected = Expectations::default();
        expectations
            .iter()
            .for_each(|text| expected.add(text).unwrap());
        verify(&sample.receipt, &sample.trust, &expected).map_err(|refused| refused.code())
    };
    let all = [
        "kind=run".to_owned(),
        format!("closure={closure}"),
        format!("subject={}", Sha256Digest::of(b"input")),
        "profile=json-python-bwrap-v1".to_owned(),
        "task=task-1".to_owned(),
    ];
    assert!(code(&all).is_ok());
    for wrong in [
        "kind=blocked".to_owned(),
        format!("closure={other}"),
        format!("subject={other}"),
        "profile=json-python-bwrap-v2-candidate".to_owned(),
        "task=task-2".to_owned(),
    ] {
        assert_eq!(code(&[wrong]), Err("not_as_expected"));
    }
    assert_eq!(code(&["logged".to_owned()]), Err("not_logged"));
}

#[test]
fn no_receipt_calls_itself_true() {
    use lazaret_receipt::verify::Claim;
    for kind in Kind::ALL.iter().copied() {
        let sample = Sample::of(kind);
        let verified = sample.verify(&sample.receipt).unwrap();
        assert_eq!(
            verified.checked,
            [Claim::Form, Claim::Signatures, Claim::Statement]
        );
        assert!(verified.not_checked.contains(&Claim::Truth));
        assert!(verified.not_checked.contains(&Claim::LogPlace));
    }
}

#[test]
fn statements_read_back_as_they_were_written() {
    for kind in Kind::ALL.iter().copied() {
        let statement = samples::statement(kind).unwrap();
        let bytes = statement.to_bytes().unwrap();
        assert_eq!(Statement::parse(&bytes).unwrap(), statement);
    }
}
