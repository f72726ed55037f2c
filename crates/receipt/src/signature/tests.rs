//! Published vectors, and signatures that must not pass.

use super::*;

fn hex(text: &str) -> Vec<u8> {
    hex::decode(text).unwrap()
}

fn hex32(text: &str) -> [u8; 32] {
    hex(text).try_into().unwrap()
}

/// RFC 8032, section 7.1, tests 2 and 3: seed, public key, message, signature.
const RFC_8032: [[&str; 4]; 2] = [
    [
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ],
    [
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac\
         18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ],
];

#[test]
fn ed25519_gives_the_published_signatures() {
    for [seed, public, message, signature] in RFC_8032 {
        let secret = Ed25519Secret::from_seed(&hex32(seed));
        assert_eq!(secret.public().to_bytes(), hex32(public));
        let (message, signature) = (hex(message), hex(signature));
        assert_eq!(secret.sign(&message).to_vec(), signature);
        assert_eq!(secret.public().verify(&message, &signature), Ok(()));
    }
}

/// RFC 6979, appendix A.2.5: P-256 with SHA-256. The scalar, and per message r
/// and s as published. The second one's s is high, so ours is the order less it.
const RFC_6979_SCALAR: &str = "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721";
const RFC_6979: [[&str; 3]; 2] = [
    [
        "sample",
        "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716",
        "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8",
    ],
    [
        "test",
        "f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367",
        "019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083",
    ],
];

fn rfc_6979_signature(r: &str, s: &str) -> p256::ecdsa::Signature {
    p256::ecdsa::Signature::from_scalars(hex32(r), hex32(s)).unwrap()
}

#[test]
fn p256_gives_the_published_signatures_with_low_s() {
    let secret = P256Secret::from_scalar(&hex32(RFC_6979_SCALAR)).unwrap();
    for [message, r, s] in RFC_6979 {
        let published = rfc_6979_signature(r, s);
        let expected = published.normalize_s().to_der().as_bytes().to_vec();
        assert_eq!(secret.sign(message.as_bytes()), expected, "{message}");
        assert_eq!(
            secret.public().verify(message.as_bytes(), &expected),
            Ok(())
        );
    }
}

#[test]
fn the_high_one_of_two_p256_signatures_is_refused() {
    let secret = P256Secret::from_scalar(&hex32(RFC_6979_SCALAR)).unwrap();
    let [message, r, s] = RFC_6979[0];
    let high = rfc_6979_signature(r, s);
    assert_ne!(high.normalize_s(), high);
    // It is a valid signature for who does not care: the control of this test.
    let lenient = secret.public().0;
    assert!(lenient.verify(message.as_bytes(), &high).is_ok());
    let verified = secret
        .public()
        .verify(message.as_bytes(), high.to_der().as_bytes());
    assert_eq!(verified, Err(SignatureError::HighS));
}

#[test]
fn a_p256_signature_has_one_encoding() {
    let secret = P256Secret::from_scalar(&hex32(RFC_6979_SCALAR)).unwrap();
    let signature = secret.sign(b"sample");
    let public = secret.public();
    assert_eq!(public.verify(b"sample", &signature), Ok(()));
    let mut trailing = signature.clone();
    trailing.push(0);
    let mut long_length = vec![0x30, 0x81];
    long_length.extend(&signature[1..]);
    // A leading zero in front of r, which is already positive by one.
    let mut padded = signature.clone();
    padded[1] += 1;
    padded[3] += 1;
    padded.insert(4, 0);
    let raw = p256::ecdsa::Signature::from_der(&signature)
        .unwrap()
        .to_bytes();
    for other in [
        &trailing[..],
        &long_length,
        &padded,
        raw.as_slice(),
        &[],
        &signature[..20],
    ] {
        assert_eq!(
            public.verify(b"sample", other),
            Err(SignatureError::Encoding)
        );
    }
}

#[test]
fn zero_scalars_are_no_signature() {
    let secret = P256Secret::from_scalar(&hex32(RFC_6979_SCALAR)).unwrap();
    for zero in [
        hex("3006020100020101"),
        hex("3006020101020100"),
        hex("3006020100020100"),
    ] {
        assert_eq!(
            secret.public().verify(b"x", &zero),
            Err(SignatureError::Encoding)
        );
    }
}

/// The order of the group of Ed25519, little-endian.
const ORDER: &str = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";

#[test]
fn an_ed25519_scalar_beyond_the_order_is_refused() {
    let [seed, _, message, signature] = RFC_8032[0];
    let public = Ed25519Secret::from_seed(&hex32(seed)).public();
    let mut malleated = hex(signature);
    // s + order: the same equation holds.
    let mut carry = 0_u16;
    for (byte, add) in malleated[32..].iter_mut().zip(hex(ORDER)) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    assert_eq!(carry, 0, "the sum still fits");
    assert!(public.verify(&hex(message), &malleated).is_err());
}

#[test]
fn points_of_small_order_and_second_spellings_are_no_public_keys() {
    let points = [
        // Order 1, 2, 4, 4, 8, 8, 8, 8.
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        // The same with a coordinate beyond the field's order, or minus zero.
        "0100000000000000000000000000000000000000000000000000000000000080",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    ];
    for point in points {
        assert_eq!(
            Ed25519Public::from_bytes(&hex(point)),
            Err(PublicKeyError),
            "{point}"
        );
    }
    // y = p + 4 is a second spelling of y = 4, and y = 4 is a point of large order.
    let second = "f1ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f";
    let first = "0400000000000000000000000000000000000000000000000000000000000000";
    assert!(Ed25519Public::from_bytes(&hex(first)).is_ok());
    assert_eq!(Ed25519Public::from_bytes(&hex(second)), Err(PublicKeyError));
}

#[test]
fn each_changed_byte_of_a_signature_is_refused() {
    let ed25519 = Ed25519Secret::from_seed(&[7; 32]);
    let signature = ed25519.sign(b"message");
    for at in 0..signature.len() {
        for bit in [1, 0x80] {
            let mut changed = signature;
            changed[at] ^= bit;
            assert!(ed25519.public().verify(b"message", &changed).is_err());
        }
    }
    let p256 = P256Secret::from_scalar(&[7; 32]).unwrap();
    let signature = p256.sign(b"message");
    for at in 0..signature.len() {
        for bit in [1, 0x80] {
            let mut changed = signature.clone();
            changed[at] ^= bit;
            assert!(p256.public().verify(b"message", &changed).is_err());
        }
    }
}

#[test]
fn a_public_key_has_one_encoding() {
    let p256 = P256Secret::from_scalar(&[7; 32]).unwrap().public();
    let spki = p256.to_spki();
    assert_eq!(P256Public::from_spki(&spki), Ok(p256));
    let mut hybrid = spki.clone();
    hybrid[26] = 6 + (spki[90] & 1);
    let mut compressed = spki[..27 + 32].to_vec();
    compressed[26] = 2 + (spki[90] & 1);
    for other in [
        &hybrid[..],
        &compressed,
        &spki[..90],
        &[spki.as_slice(), &[0]].concat(),
    ] {
        assert_eq!(P256Public::from_spki(other), Err(PublicKeyError));
    }
    let ed25519 = Ed25519Secret::from_seed(&[7; 32]).public();
    let spki = ed25519.to_spki();
    assert_eq!(Ed25519Public::from_spki(&spki), Ok(ed25519));
    assert_eq!(Ed25519Public::from_spki(&spki[..43]), Err(PublicKeyError));
    assert_eq!(P256Public::from_spki(&spki), Err(PublicKeyError));
}
