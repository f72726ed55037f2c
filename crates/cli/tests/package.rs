//! `lazaret package`, through the real binary: what authors and reviewers see, and
//! that nothing of a package is ever run for it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{Place, Said};

const SUMMARY: &str = "local.time-ledger-summary";

/// A copy of a package of this tree, with the modes that a package must have.
fn package(place: &Place, name: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packages")
        .join(SUMMARY);
    let to = place.at("work").join(name);
    copy(&from, &to);
    to
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            write(&target, &fs::read(&path).unwrap());
        }
    }
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
}

/// Replaces the first `was`, which must be there.
fn edit(path: &Path, was: &str, is: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(was), "{was} is not in {}", path.display());
    write(path, text.replacen(was, is, 1).as_bytes());
}

fn json(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

fn codes(said: &Said) -> Vec<String> {
    json(said)["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["code"].as_str().unwrap().to_owned())
        .collect()
}

fn printable(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte))
}

type Damage = fn(&Path);

/// One damage for each code of the vocabulary.
const DAMAGES: [(&str, Damage); 18] = [
    ("json", |dir| {
        edit(&dir.join("manifest.json"), "{", "{{");
    }),
    ("missing_field", |dir| {
        edit(
            &dir.join("manifest.json"),
            "  \"license\": \"MIT OR Apache-2.0\",\n",
            "",
        );
    }),
    ("unknown_field", |dir| {
        edit(&dir.join("manifest.json"), "{", "{\"root\": true,");
    }),
    ("wrong_type", |dir| {
        edit(
            &dir.join("manifest.json"),
            "\"version\": 1",
            "\"version\": \"1\"",
        );
    }),
    ("out_of_bounds", |dir| {
        edit(
            &dir.join("manifest.json"),
            "\"version\": 1",
            "\"version\": 0",
        );
    }),
    ("not_allowed", |dir| {
        edit(
            &dir.join("manifest.json"),
            "\"network\": false",
            "\"network\": true",
        );
    }),
    ("duplicate", |dir| {
        edit(
            &dir.join("manifest.json"),
            "evals/empty.json",
            "evals/week.json",
        );
    }),
    ("bad_name", |dir| {
        edit(
            &dir.join("manifest.json"),
            "local.time-ledger-summary",
            "Local.x",
        );
    }),
    ("reserved_id", |dir| {
        edit(
            &dir.join("manifest.json"),
            "local.time-ledger-summary",
            "seraph.x",
        );
    }),
    ("schema_keyword", |dir| {
        edit(
            &dir.join("adapters/adapter.json"),
            "\"maxLength\": 40,",
            "\"maxLength\": 40, \"pattern\": \"a*\",",
        );
    }),
    ("schema_limit", |dir| {
        edit(
            &dir.join("adapters/adapter.json"),
            "\"maxItems\": 1000",
            "\"maxItems\": 5000",
        );
    }),
    ("mismatch", |dir| {
        edit(&dir.join("adapter.py"), "len(rows)", "len(rows) ");
    }),
    ("missing_file", |dir| {
        fs::remove_file(dir.join("README.md")).unwrap();
    }),
    ("unlisted_file", |dir| write(&dir.join("notes.txt"), b"x")),
    ("too_large", |dir| {
        for name in ["a", "b"] {
            write(&dir.join(format!("evals/{name}.json")), b"{}");
        }
    }),
    ("code_text", |dir| {
        edit(&dir.join("adapter.py"), "rows", "ro\u{200b}ws");
    }),
    ("vector", |dir| {
        edit(
            &dir.join("evals/week.json"),
            "\"minutes\": 90",
            "\"minutes\": -1",
        );
    }),
    ("binding", |dir| {
        let path = dir.join("adapters/adapter.json");
        let document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let closure = document["profile"]["closure_sha256"].as_str().unwrap();
        edit(&path, closure, &"0".repeat(64));
    }),
];

#[test]
fn each_kind_of_problem_is_told_with_file_place_reason_and_what_to_do() {
    let place = Place::new();
    for (code, damage) in DAMAGES {
        let dir = package(&place, code);
        damage(&dir);
        let said = place.call(&["package", "validate", code, "--json"]);
        assert_eq!(said.code, Some(1), "{code}: {said:?}");
        assert!(codes(&said).contains(&code.to_owned()), "{code}: {said:?}");
        let report = json(&said);
        assert_eq!(report["schema"], "lazaret-package-validate/1");
        assert_eq!(
            (&report["ok"], &report["content_sha256"]),
            (&Value::Bool(false), &Value::Null)
        );
        for row in report["problems"].as_array().unwrap() {
            assert!(!row["what"].as_str().unwrap().is_empty(), "{code}");
            assert!(!row["remedy"].as_str().unwrap().is_empty(), "{code}");
        }
        let said = place.call(&["package", "validate", code]);
        assert_eq!(said.code, Some(1));
        assert!(
            said.out.contains(&format!("[{code}]\n  to do: ")),
            "{said:?}"
        );
        let said = place.call(&["package", "inspect", code]);
        assert_eq!(said.code, Some(1), "{code}: {said:?}");
        assert!(!said.out.contains("To be approved"), "{code}: {said:?}");
    }
    assert_eq!(place.home_entries(), Vec::<String>::new());
}

#[test]
fn several_problems_are_told_at_once() {
    let place = Place::new();
    let dir = package(&place, "p");
    for (_, damage) in DAMAGES.iter().filter(|(code, _)| {
        [
            "not_allowed",
            "code_text",
            "vector",
            "unlisted_file",
            "binding",
        ]
        .contains(code)
    }) {
        damage(&dir);
    }
    let found = codes(&place.call(&["package", "validate", "p", "--json"]));
    for code in [
        "not_allowed",
        "code_text",
        "vector",
        "unlisted_file",
        "binding",
        "mismatch",
    ] {
        assert!(found.contains(&code.to_owned()), "{code}: {found:?}");
    }
    let said = place.call(&["package", "validate", "p"]);
    assert!(
        said.out.contains("manifest.json at /permissions/network: "),
        "{said:?}"
    );
    assert!(said.out.contains("adapter.py:"), "{said:?}");
}

#[test]
fn a_good_package_is_said_to_be_good() {
    let place = Place::new();
    package(&place, "p");
    let said = place.call(&["package", "validate", "p"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    let said = place.call(&["package", "validate", "p", "--json"]);
    let report = json(&said);
    assert_eq!((said.code, &report["ok"]), (Some(0), &Value::Bool(true)));
    assert_eq!(report["package"], "local.time-ledger-summary@1");
    assert_eq!(place.home_entries(), Vec::<String>::new());
}

#[test]
fn what_cannot_be_read_safely_refuses_the_directory() {
    let place = Place::new();
    let damages: [(&str, Damage); 5] = [
        ("is or passes through a symbolic link", |dir| {
            std::os::unix::fs::symlink("/etc/hostname", dir.join("link.txt")).unwrap();
        }),
        ("hard links", |dir| {
            fs::hard_link(dir.join("README.md"), dir.join("again.md")).unwrap();
        }),
        ("not a regular file", |dir| {
            nix::unistd::mkfifo(&dir.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        }),
        ("is a directory that a package may not have", |dir| {
            fs::create_dir(dir.join("src")).unwrap();
            write(&dir.join("src/a.py"), b"");
        }),
        ("execute", |dir| {
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(dir.join("adapter.py"), mode).unwrap();
        }),
    ];
    for (index, (what, damage)) in damages.into_iter().enumerate() {
        let name = format!("p{index}");
        damage(&package(&place, &name));
        for command in ["validate", "inspect"] {
            let said = place.call(&["package", command, &name]);
            assert_eq!(said.code, Some(1), "{what}: {said:?}");
            assert!(said.out.contains(what), "{what}: {said:?}");
            assert!(said.out.contains("[directory]\n  to do: "), "{said:?}");
        }
    }
    let said = place.call(&["package", "validate", "nowhere", "--json"]);
    assert_eq!(
        (said.code, codes(&said)),
        (Some(1), vec!["directory".to_owned()])
    );
}

#[test]
fn hostile_text_reaches_the_terminal_escaped_only() {
    let place = Place::new();
    let dir = package(&place, "p");
    let hostile = "\u{202e}\u{1b}[2J\u{430}";
    edit(&dir.join("manifest.json"), "{", "{\"\u{202e}\u{430}\": 1,");
    edit(
        &dir.join("manifest.json"),
        "\"Lazaret\"",
        "\"\u{430}\\u001b[2J\"",
    );
    edit(&dir.join("adapter.py"), "rows", hostile);
    write(&dir.join("\u{1b}[31m.md"), b"");
    for arguments in [
        &["package", "validate", "p"][..],
        &["package", "validate", "p", "--json"],
        &["package", "inspect", "p", "--json"],
        &["package", "validate", "\u{1b}[2Jno"],
    ] {
        let said = place.call(arguments);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(printable(&said.out) && printable(&said.err), "{said:?}");
    }
    fs::remove_file(dir.join("\u{1b}[31m.md")).unwrap();
    let said = place.call(&["package", "validate", "p"]);
    assert!(
        printable(&said.out) && said.out.contains("\\u{202e}"),
        "{said:?}"
    );
}

#[test]
fn inspect_shows_all_that_will_be_approved() {
    let place = Place::new();
    let dir = package(&place, "p");
    let said = place.call(&["package", "inspect", "p"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    assert!(printable(&said.out));
    let code = fs::read_to_string(dir.join("adapter.py")).unwrap();
    for (index, line) in code.lines().enumerate() {
        let shown = format!("{:>5} | {line}\n", index + 1);
        assert!(said.out.contains(&shown), "{shown}: {}", said.out);
    }
    for word in [
        "network=false",
        "address space 128 MiB",
        "an integer from 0 to 1440",
        "unsigned-local",
        "evals/week.json",
    ] {
        assert!(said.out.contains(word), "{word}: {}", said.out);
    }
    let view = json(&place.call(&["package", "inspect", "p", "--json"]));
    assert_eq!(view["schema"], "lazaret-package-inspect/1");
    assert_eq!(view["code"].as_array().unwrap().len(), code.lines().count());
    let report = json(&place.call(&["package", "validate", "p", "--json"]));
    assert_eq!(
        view["subject"]["package"]["content_sha256"],
        report["content_sha256"]
    );
    assert!(
        said.out
            .contains(report["content_sha256"].as_str().unwrap())
    );
    assert_eq!(place.home_entries(), Vec::<String>::new());
}

#[test]
fn every_template_gives_a_package_without_a_problem() {
    let place = Place::new();
    for template in ["json-format", "summary", "blank"] {
        let name = format!("my-{template}");
        let made = place.call(&["package", "scaffold", &name, "--template", template]);
        assert_eq!(made.code, Some(0), "{made:?}");
        let said = place.call(&["package", "validate", &name, "--json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(json(&said)["package"], format!("local.{name}@1"));
        let said = place.call(&["package", "inspect", &name]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.out.contains("evals/example.json"), "{said:?}");
    }
    assert_eq!(place.home_entries(), Vec::<String>::new());
}

#[test]
fn scaffold_refuses_what_exists_and_ids_that_nobody_may_have() {
    let place = Place::new();
    fs::create_dir(place.at("work/there")).unwrap();
    std::os::unix::fs::symlink("nowhere", place.at("work/dangling")).unwrap();
    for (dir, id) in [
        ("there", "local.x"),
        ("dangling", "local.x"),
        ("new", "seraph.tool.json-format"),
        ("new", "Local.x"),
        ("new", "x"),
        ("New Dir", ""),
    ] {
        let mut arguments = vec!["package", "scaffold", dir, "--template", "blank"];
        if !id.is_empty() {
            arguments.extend(["--id", id]);
        }
        let said = place.call(&arguments);
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
        assert!(said.err.contains("  to do: "), "{said:?}");
    }
    assert_eq!(fs::read_dir(place.at("work/there")).unwrap().count(), 0);
    assert!(!place.at("work/new").exists());
    assert!(!place.at("work/nowhere").exists());
}

#[test]
fn code_that_would_leave_a_mark_is_never_run() {
    let place = Place::new();
    let dir = package(&place, "p");
    let mark = place.at("work/mark");
    let code = format!("open({:?}, 'w').write('run')\n", mark.to_str().unwrap());
    let seen = |what: &str| assert!(!mark.exists(), "{what} ran the package");
    // Bound by hand, so that it is a package that nothing refuses.
    let (python, descriptor) = (dir.join("adapter.py"), dir.join("adapters/adapter.json"));
    write(&python, code.as_bytes());
    for _ in 0..3 {
        let report = json(&place.call(&["package", "validate", "p", "--json"]));
        for row in report["problems"].as_array().unwrap() {
            correct(&dir, row);
        }
        seen("validate");
    }
    assert!(descriptor.is_file());
    let said = place.call(&["package", "validate", "p"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = place.call(&["package", "inspect", "p"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("1 | open("), "{said:?}");
    seen("inspect");
    package(&place, "before");
    let said = place.call(&["package", "diff", "before", "p"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("+ | open("), "{said:?}");
    seen("diff");
}

/// Does what a problem about a size or a digest says.
fn correct(dir: &Path, row: &Value) {
    let path = dir.join(row["file"].as_str().unwrap());
    let mut document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let remedy = row["remedy"].as_str().unwrap();
    let right = remedy
        .strip_prefix("write ")
        .unwrap_or_else(|| panic!("{row}"));
    let value = document
        .pointer_mut(row["pointer"].as_str().unwrap())
        .unwrap();
    *value = if value.is_number() {
        right.parse::<u64>().unwrap().into()
    } else {
        right.into()
    };
    write(&path, &serde_json::to_vec(&document).unwrap());
}

/// Makes sizes and digests fit the files again.
fn reseal(place: &Place, name: &str) {
    for _ in 0..3 {
        let report = json(&place.call(&["package", "validate", name, "--json"]));
        for row in report["problems"].as_array().unwrap() {
            correct(&place.at("work").join(name), row);
        }
    }
}

#[test]
fn diff_names_each_change_and_marks_what_widens() {
    let place = Place::new();
    package(&place, "old");
    let new = package(&place, "new");
    let said = place.call(&["package", "diff", "old", "new"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.ends_with("the same bytes\n"), "{said:?}");

    edit(&new.join("adapter.py"), "len(rows),", "len(rows), ");
    reseal(&place, "new");
    let said = place.call(&["package", "diff", "old", "new"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.out.contains("WIDENS"), "{said:?}");
    assert!(said.out.contains("len(rows),<U+0020>\n"), "{said:?}");
    assert!(said.out.contains("input_schema   unchanged"), "{said:?}");

    edit(&new.join("adapters/adapter.json"), "1440,", "1441,");
    edit(&new.join("manifest.json"), "\"version\":1", "\"version\":2");
    reseal(&place, "new");
    let said = place.call(&["package", "diff", "old", "new"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let widening = "  WIDENS input_schema   at /rows/*/minutes: ";
    assert!(said.out.contains(widening), "{said:?}");
    let view = json(&place.call(&["package", "diff", "old", "new", "--json"]));
    assert_eq!(view["schema"], "lazaret-package-diff/1");
    let widens = (&view["widens"], &view["identical"]);
    assert_eq!(widens, (&Value::Bool(true), &Value::Bool(false)));
    let changes = view["changes"].as_array().unwrap();
    for subject in ["version", "input_schema", "code", "file"] {
        assert!(
            changes.iter().any(|row| row["subject"] == subject),
            "{subject}: {view}"
        );
    }
    // The other way round the same schema change is none that widens.
    let back = json(&place.call(&["package", "diff", "new", "old", "--json"]));
    assert_eq!(back["widens"], false, "{back}");

    write(&new.join("notes.txt"), b"");
    let said = place.call(&["package", "diff", "old", "new", "--json"]);
    assert_eq!(said.code, Some(1));
    assert_eq!(codes(&said), ["unlisted_file"]);
}
