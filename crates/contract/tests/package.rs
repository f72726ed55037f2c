//! Packages: what is refused, where, and that no field can widen anything.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail by panicking"
)]

use std::collections::BTreeMap;

use lazaret_contract::bundled::Bundled;
use lazaret_contract::json::{self, Bounds, Value};
use lazaret_contract::package::{
    BindingCheck, CODE_PATH, DESCRIPTOR_PATH, MANIFEST_PATH, PackageFiles, content_digest, inspect,
    seal,
};
use lazaret_contract::problem::{Place, ProblemCode};
use proptest::prelude::*;

type Files = BTreeMap<String, Vec<u8>>;

fn sound() -> Files {
    let bundled = Bundled::find("local.time-ledger-summary").unwrap();
    bundled
        .files
        .iter()
        .map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec()))
        .collect()
}

fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

fn document(files: &Files, path: &str) -> Value {
    json::parse_bounded(&files[path], Bounds::document(1 << 20)).unwrap()
}

/// The value at `pointer`, which has no escapes.
fn at<'a>(root: &'a mut Value, pointer: &str) -> &'a mut Value {
    pointer
        .split('/')
        .skip(1)
        .fold(root, |value, token| match value {
            Value::Object(members) => members.get_mut(token).unwrap(),
            Value::Array(items) => &mut items[token.parse::<usize>().unwrap()],
            _ => unreachable!("nothing below {token}"),
        })
}

/// Lists the files in the manifest as they are, so that only the fault under
/// test is left.
fn relist(files: &mut Files) {
    let bare: Vec<(String, Vec<u8>)> = files.clone().into_iter().collect();
    let binding = lazaret_contract::profiles::Binding {
        profile: lazaret_contract::profiles::PROFILE_V1.to_owned(),
        closure: lazaret_contract::package::UNBOUND,
    };
    let Ok(bare) = PackageFiles::new(bare) else {
        return;
    };
    // Sealing a copy whose descriptor is left alone: only its listing is used.
    let Ok(sealed) = seal(&bare, &binding) else {
        return;
    };
    let listing = json::parse_bounded(
        sealed.get(MANIFEST_PATH).unwrap(),
        Bounds::document(1 << 20),
    )
    .unwrap();
    let mut manifest = document(files, MANIFEST_PATH);
    let (Value::Object(manifest_fields), Value::Object(mut listing)) = (&mut manifest, listing)
    else {
        return;
    };
    let mut entries = listing.remove("files").unwrap();
    if let Value::Array(entries) = &mut entries {
        for entry in entries {
            let Value::Object(fields) = entry else {
                continue;
            };
            let Some(Value::String(path)) = fields.get("path").cloned() else {
                continue;
            };
            let digest = lazaret_contract::digest::Sha256Digest::of(&files[&path]);
            fields.insert("sha256".to_owned(), digest.to_string().into());
            fields.insert(
                "size_bytes".to_owned(),
                i64::try_from(files[&path].len()).unwrap().into(),
            );
        }
    }
    manifest_fields.insert("files".to_owned(), entries);
    files.insert(MANIFEST_PATH.to_owned(), json::write_pretty(&manifest));
}

fn problems_of(files: &Files) -> Vec<(String, String, ProblemCode)> {
    let inspected =
        PackageFiles::new(files.clone()).and_then(|files| inspect(&files, BindingCheck::Form));
    let Err(problems) = inspected else {
        return Vec::new();
    };
    assert!(
        problems
            .to_string()
            .bytes()
            .all(|b| b == b'\n' || (b' '..=b'~').contains(&b)),
        "{problems}"
    );
    problems
        .list()
        .iter()
        .map(|problem| {
            let place = match &problem.place {
                Place::Whole => String::new(),
                Place::Pointer(pointer) => pointer.as_str().to_owned(),
                Place::Line { line, column } => format!("{line}:{column}"),
            };
            (problem.file.clone(), place, problem.code)
        })
        .collect()
}

/// The package with one value of one document replaced.
fn with(path: &str, pointer: &str, new: &str) -> Files {
    let mut files = sound();
    let mut root = document(&files, path);
    *at(&mut root, pointer) = value(new);
    files.insert(path.to_owned(), json::write_pretty(&root));
    if path != MANIFEST_PATH {
        relist(&mut files);
    }
    files
}

fn assert_only(files: &Files, file: &str, place: &str, code: ProblemCode) {
    assert_eq!(
        problems_of(files),
        [(file.to_owned(), place.to_owned(), code)]
    );
}

#[test]
fn the_sound_package_has_no_problem_and_the_helpers_leave_it_so() {
    assert_eq!(problems_of(&sound()), []);
    let mut files = sound();
    relist(&mut files);
    assert!(files == sound());
}

#[test]
fn no_field_of_the_manifest_widens_anything() {
    use ProblemCode::{BadName, NotAllowed, OutOfBounds, ReservedId, WrongType};
    let rows = [
        ("/permissions/network", "true", NotAllowed),
        ("/permissions/network", "[]", NotAllowed),
        ("/permissions/network", "null", NotAllowed),
        ("/permissions/network", "0", NotAllowed),
        ("/permissions/secrets", "[\"TOKEN\"]", NotAllowed),
        ("/permissions/secrets", "{}", NotAllowed),
        ("/permissions/env", "[\"PATH\"]", NotAllowed),
        ("/permissions/env", "false", NotAllowed),
        ("/permissions/dependencies", "[\"requests\"]", NotAllowed),
        ("/permissions", "[]", WrongType),
        ("/no_learning", "false", NotAllowed),
        ("/no_learning", "1", NotAllowed),
        ("/schema_version", "3", NotAllowed),
        ("/schema_version", "2.0", NotAllowed),
        ("/provenance", "\"signed\"", NotAllowed),
        (
            "/contributes/adapters",
            "[\"adapters/adapter.json\",\"adapters/second.json\"]",
            NotAllowed,
        ),
        ("/contributes/adapters", "[\"../adapter.json\"]", NotAllowed),
        ("/contributes/adapters", "[]", NotAllowed),
        ("/id", "\"work.json-format\"", ReservedId),
        ("/id", "\"seraph.tool.other\"", ReservedId),
        ("/id", "\"Local.time-ledger-summary\"", BadName),
        ("/id", "\"local.time-ledger-summary.\"", BadName),
        ("/id", "\"l\\u043ecal.time-ledger-summary\"", BadName),
        ("/id", "7", WrongType),
        ("/version", "0", OutOfBounds),
        ("/version", "1000000000", OutOfBounds),
        ("/version", "99999999999999999999", OutOfBounds),
        ("/version", "1.0", WrongType),
        ("/version", "true", WrongType),
        ("/name", "\"\"", OutOfBounds),
        ("/name", "\"a\\u202eb\"", NotAllowed),
        ("/name", "\"a\\nb\"", NotAllowed),
        ("/name", "\"a\\u001b[2J\"", NotAllowed),
        ("/name", "\"a\\u200bb\"", NotAllowed),
        ("/summary", "[]", WrongType),
        ("/publisher", "null", WrongType),
        ("/license", "\"\\u0000\"", NotAllowed),
        ("/files/0/sha256", "\"00\"", BadName),
    ];
    for (pointer, new, code) in rows {
        let files = with(MANIFEST_PATH, pointer, new);
        let found = problems_of(&files);
        let owed = (MANIFEST_PATH.to_owned(), pointer.to_owned(), code);
        assert!(found.contains(&owed), "{pointer} = {new}: {found:?}");
    }
}

#[test]
fn no_field_of_the_descriptor_widens_anything() {
    use ProblemCode::{
        BadName, Binding, Mismatch, NotAllowed, OutOfBounds, ReservedId, SchemaKeyword, WrongType,
    };
    let rows = [
        ("/adapter", "\"sum.marize\"", BadName),
        ("/adapter", "\"Summarize\"", BadName),
        ("/schema_version", "2", NotAllowed),
        ("/summary", "\"x\\ty\"", NotAllowed),
        ("/code/path", "\"other.py\"", NotAllowed),
        ("/code/path", "\"../adapter.py\"", NotAllowed),
        ("/code/size_bytes", "32769", OutOfBounds),
        ("/code/size_bytes", "1", Mismatch),
        (
            "/code/sha256",
            "\"0000000000000000000000000000000000000000000000000000000000000000\"",
            Mismatch,
        ),
        ("/input_schema", "\"any-strict-json\"", ReservedId),
        ("/output_schema", "\"any-strict-json\"", ReservedId),
        ("/input_schema", "true", WrongType),
        (
            "/input_schema/properties/rows/items/additionalProperties",
            "true",
            ProblemCode::MissingField,
        ),
        ("/output_schema/type", "\"any\"", SchemaKeyword),
        ("/input_schema_sha256", "\"x\"", BadName),
        (
            "/output_schema_sha256",
            "\"0000000000000000000000000000000000000000000000000000000000000000\"",
            Mismatch,
        ),
        ("/profile/id", "\"json-python-bwrap-v3\"", Binding),
        ("/profile/id", "\"none\"", Binding),
        ("/profile/status", "\"candidate\"", NotAllowed),
        ("/profile/closure_sha256", "\"0\"", BadName),
        ("/no_learning", "false", NotAllowed),
        ("/resources", "{}", ProblemCode::MissingField),
    ];
    for (pointer, new, code) in rows {
        let found = problems_of(&with(DESCRIPTOR_PATH, pointer, new));
        assert!(
            found.iter().any(|(file, place, each)| {
                file == DESCRIPTOR_PATH && pointer.starts_with(place.as_str()) && *each == code
            }),
            "{pointer} = {new}: {found:?}"
        );
    }
    let Value::Object(resources) = lazaret_contract::package::resources() else {
        unreachable!()
    };
    for (name, limit) in &resources {
        let Value::Integer(limit) = limit else {
            unreachable!("{name} is no integer")
        };
        let limit = limit.to_i64().unwrap();
        for other in [
            (limit + 1).to_string(),
            (limit - 1).to_string(),
            format!("{limit}.0"),
            "null".into(),
            "\"2\"".into(),
        ] {
            let pointer = format!("/resources/{name}");
            assert_only(
                &with(DESCRIPTOR_PATH, &pointer, &other),
                DESCRIPTOR_PATH,
                &pointer,
                NotAllowed,
            );
        }
    }
}

/// The pointers of all objects in a document.
fn objects(value: &Value, pointer: &str) -> Vec<String> {
    let mut found = Vec::new();
    match value {
        Value::Object(members) => {
            found.push(pointer.to_owned());
            for (key, member) in members {
                found.extend(objects(member, &format!("{pointer}/{key}")));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                found.extend(objects(item, &format!("{pointer}/{index}")));
            }
        }
        _ => {}
    }
    found
}

#[test]
fn an_unknown_field_is_refused_in_every_object() {
    for path in [MANIFEST_PATH, DESCRIPTOR_PATH] {
        for pointer in objects(&document(&sound(), path), "") {
            let mut files = sound();
            let mut root = document(&files, path);
            let Value::Object(members) = at(&mut root, &pointer) else {
                unreachable!()
            };
            members.insert("extra".to_owned(), Value::Null);
            files.insert(path.to_owned(), json::write_pretty(&root));
            let found = problems_of(&files);
            assert!(
                found
                    .iter()
                    .any(|(_, place, _)| place.starts_with(&format!("{pointer}/extra"))),
                "{path}{pointer}: {found:?}"
            );
        }
    }
}

#[test]
fn every_field_of_every_object_must_be_there() {
    for path in [MANIFEST_PATH, DESCRIPTOR_PATH] {
        for pointer in objects(&document(&sound(), path), "") {
            let mut root = document(&sound(), path);
            let Value::Object(members) = at(&mut root, &pointer).clone() else {
                unreachable!()
            };
            for key in members.keys() {
                let mut root = root.clone();
                let Value::Object(fields) = at(&mut root, &pointer) else {
                    unreachable!()
                };
                fields.remove(key);
                let mut files = sound();
                files.insert(path.to_owned(), json::write_pretty(&root));
                assert!(
                    !problems_of(&files).is_empty(),
                    "{path}{pointer} without {key} was taken"
                );
            }
        }
    }
}

#[test]
fn hostile_text_is_refused_or_shown_as_escapes() {
    // H05
    for hostile in [
        "\\u001b[2J",
        "\\u001b]52;c;eA==\\u0007",
        "a\\u0007b",
        "\\u009b2J",
        "a\\rb",
        "a\\bb",
        "\\u202e",
        "\\u2066",
        "\\u200b",
        "\\ufeff",
        "\\u2028",
        "\\u00a0",
        "\\u3164",
    ] {
        let files = with(MANIFEST_PATH, "/name", &format!("\"x{hostile}\""));
        assert_only(&files, MANIFEST_PATH, "/name", ProblemCode::NotAllowed);
        // As a key, it is refused as unknown, and what is printed is checked there.
        let mut files = sound();
        files.insert(
            MANIFEST_PATH.to_owned(),
            format!("{{\"{hostile}\": \"{hostile}\"}}").into_bytes(),
        );
        assert!(!problems_of(&files).is_empty());
    }
    let marks = format!("\"{}\"", "\u{301}".repeat(1000));
    assert_only(
        &with(MANIFEST_PATH, "/name", &marks),
        MANIFEST_PATH,
        "/name",
        ProblemCode::OutOfBounds,
    );
    // A look-alike letter is a letter; what is approved is known by its digest.
    let look_alike = with(MANIFEST_PATH, "/name", "\"Tim\\u0435 ledger\"");
    let package = inspect(&PackageFiles::new(look_alike).unwrap(), BindingCheck::Form).unwrap();
    assert_eq!(
        lazaret_contract::visible::escape(&package.manifest.name),
        "Tim\\u{435} ledger"
    );
}

#[test]
fn listing_and_files_must_be_the_same() {
    let mut files = sound();
    files.insert("notes.txt".to_owned(), b"x".to_vec());
    assert_only(&files, "notes.txt", "", ProblemCode::UnlistedFile);
    relist(&mut files);
    assert_eq!(problems_of(&files), [], "a listed extra file is no problem");

    let mut files = sound();
    files.remove("README.md");
    assert_only(&files, MANIFEST_PATH, "/files/0", ProblemCode::MissingFile);

    let mut files = sound();
    files.get_mut("README.md").unwrap().push(b'\n');
    let owed = ["/files/0/size_bytes", "/files/0/sha256"].map(|place| {
        (
            MANIFEST_PATH.to_owned(),
            place.to_owned(),
            ProblemCode::Mismatch,
        )
    });
    assert_eq!(problems_of(&files), owed);
}

#[test]
fn the_manifest_names_files_by_plain_paths_once() {
    for (new, code) in [
        ("\"../x\"", ProblemCode::BadName),
        ("\"/etc/passwd\"", ProblemCode::BadName),
        ("\"a/../b\"", ProblemCode::BadName),
        ("\"a//b\"", ProblemCode::BadName),
        ("\"./a\"", ProblemCode::BadName),
        ("\"\"", ProblemCode::BadName),
        ("\"a\\u0000\"", ProblemCode::BadName),
        ("\"a\\\\b\"", ProblemCode::BadName),
        ("\"README.md \"", ProblemCode::BadName),
        ("\"manifest.json\"", ProblemCode::BadName),
        ("\"adapter.py\"", ProblemCode::Duplicate),
    ] {
        let found = problems_of(&with(MANIFEST_PATH, "/files/0/path", new));
        assert!(
            found
                .iter()
                .any(|(_, place, each)| place.starts_with("/files/") && *each == code),
            "{new}: {found:?}"
        );
    }
}

#[test]
fn each_of_the_fixed_files_must_be_there() {
    for path in [MANIFEST_PATH, DESCRIPTOR_PATH, CODE_PATH] {
        let mut files = sound();
        files.remove(path);
        let found = problems_of(&files);
        assert!(
            found.contains(&(path.to_owned(), String::new(), ProblemCode::MissingFile)),
            "{path}: {found:?}"
        );
    }
}

#[test]
fn documents_are_strict_json() {
    for (path, bytes) in [
        (MANIFEST_PATH, &b"{\"id\":1,\"id\":2}"[..]),
        (DESCRIPTOR_PATH, b"\xef\xbb\xbf{}"),
        ("evals/week.json", b"{,}"),
        (DESCRIPTOR_PATH, b"[NaN]"),
    ] {
        let mut files = sound();
        files.insert(path.to_owned(), bytes.to_vec());
        let found = problems_of(&files);
        assert!(
            found
                .iter()
                .any(|(file, _, code)| file == path && *code == ProblemCode::Json),
            "{path}: {found:?}"
        );
    }
}

#[test]
fn code_faults_are_told_with_line_and_column() {
    let mut files = sound();
    files.insert(
        CODE_PATH.to_owned(),
        "import lazaret\nx = '\u{202e}'\r\n".into(),
    );
    let found = problems_of(&files);
    for place in ["2:6", "2:8"] {
        assert!(
            found.contains(&(
                CODE_PATH.to_owned(),
                place.to_owned(),
                ProblemCode::CodeText
            )),
            "{found:?}"
        );
    }
}

#[test]
fn vectors_must_fit_the_schemas_and_be_few() {
    let mut files = with("evals/week.json", "/input/rows/0/minutes", "1441");
    relist(&mut files);
    assert_only(
        &files,
        "evals/week.json",
        "/input/rows/0/minutes",
        ProblemCode::Vector,
    );
    let mut files = sound();
    for extra in ["evals/a.json", "evals/b.json"] {
        files.insert(extra.to_owned(), files["evals/week.json"].clone());
    }
    relist(&mut files);
    assert_only(&files, "evals", "", ProblemCode::TooLarge);
}

#[test]
fn a_hundred_problems_are_bounded_and_still_a_refusal() {
    let mut files = sound();
    files.insert(CODE_PATH.to_owned(), "\0".repeat(500).into());
    let problems = inspect(&PackageFiles::new(files).unwrap(), BindingCheck::Form).unwrap_err();
    assert!(problems.list().len() <= 100 && problems.omitted() > 0);
}

#[test]
fn a_tombstone_denies_content_code_and_name() {
    let package = inspect(&PackageFiles::new(sound()).unwrap(), BindingCheck::Form).unwrap();
    let keys = package.denial_keys();
    assert_eq!(keys.id_and_version, "local.time-ledger-summary@1");
    // A renamed copy has another content, and the same code.
    let mut renamed = with(MANIFEST_PATH, "/id", "\"local.renamed\"");
    relist(&mut renamed);
    let renamed = inspect(&PackageFiles::new(renamed).unwrap(), BindingCheck::Form).unwrap();
    assert_ne!(renamed.denial_keys().content, keys.content);
    assert_eq!(renamed.denial_keys().code, keys.code);
    assert_ne!(
        renamed.digests.authority, package.digests.authority,
        "the capability is another one"
    );
}

proptest! {
    #[test]
    fn a_changed_bit_anywhere_changes_the_content_digest(place in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let files = PackageFiles::new(sound()).unwrap();
        let before = content_digest(&files);
        let mut at = place.index(files.total_bytes());
        let changed = sound().into_iter().map(|(path, mut bytes)| {
            if at < bytes.len() {
                bytes[at] ^= 1 << bit;
                at = usize::MAX;
            } else {
                at = at.saturating_sub(bytes.len());
            }
            (path, bytes)
        });
        let changed = PackageFiles::new(changed.collect::<Vec<_>>()).unwrap();
        prop_assert_ne!(content_digest(&changed), before);
    }

    #[test]
    fn the_content_digest_knows_no_order_of_files(seed in any::<u64>()) {
        let mut files: Vec<_> = sound().into_iter().collect();
        let length = files.len() as u64;
        files.rotate_left(usize::try_from(seed % length).unwrap());
        files.reverse();
        let shuffled = PackageFiles::new(files).unwrap();
        prop_assert_eq!(content_digest(&shuffled), content_digest(&PackageFiles::new(sound()).unwrap()));
    }

    #[test]
    fn moving_bytes_between_files_changes_the_content_digest(cut in 1..100_usize) {
        let mut files = sound();
        let before = content_digest(&PackageFiles::new(files.clone()).unwrap());
        let tail = files.get_mut("README.md").unwrap().split_off(cut);
        files.get_mut(CODE_PATH).unwrap().splice(0..0, tail);
        prop_assert_ne!(content_digest(&PackageFiles::new(files).unwrap()), before);
    }

    #[test]
    fn a_changed_byte_anywhere_refuses_the_package(place in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut files = sound();
        let paths: Vec<String> = files.keys().cloned().collect();
        let path = &paths[place.index(paths.len())];
        let bytes = files.get_mut(path).unwrap();
        let at = place.index(bytes.len());
        bytes[at] ^= 1 << bit;
        // The manifest is in no digest that the package itself holds.
        prop_assert!(path == MANIFEST_PATH || !problems_of(&files).is_empty());
    }
}
