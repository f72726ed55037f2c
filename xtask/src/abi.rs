//! Makes `crates/launcher/src/abi.rs` from the launcher's C header.
//!
//! The header is the single source of the layout; the Rust side is generated
//! and committed, so that an ordinary build needs no libclang. This module must
//! never write anything but that one file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

/// The header, relative to the repository's root.
const HEADER: &str = "crates/launcher/c/lazaret_abi.h";
/// The generated module, relative to the repository's root.
const GENERATED: &str = "crates/launcher/src/abi.rs";

const PREAMBLE: &str = "\
//! Generated from `c/lazaret_abi.h` by `cargo xtask abi`; the header explains each item.

#![allow(missing_docs, non_camel_case_types, reason = \"names and documentation are the C header's\")]
";

/// The text that [`GENERATED`] must have for the header of this tree.
///
/// # Errors
/// When libclang is missing or the header does not compile.
pub fn generate(root: &Path) -> Result<String> {
    let header = root.join(HEADER);
    let bindings = bindgen::Builder::default()
        .header(header.display().to_string())
        .clang_arg("--target=x86_64-unknown-linux-gnu")
        .allowlist_item("(lz|LZ)_.*")
        .use_core()
        .layout_tests(false)
        .generate_comments(false)
        .derive_default(true)
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .disable_header_comment()
        .formatter(bindgen::Formatter::Prettyplease)
        .generate()
        .with_context(|| format!("bindings of {HEADER} (is libclang installed?)"))?;
    Ok(format!("{PREAMBLE}\n{bindings}"))
}

/// Writes the module, or says whether it is current; the command `abi`.
///
/// # Errors
/// As [`write`] and [`is_current`].
pub fn main(root: &Path, check: bool) -> Result<ExitCode> {
    if check {
        let current = is_current(root)?;
        eprintln!(
            "{GENERATED} is {}",
            if current {
                "current"
            } else {
                "stale: run cargo xtask abi"
            }
        );
        return Ok(if current {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    eprintln!("wrote {}", write(root)?.display());
    Ok(ExitCode::SUCCESS)
}

/// Writes the module and returns its path.
///
/// # Errors
/// As [`generate`], and when the file cannot be written.
pub fn write(root: &Path) -> Result<PathBuf> {
    let path = root.join(GENERATED);
    let text = generate(root)?;
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// Whether the committed module is the one that the header gives.
///
/// # Errors
/// As [`generate`], and when the committed file cannot be read.
pub fn is_current(root: &Path) -> Result<bool> {
    let path = root.join(GENERATED);
    let committed =
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    Ok(committed == generate(root)?)
}
