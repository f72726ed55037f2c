//! The folder of conformance data: where it is, and its two tables.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::{Case, Expected};
use crate::digest::Sha256Digest;
use crate::json::JsonErrorKind;

/// Names the folder; by default `../shared/data` beside the repository.
const FOLDER_VARIABLE: &str = "LAZARET_CONFORMANCE_DIR";
/// When this is `1`, a missing folder is an error.
const REQUIRED_VARIABLE: &str = "LAZARET_REQUIRE_CONFORMANCE";

/// The folder of conformance data, known to be there.
#[derive(Debug)]
pub struct Corpus {
    folder: PathBuf,
}

/// The corpus is missing although it is required, or is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// No folder, and the environment says that there must be one.
    #[error("no conformance data at {} and {REQUIRED_VARIABLE}=1; set {FOLDER_VARIABLE}", .0.display())]
    Missing(PathBuf),
    /// A file of the folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A line of a table is not understood, or a document is not the one that
    /// the table describes.
    #[error("{table} line {line}: {what}")]
    Table {
        /// The table's file name.
        table: &'static str,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
}

/// Finds the corpus. `None` when it is absent and not required; then a line on
/// standard error says that `who` skipped it, also under a test harness that
/// captures output.
pub fn open_corpus(who: &str) -> Result<Option<Corpus>, CorpusError> {
    let folder = match std::env::var_os(FOLDER_VARIABLE) {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    if folder.join(SUITE_TABLE).is_file() {
        return Ok(Some(Corpus { folder }));
    }
    if std::env::var_os(REQUIRED_VARIABLE).is_some_and(|value| value == "1") {
        return Err(CorpusError::Missing(folder));
    }
    let note = format!(
        "SKIPPED {who}: no conformance data at {} (set {FOLDER_VARIABLE})\n",
        folder.display()
    );
    // A lost note must not fail the test that it explains.
    let _ = std::io::stderr().write_all(note.as_bytes());
    Ok(None)
}

const SUITE_TABLE: &str = "jsontestsuite_expected.tsv";
const FLOAT_TABLE: &str = "float_vectors.tsv";

/// How many floats one batch document holds; it stays well under the limits.
const BATCH_FLOATS: usize = 1000;

impl Corpus {
    /// The public test suite with the verdicts that our rules give. Each
    /// document is checked against the digest in the table.
    pub fn suite_cases(&self) -> Result<Vec<Case>, CorpusError> {
        let fault = |line, what| CorpusError::Table {
            table: SUITE_TABLE,
            line,
            what,
        };
        let mut cases = Vec::new();
        for (line, row) in self.rows(SUITE_TABLE)? {
            let [
                file,
                _suite,
                bytes,
                sha256,
                verdict,
                reason,
                _nodes,
                _depth,
                out_bytes,
                out_sha256,
                ..,
            ] = row.as_slice()
            else {
                return Err(fault(line, "ten fields are wanted"));
            };
            let input = self.read(&Path::new("JSONTestSuite").join(file))?;
            if input.len().to_string() != *bytes || Sha256Digest::of(&input).to_string() != *sha256
            {
                return Err(fault(line, "the document is not the one described"));
            }
            let expected = match verdict.as_str() {
                "accept" => Expected::Accept {
                    output_bytes: out_bytes
                        .parse()
                        .map_err(|_| fault(line, "no output size"))?,
                    output_sha256: out_sha256
                        .parse()
                        .map_err(|_| fault(line, "no output digest"))?,
                },
                "reject" => Expected::Reject(
                    JsonErrorKind::from_name(reason)
                        .ok_or_else(|| fault(line, "unknown reason"))?,
                ),
                _ => return Err(fault(line, "unknown verdict")),
            };
            cases.push(Case {
                name: file.clone(),
                input,
                expected,
            });
        }
        Ok(cases)
    }

    /// For the documents of the suite that CPython calls malformed: the name
    /// and the code point at which CPython says so.
    pub fn suite_fault_positions(&self) -> Result<Vec<(String, usize)>, CorpusError> {
        let rows = self.rows(SUITE_TABLE)?;
        Ok(rows
            .into_iter()
            .filter_map(|(_, row)| {
                let (_, position) = row.get(10)?.rsplit_once(" at char ")?;
                Some((row.first()?.clone(), position.parse().ok()?))
            })
            .collect())
    }

    /// One document for each double of the table.
    pub fn float_cases(&self) -> Result<Vec<Case>, CorpusError> {
        let floats = self.floats()?;
        Ok(floats
            .iter()
            .map(|float| array_case(&float.bits, std::slice::from_ref(float)))
            .collect())
    }

    /// The same doubles in few documents, for implementations that take long to
    /// start.
    pub fn float_batches(&self) -> Result<Vec<Case>, CorpusError> {
        let floats = self.floats()?;
        let batches = floats.chunks(BATCH_FLOATS).enumerate();
        Ok(batches
            .map(|(index, batch)| array_case(&format!("batch-{index}"), batch))
            .collect())
    }

    /// Every double of the table: its bits and the text that is owed.
    pub fn float_texts(&self) -> Result<Vec<(u64, String)>, CorpusError> {
        let fault = |what| CorpusError::Table {
            table: FLOAT_TABLE,
            line: 0,
            what,
        };
        self.floats()?
            .into_iter()
            .map(|float| {
                let bits = u64::from_str_radix(&float.bits, 16).map_err(|_| fault("no bits"))?;
                Ok((bits, float.owed))
            })
            .collect()
    }

    fn floats(&self) -> Result<Vec<FloatRow>, CorpusError> {
        let mut floats = Vec::new();
        for (line, row) in self.rows(FLOAT_TABLE)? {
            let [bits, owed, _es6, feed] = row.as_slice() else {
                let what = "four fields are wanted";
                return Err(CorpusError::Table {
                    table: FLOAT_TABLE,
                    line,
                    what,
                });
            };
            floats.push(FloatRow {
                bits: bits.clone(),
                owed: owed.clone(),
                feed: feed.clone(),
            });
        }
        Ok(floats)
    }

    /// The rows of a table, split at tabs, with their line numbers.
    fn rows(&self, table: &'static str) -> Result<Vec<(usize, Vec<String>)>, CorpusError> {
        let text =
            String::from_utf8(self.read(Path::new(table))?).map_err(|_| CorpusError::Table {
                table,
                line: 0,
                what: "not UTF-8",
            })?;
        Ok(text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.starts_with('#'))
            .map(|(index, line)| (index + 1, line.split('\t').map(str::to_owned).collect()))
            .collect())
    }

    fn read(&self, name: &Path) -> Result<Vec<u8>, CorpusError> {
        let path = self.folder.join(name);
        fs::read(&path).map_err(|source| CorpusError::Read { path, source })
    }
}

struct FloatRow {
    bits: String,
    owed: String,
    feed: String,
}

fn array_case(name: &str, floats: &[FloatRow]) -> Case {
    let fed: Vec<&str> = floats.iter().map(|float| float.feed.as_str()).collect();
    let owed: Vec<String> = floats
        .iter()
        .map(|float| format!("  {}", float.owed))
        .collect();
    let output = format!("[\n{}\n]\n", owed.join(",\n"));
    Case::accept(
        format!("float/{name}"),
        format!("[{}]", fed.join(",")),
        output.as_bytes(),
    )
}
