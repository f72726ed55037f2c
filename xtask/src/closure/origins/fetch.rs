//! The origins that need a network, through the host's own clients.
//!
//! curl, apt and pip bring their own configuration: proxies, mirrors and
//! certificates are the machine's. What they give is not believed here; the
//! caller verifies it. Nothing here may change a file of the system: apt works
//! with a private state directory.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use lazaret_contract::digest::Sha256Digest;

/// Seconds until a host that does not answer is given up.
const CONNECT_TIMEOUT_S: &str = "10";

/// Seconds for one whole transfer.
const TRANSFER_TIMEOUT_S: &str = "900";

/// apt's program that downloads one file with apt's own configuration.
const APT_HELPER: &str = "/usr/lib/apt/apt-helper";

/// Platforms whose wheels run on any x86_64 Linux of the last decade.
const WHEEL_PLATFORMS: [&str; 5] = [
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
    "manylinux_2_12_x86_64",
    "manylinux2010_x86_64",
    "any",
];

/// Upstream's release, by curl.
pub fn release(url: &str, bytes_max: u64, into: &Path) -> Result<(PathBuf, String)> {
    let path = into.join("release");
    let limit = bytes_max.to_string();
    let mut command = Command::new("curl");
    command
        .args(["--fail", "--silent", "--show-error", "--location"])
        .args(["--proto", "=https", "--proto-redir", "=https"])
        .args([
            "--connect-timeout",
            CONNECT_TIMEOUT_S,
            "--max-time",
            TRANSFER_TIMEOUT_S,
        ])
        .args(["--max-filesize", &limit, "--output"])
        .arg(&path)
        .args(["--", url]);
    quiet(&mut command)?;
    Ok((path, url.to_owned()))
}

/// A file of a Debian source package, from the mirrors that apt is configured with.
pub fn debian(source: &str, file: &str, state: &Path, into: &Path) -> Result<(PathBuf, String)> {
    let bases = mirrors(state)?;
    let pool = pool_path(source, file);
    let path = into.join("debian");
    let mut causes = Vec::new();
    for base in bases {
        let url = format!("{base}{pool}");
        let mut command = Command::new(APT_HELPER);
        command
            .args(apt_options(state))
            .args(["-o", "Acquire::Retries=0"])
            .args(["-o", &format!("Acquire::http::Timeout={CONNECT_TIMEOUT_S}")])
            .args([
                "-o",
                &format!("Acquire::https::Timeout={CONNECT_TIMEOUT_S}"),
            ])
            .args(["download-file", &url])
            .arg(&path);
        match quiet(&mut command) {
            Ok(()) if path.is_file() => return Ok((path, url)),
            Ok(()) => causes.push(format!("{url}: nothing came")),
            Err(error) => causes.push(format!("{url}: {error}")),
        }
    }
    bail!("{}", causes.join("; "));
}

/// The private state directory, so that neither locks nor lists of the system are touched.
fn apt_options(state: &Path) -> [String; 2] {
    ["-o".to_owned(), format!("Dir::State={}", state.display())]
}

/// The base addresses of the configured mirrors.
fn mirrors(state: &Path) -> Result<Vec<String>> {
    if !Path::new(APT_HELPER).is_file() {
        bail!("this host has no apt");
    }
    let mut command = Command::new("apt-get");
    command
        .args([
            "indextargets",
            "--no-release-info",
            "--format",
            "$(REPO_URI)",
        ])
        .args(apt_options(state));
    let text = output(&mut command)?;
    let bases = distinct_bases(&text);
    if bases.is_empty() {
        bail!("apt is configured with no http mirror");
    }
    Ok(bases)
}

/// The distinct addresses of apt's answer that a pool path can be put behind.
fn distinct_bases(text: &str) -> Vec<String> {
    let mut bases: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim) {
        let web = line.starts_with("https://") || line.starts_with("http://");
        if web && line.ends_with('/') && !bases.iter().any(|base| base == line) {
            bases.push(line.to_owned());
        }
    }
    bases
}

/// Where Debian's archive keeps a file of a source package of its main section.
fn pool_path(source: &str, file: &str) -> String {
    let length = if source.starts_with("lib") { 4 } else { 1 };
    let prefix: String = source.chars().take(length).collect();
    format!("pool/main/{prefix}/{source}/{file}")
}

/// A wheel, by pip with the required hash, from the index that pip is configured with.
pub fn wheel(
    name: &str,
    version: &str,
    archive: &str,
    sha256: Sha256Digest,
    into: &Path,
) -> Result<(PathBuf, String)> {
    let requirement = format!("{name}=={version}");
    let requirements = into.join("requirements.txt");
    fs::write(
        &requirements,
        format!("{requirement} --hash=sha256:{sha256}\n"),
    )
    .context("writing pip's requirements")?;
    let mut command = Command::new("python3");
    command
        .args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-input",
        ])
        .args([
            "--no-deps",
            "--no-cache-dir",
            "--only-binary",
            ":all:",
            "--require-hashes",
        ])
        .args([
            "--implementation",
            "py",
            "--abi",
            "none",
            "--python-version",
            "3.12",
        ])
        .args(["--timeout", CONNECT_TIMEOUT_S, "--retries", "1"])
        .args(
            WHEEL_PLATFORMS
                .iter()
                .flat_map(|platform| ["--platform", platform]),
        )
        .arg("--requirement")
        .arg(&requirements)
        .arg("--dest")
        .arg(into);
    quiet(&mut command)?;
    Ok((into.join(archive), requirement))
}

/// Runs a client; its last message is the cause of a failure.
fn quiet(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}

fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_owned();
    let name = Path::new(&name)
        .file_name()
        .unwrap_or(OsStr::new("command"))
        .to_string_lossy()
        .into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{name} cannot be started"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    let telling: Vec<&str> = messages
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    // Warnings (apt's W:) explain nothing when an error is there.
    let errors: Vec<&str> = telling
        .iter()
        .copied()
        .filter(|line| !line.starts_with("W:"))
        .collect();
    let last = errors
        .last()
        .or(telling.last())
        .copied()
        .unwrap_or("no message");
    bail!("{name} ended with {}: {last}", output.status);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_keeps_libraries_apart() {
        assert_eq!(
            pool_path("bubblewrap", "bubblewrap_0.12.0.orig.tar.xz"),
            "pool/main/b/bubblewrap/bubblewrap_0.12.0.orig.tar.xz"
        );
        assert_eq!(pool_path("libcap2", "x"), "pool/main/libc/libcap2/x");
        assert_eq!(pool_path("python3.13", "x"), "pool/main/p/python3.13/x");
    }

    #[test]
    fn each_mirror_is_asked_once_and_only_over_the_web() {
        let text = "https://a.example/debian/\nhttps://a.example/debian/\nfile:///srv/debian/\n\
                    http://b.example/debian-security/\nhttps://c.example/no-slash\n\n";
        assert_eq!(
            distinct_bases(text),
            [
                "https://a.example/debian/",
                "http://b.example/debian-security/"
            ]
        );
    }

    #[test]
    fn a_release_that_cannot_be_reached_says_why() {
        let scratch = tempfile::tempdir().unwrap();
        // Nothing listens on the discard port of this machine.
        let error = release("https://127.0.0.1:9/x", 10, scratch.path())
            .unwrap_err()
            .to_string();
        assert!(error.contains("curl"), "{error}");
    }

    #[test]
    fn a_release_is_never_fetched_without_encryption() {
        let scratch = tempfile::tempdir().unwrap();
        let error = release("http://127.0.0.1:9/x", 10, scratch.path())
            .unwrap_err()
            .to_string();
        assert!(error.contains("curl"), "{error}");
        assert!(!scratch.path().join("release").exists());
    }

    #[test]
    fn the_last_error_line_is_the_cause() {
        let script = "echo first >&2; echo 'E: the cause' >&2; echo 'W: a warning' >&2; exit 3";
        let error = quiet(Command::new("sh").args(["-c", script]))
            .unwrap_err()
            .to_string();
        assert_eq!(error, "sh ended with exit status: 3: E: the cause");
    }
}
