//! Freezes the standard library and the module `lazaret` into a table of C data.
//!
//! Each module is compiled and marshalled by CPython's own program in a process of
//! its own, so that no module's bytes depend on another's. What goes in is the list
//! `stdlib.txt` of the profile and nothing else; a name without a source is an error.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use lazaret_contract::digest::Sha256Digest;
use lazaret_profile::manifest::FrozenModule;

use super::bwrap::Builder;
use super::cpython::{FREEZER, LIBRARY};
use super::progress::Progress;
use super::runner;
use super::stages::{Finished, Key, Outcome, Workspace};

/// The C source of the table, among the stage's outputs.
pub const TABLE: &str = "frozen.c";

/// What was frozen, among the stage's outputs.
const FACTS: &str = "frozen.json";

/// Our own module's name and source.
const OWN_MODULE: &str = "lazaret";
const OWN_SOURCE: &str = "crates/launcher/python/lazaret.py";

/// Modules that CPython freezes itself; a second copy would only hide the first.
const FROZEN_BY_CPYTHON: [&str; 16] = [
    "abc",
    "codecs",
    "io",
    "_collections_abc",
    "_sitebuiltins",
    "genericpath",
    "ntpath",
    "posixpath",
    "os.path",
    "os",
    "site",
    "stat",
    "importlib.util",
    "importlib.machinery",
    "runpy",
    "zipimport",
];

/// Freezes the modules of `stdlib`, the text of `stdlib.txt`.
///
/// # Errors
/// When the list is wrong, a source is missing, or a module does not compile.
pub fn build(
    builder: &Builder<'_>,
    cpython: &Finished,
    stdlib: &str,
    progress: &mut Progress,
) -> Result<Finished> {
    let names = parse_list(stdlib)?;
    let key = Key::new()
        .digest("cpython", cpython.key)
        .bytes("stdlib", stdlib.as_bytes())
        .file(builder.root, OWN_SOURCE)?
        .file(builder.root, "xtask/src/closure/freeze.rs")?;
    builder
        .stages
        .stage("frozen", &key, progress, |workspace, _| {
            let library = cpython.directory.join(LIBRARY);
            let mut facts = Vec::new();
            for name in &names {
                let (source, package) = find_source(&library, name)?;
                facts.push(freeze(builder, cpython, name, &source, package, workspace)?);
            }
            let own = builder.root.join(OWN_SOURCE);
            facts.push(freeze(
                builder, cpython, OWN_MODULE, &own, false, workspace,
            )?);
            fs::write(workspace.out.join(TABLE), table(&facts)).context("writing the table")?;
            let bytes =
                serde_json::to_vec_pretty(&facts).context("serialising the frozen modules")?;
            fs::write(workspace.out.join(FACTS), bytes).context("writing the frozen modules")?;
            let mut outputs = [TABLE, FACTS].map(str::to_owned).to_vec();
            outputs.extend(facts.iter().map(|module| code_file(&module.name)));
            Ok(Outcome {
                outputs,
                origins: Vec::new(),
            })
        })
}

/// What a finished stage has frozen.
///
/// # Errors
/// When it cannot be read.
pub fn facts(stage: &Finished) -> Result<Vec<FrozenModule>> {
    let bytes = fs::read(stage.directory.join(FACTS)).context("reading the frozen modules")?;
    serde_json::from_slice(&bytes).context("reading the frozen modules")
}

/// The names in `stdlib.txt`: one a line, `#` begins a comment line.
fn parse_list(text: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut seen = BTreeSet::new();
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let part = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        if !line.split('.').all(part) {
            bail!("{line:?} is not the name of a module");
        }
        if FROZEN_BY_CPYTHON.contains(&line) || line == OWN_MODULE {
            bail!("{line} is frozen anyway and must not be listed");
        }
        if !seen.insert(line) {
            bail!("{line} is listed twice");
        }
        if let Some((parent, _)) = line.rsplit_once('.')
            && !seen.contains(parent)
        {
            bail!("{line} is listed without its package {parent} before it");
        }
        names.push(line.to_owned());
    }
    if names.is_empty() {
        bail!("no module is listed");
    }
    Ok(names)
}

/// The source of a module, and whether it is a package.
fn find_source(library: &Path, name: &str) -> Result<(PathBuf, bool)> {
    let path = library.join(name.replace('.', "/"));
    let module = path.with_extension("py");
    // A dot in the last component would confuse with_extension; names have none there.
    if module.is_file() {
        return Ok((module, false));
    }
    let package = path.join("__init__.py");
    if package.is_file() {
        return Ok((package, true));
    }
    bail!("the module {name} has no source in {}", library.display());
}

fn code_file(name: &str) -> String {
    format!("{name}.code")
}

/// Compiles and marshals one module.
fn freeze(
    builder: &Builder<'_>,
    cpython: &Finished,
    name: &str,
    source: &Path,
    package: bool,
    workspace: &Workspace,
) -> Result<FrozenModule> {
    let bytes = fs::read(source).with_context(|| format!("reading {}", source.display()))?;
    let header = workspace.work.join("frozen.h");
    let mut command = builder
        .runner
        .command(cpython.directory.join(FREEZER), &workspace.work);
    runner::run(command.arg(name).arg(source).arg(&header), &workspace.log)
        .with_context(|| format!("freezing {name}"))?;
    let text = fs::read_to_string(&header).with_context(|| format!("reading frozen {name}"))?;
    let code = parse_header(&text).with_context(|| format!("reading frozen {name}"))?;
    fs::write(workspace.out.join(code_file(name)), &code)
        .with_context(|| format!("writing {name}"))?;
    Ok(FrozenModule {
        name: name.to_owned(),
        package,
        source_sha256: Sha256Digest::of(&bytes),
        code_sha256: Sha256Digest::of(&code),
    })
}

/// The bytes of the one array in a header that CPython's program wrote.
fn parse_header(text: &str) -> Result<Vec<u8>> {
    let (_, rest) = text.split_once("[] = {").context("no array begins")?;
    let (numbers, _) = rest.split_once("};").context("the array does not end")?;
    let mut bytes = Vec::new();
    for number in numbers
        .split(',')
        .map(str::trim)
        .filter(|number| !number.is_empty())
    {
        bytes.push(
            number
                .parse()
                .with_context(|| format!("{number:?} is not a byte"))?,
        );
    }
    if bytes.is_empty() {
        bail!("the array is empty");
    }
    Ok(bytes)
}

/// The C source of the table. Fields are named, because 3.12 has one field more than 3.13.
fn table(modules: &[FrozenModule]) -> String {
    let mut text = String::from(
        "/* The frozen modules: the standard library in the order of stdlib.txt, then lazaret. */\n\
         #include <Python.h>\n\n\
         extern const struct _frozen lz_frozen_modules[];\n\n",
    );
    for (index, module) in modules.iter().enumerate() {
        let file = code_file(&module.name);
        text.push_str(&format!(
            "static const unsigned char code_{index}[] = {{\n#embed \"{file}\"\n}};\n"
        ));
    }
    text.push_str("\nconst struct _frozen lz_frozen_modules[] = {\n");
    for (index, module) in modules.iter().enumerate() {
        text.push_str(&format!(
            "    {{ .name = \"{}\", .code = code_{index}, .size = sizeof code_{index}, .is_package = {} }},\n",
            module.name,
            u8::from(module.package)
        ));
    }
    text.push_str("    { .name = 0 },\n};\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTS: [&str; 2] = [
        include_str!("../../../third_party/profiles/json-python-bwrap-v1/stdlib.txt"),
        include_str!("../../../third_party/profiles/json-python-bwrap-v2-candidate/stdlib.txt"),
    ];

    #[test]
    fn the_lists_of_both_profiles_are_valid_and_hold_what_a_package_needs() {
        for text in LISTS {
            let names = parse_list(text).unwrap();
            for wanted in [
                "json",
                "re",
                "datetime",
                "decimal",
                "statistics",
                "encodings.utf_8",
            ] {
                assert!(
                    names.iter().any(|name| name == wanted),
                    "{wanted} is not listed"
                );
            }
        }
    }

    #[test]
    fn no_codec_that_changes_the_meaning_of_source_text_is_frozen() {
        for text in LISTS {
            for name in parse_list(text).unwrap() {
                let codec = name.strip_prefix("encodings.").unwrap_or("");
                let dangerous = [
                    "utf_7",
                    "unicode_escape",
                    "raw_unicode_escape",
                    "rot_13",
                    "punycode",
                ];
                assert!(!dangerous.contains(&codec), "{name} is listed");
            }
        }
    }

    #[test]
    fn a_list_with_a_wrong_line_is_refused() {
        for text in [
            "",
            "# only a comment\n",
            "a\na\n",
            "a.b\n",
            "../a\n",
            "a..b\n",
            "os\n",
            "lazaret\n",
        ] {
            assert!(parse_list(text).is_err(), "{text:?}");
        }
        assert_eq!(parse_list("# x\na\na.b\n\n").unwrap(), ["a", "a.b"]);
    }

    #[test]
    fn a_module_and_a_package_are_told_apart_and_a_missing_one_is_an_error() {
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir(scratch.path().join("json")).unwrap();
        for file in ["abc.py", "json/__init__.py", "json/decoder.py"] {
            fs::write(scratch.path().join(file), b"").unwrap();
        }
        let find = |name: &str| find_source(scratch.path(), name).map(|(_, package)| package);
        assert!(!find("abc").unwrap());
        assert!(find("json").unwrap());
        assert!(!find("json.decoder").unwrap());
        assert!(find("json.tool").is_err());
    }

    #[test]
    fn the_bytes_of_a_header_are_read_exactly() {
        let text =
            "/* Auto-generated */\nconst unsigned char _Py_M__a[] = {\n    99,0,255,\n    1,\n};\n";
        assert_eq!(parse_header(text).unwrap(), [99, 0, 255, 1]);
        for wrong in ["", "x[] = {\n1,\n", "x[] = {\n256,\n};\n", "x[] = {\n};\n"] {
            assert!(parse_header(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_table_names_its_fields_and_ends() {
        let digest = Sha256Digest::of(b"");
        let module = FrozenModule {
            name: "json.decoder".to_owned(),
            package: false,
            source_sha256: digest,
            code_sha256: digest,
        };
        let text = table(&[module]);
        assert!(text.contains("#embed \"json.decoder.code\""));
        assert!(text.contains(
            ".name = \"json.decoder\", .code = code_0, .size = sizeof code_0, .is_package = 0"
        ));
        assert!(text.trim_end().ends_with("{ .name = 0 },\n};"));
    }
}
