//! The package that comes with Lazaret, as the exact bytes in the repository.

use lazaret_contract::digest::Sha256Digest;
use lazaret_engine::approval::{ApprovedPackage, PackageFile};

/// The formatter's id. No other bytes run under it.
pub const FORMATTER_ID: &str = "seraph.tool.json-format";
/// Its only version.
pub const FORMATTER_VERSION: u32 = 1;
/// What a task asks for to get it.
pub const FORMATTER_CAPABILITY: &str = "work.json-format.v1";

/// What runs.
pub const FORMATTER_CODE: &[u8] =
    include_bytes!("../../../packages/seraph.tool.json-format/adapter.py");

/// Every file of the formatter, in the order of the names.
const FORMATTER_FILES: [(&str, &[u8]); 1] = [("adapter.py", FORMATTER_CODE)];

/// The formatter, as it is approved.
#[must_use]
pub fn formatter() -> ApprovedPackage {
    let files = FORMATTER_FILES.iter().map(|(path, bytes)| PackageFile {
        path: (*path).to_owned(),
        size_bytes: bytes.len(),
        sha256: Sha256Digest::of(bytes),
    });
    ApprovedPackage {
        id: FORMATTER_ID.to_owned(),
        version: FORMATTER_VERSION,
        code_sha256: Sha256Digest::of(FORMATTER_CODE),
        files: files.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lazaret_contract::limits::PACKAGE_CODE_BYTES_MAX;

    #[test]
    fn the_code_is_plain_text_within_its_limit() {
        assert!(FORMATTER_CODE.len() <= PACKAGE_CODE_BYTES_MAX);
        assert!(
            FORMATTER_CODE
                .iter()
                .all(|byte| matches!(byte, b'\n' | b' '..=b'~'))
        );
    }

    #[test]
    fn what_runs_is_among_the_files() {
        let package = formatter();
        assert!(
            package
                .files
                .iter()
                .any(|file| file.sha256 == package.code_sha256)
        );
    }
}
