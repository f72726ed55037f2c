//! The input: a file or standard input, at most one byte more than is allowed.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context as _, Result};
use lazaret_contract::limits::INPUT_BYTES_MAX;

/// Reads the document, or so much of it that its size is refused.
///
/// The path is the operator's own: links and pipes are followed as everywhere else.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    if path == Path::new("-") {
        return read_bounded(io::stdin().lock()).context("reading standard input");
    }
    let shown = lazaret_custody::error::shown(path);
    let file = File::open(path).with_context(|| format!("opening {shown}"))?;
    read_bounded(file).with_context(|| format!("reading {shown}"))
}

fn read_bounded(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source
        .take(INPUT_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_input_is_read_to_one_byte_beyond_the_limit() {
        let bytes = read_bounded(io::repeat(b' ')).unwrap();
        assert_eq!(bytes.len(), INPUT_BYTES_MAX + 1);
    }
}
