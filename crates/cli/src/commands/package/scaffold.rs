//! `lazaret package scaffold`: a working package to begin from.
//!
//! It is put together and held to the contract in memory; only a package without a
//! problem is written, and only into a directory that is made for it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use lazaret_contract::identity::{AdapterId, Capability, PackageId};
use lazaret_contract::json::{self, Object, Value};
use lazaret_contract::package::{
    self, BindingCheck, CODE_PATH, DESCRIPTOR_PATH, MANIFEST_PATH, PackageFiles,
};
use lazaret_contract::profiles::Binding;
use lazaret_engine::approval::binding;
use lazaret_engine::closure::accepted_in_this_build;

use super::problems;
use crate::arguments::{Scaffold, Template};
use crate::exit::Exit;
use crate::talk;

const README: &str = include_str!("templates/README.md");

/// What differs from template to template.
struct Source {
    name: &'static str,
    code: &'static str,
    descriptor: &'static str,
    vector: &'static str,
}

macro_rules! source {
    ($name:literal, $dir:literal) => {
        Source {
            name: $name,
            code: include_str!(concat!("templates/", $dir, "/adapter.py")),
            descriptor: include_str!(concat!("templates/", $dir, "/descriptor.json")),
            vector: include_str!(concat!("templates/", $dir, "/vector.json")),
        }
    };
}

fn source(template: Template) -> Source {
    match template {
        Template::JsonFormat => source!("JSON format", "json-format"),
        Template::Summary => source!("Summary", "summary"),
        Template::Blank => source!("Blank", "blank"),
    }
}

/// Makes the package.
pub fn run(scaffold: &Scaffold) -> Result<Exit> {
    let dir = &scaffold.dir;
    let shown = problems::name(dir);
    let accepted = match accepted_in_this_build(&scaffold.profile.profile) {
        Ok(accepted) => accepted,
        Err(blocked) => {
            talk::blocked(&blocked);
            return Ok(Exit::Blocked);
        }
    };
    let id = match package_id(scaffold) {
        Ok(id) => id,
        Err(why) => {
            talk::line(&why);
            talk::text("  to do: name one, such as --id local.my-tool\n");
            return Ok(Exit::Refused);
        }
    };
    let files = files(&source(scaffold.template), &id, &binding(&accepted))?;
    if fs::symlink_metadata(dir).is_ok() {
        talk::line(&format!("{shown} exists already; nothing was written"));
        talk::text("  to do: name a directory that does not exist yet\n");
        return Ok(Exit::Refused);
    }
    write(dir, &files).with_context(|| format!("writing {shown}"))?;
    // What was written is what an operator will be shown, or it is not said to be good.
    match super::open(dir) {
        Ok(package) if package.files == files => {}
        Ok(_) => return Err(anyhow!("{shown} changed while it was being written")),
        Err(unfit) => return problems::refuse(dir, &unfit, false),
    }
    talk::give(format!("{shown}: {id}, without a problem\n").as_bytes())?;
    talk::text(&format!(
        "  to do: edit it, then: lazaret package validate {shown}\n"
    ));
    Ok(Exit::Done)
}

/// The id that was named, or `local.` and the directory's name.
fn package_id(scaffold: &Scaffold) -> Result<PackageId, String> {
    let name = scaffold.dir.file_name().unwrap_or_default();
    let text = match &scaffold.id {
        Some(id) => id.clone(),
        None => format!("local.{}", name.to_string_lossy()),
    };
    let shown = lazaret_contract::visible::escape_cut(&text, 80);
    let id: PackageId = text
        .parse()
        .map_err(|error| format!("\"{shown}\" is no package id: {error}"))?;
    if id.is_reserved() {
        return Err(format!("ids that begin like \"{shown}\" belong to Lazaret"));
    }
    Ok(id)
}

fn files(source: &Source, id: &PackageId, binding: &Binding) -> Result<PackageFiles> {
    let mut descriptor = object(source.descriptor)?;
    let adapter: AdapterId = text(&descriptor, "adapter").parse()?;
    let summary = text(&descriptor, "summary");
    descriptor.extend([
        ("schema_version".to_owned(), 1.into()),
        ("resources".to_owned(), package::resources()),
        ("no_learning".to_owned(), true.into()),
    ]);
    let readme = README
        .replace("@ID@", id.as_str())
        .replace("@SUMMARY@", &summary)
        .replace(
            "@CAPABILITY@",
            &Capability::derive(id, &adapter).to_string(),
        );
    let manifest = manifest(id, source.name, &summary);
    let vector = json::write_pretty(&Value::Object(object(source.vector)?));
    let draft = [
        ("README.md", readme.into_bytes()),
        (CODE_PATH, source.code.as_bytes().to_vec()),
        (
            DESCRIPTOR_PATH,
            json::write_compact(&Value::Object(descriptor)),
        ),
        ("evals/example.json", vector),
        (MANIFEST_PATH, json::write_compact(&manifest)),
    ]
    .map(|(path, bytes)| (path.to_owned(), bytes));
    let sealed = package::seal(&PackageFiles::new(draft)?, binding)?;
    package::inspect(
        &sealed,
        BindingCheck::Accepted(std::slice::from_ref(binding)),
    )?;
    Ok(sealed)
}

fn manifest(id: &PackageId, name: &str, summary: &str) -> Value {
    let none = || Value::Array(Vec::new());
    let permissions = [
        ("network", false.into()),
        ("secrets", none()),
        ("env", none()),
        ("dependencies", none()),
    ];
    let adapters = Value::Array(vec![DESCRIPTOR_PATH.into()]);
    fields([
        ("schema_version", 2.into()),
        ("id", id.as_str().into()),
        ("version", 1.into()),
        ("name", name.into()),
        ("summary", summary.into()),
        ("publisher", "nobody yet".into()),
        ("license", "none yet".into()),
        ("provenance", "unsigned-local".into()),
        ("permissions", fields(permissions)),
        ("no_learning", true.into()),
        ("contributes", fields([("adapters", adapters)])),
    ])
}

fn fields<const N: usize>(rows: [(&str, Value); N]) -> Value {
    Value::Object(
        rows.into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

fn object(text: &str) -> Result<Object> {
    match json::parse(text.as_bytes())? {
        Value::Object(object) => Ok(object),
        _ => Err(anyhow!("a template is no object")),
    }
}

fn text(object: &Object, name: &str) -> String {
    match object.get(name) {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    }
}

/// Writes into a directory that this call makes; the modes are those that a package
/// must have, whatever the umask adds.
fn write(dir: &Path, files: &PackageFiles) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.mode(0o755);
    for below in ["", "adapters", "evals"] {
        builder.create(dir.join(below))?;
    }
    for (path, bytes) in files.iter() {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(dir.join(path))
            .and_then(|mut file| file.write_all(bytes))
            .with_context(|| format!("writing {path}"))?;
    }
    Ok(())
}
