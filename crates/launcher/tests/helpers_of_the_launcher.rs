//! The launcher's pure C helpers, compiled with the host's compiler under the
//! address and undefined-behaviour sanitizers, against the Rust implementation.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use lazaret_contract::digest::Sha256Digest;

/// Compiles the test program into `directory`; a host without a C compiler fails.
fn compile(directory: &Path) -> std::path::PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = directory.join("sha256_of_stdin");
    let output = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"])
        .args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"])
        .arg("-I")
        .arg(root.join("c"))
        .arg(root.join("tests/c/sha256_of_stdin.c"))
        .arg(root.join("c/util.c"))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("a C compiler named cc is needed for this test");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    program
}

fn digest_in_c(program: &Path, bytes: &[u8]) -> String {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test program starts");
    child
        .stdin
        .take()
        .expect("piped")
        .write_all(bytes)
        .expect("the test program reads");
    let output = child.wait_with_output().expect("the test program ends");
    assert!(output.status.success(), "ended with {}", output.status);
    String::from_utf8(output.stdout).expect("hexadecimal text")
}

#[test]
fn the_launchers_sha256_agrees_with_the_hosts_at_every_length_around_its_blocks() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = compile(directory.path());
    let pattern: Vec<u8> = (0..40_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    for length in (0..=200).chain([255, 256, 4095, 4096, 32 * 1024 - 1, 32 * 1024]) {
        let bytes = &pattern[..length];
        assert_eq!(
            digest_in_c(&program, bytes),
            Sha256Digest::of(bytes).to_string(),
            "length {length}"
        );
    }
}
