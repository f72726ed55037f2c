//! What an operator is shown before something is approved or launched: package,
//! permissions, limits, digests. One text for both.

use std::fmt::Write as _;

use lazaret_contract::package::Package;
use lazaret_contract::visible;
use lazaret_engine::approval::{Limits, Permissions, Subject};
use lazaret_engine::record::BytesRecord;

/// Everything that an approval is about, line by line.
pub fn subject(subject: &Subject) -> String {
    let mut shown = String::new();
    let mut row = |name: &str, value: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(shown, "  {name:<12} {value}");
    };
    let package = &subject.package;
    row(
        "package",
        &format!("{} version {}", package.id, package.version),
    );
    row("capability", &subject.capability);
    for file in &package.files {
        row(
            "file",
            &format!(
                "{} {} bytes, sha256 {}",
                file.path, file.size_bytes, file.sha256
            ),
        );
    }
    row("content", &package.content_sha256.to_string());
    row("authority", &package.authority_sha256.to_string());
    row("dependency", &package.dependency_sha256.to_string());
    row("in schema", &package.input_schema_sha256.to_string());
    row("out schema", &package.output_schema_sha256.to_string());
    let profile = &subject.profile;
    row(
        "profile",
        &format!("{}{}", profile.id, candidate_mark(profile.candidate)),
    );
    row("standing", &profile.standing);
    row("closure", &profile.closure.to_string());
    row("bwrap", &profile.bwrap.to_string());
    row("launcher", &profile.launcher.to_string());
    row("filter", &profile.filter.to_string());
    row("policy", &profile.policy.to_string());
    row("permissions", &permissions(&subject.permissions));
    row("limits", &limits(&subject.limits));
    shown
}

/// What the manifest and the descriptor say, everything in them escaped.
pub fn manifest(package: &Package) -> String {
    let (manifest, descriptor) = (&package.manifest, &package.descriptor);
    let mut shown = String::new();
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(shown, "  {name:<12} {}", visible::escape(value));
    };
    row("name", &manifest.name);
    row("summary", &manifest.summary);
    row(
        "publisher",
        &format!("{}, not authenticated", manifest.publisher),
    );
    row("license", &manifest.license);
    row("adapter", descriptor.adapter.as_str());
    for (name, contract) in [("input", &descriptor.input), ("output", &descriptor.output)] {
        for line in contract.outline() {
            row(name, &line);
        }
    }
    shown
}

/// The input, in the same form.
pub fn input(bytes: &BytesRecord) -> String {
    format!(
        "  {:<12} {} bytes, sha256 {}\n",
        "input", bytes.size_bytes, bytes.sha256
    )
}

/// The code that is approved, with line numbers, everything that is not plain text
/// escaped.
pub fn code(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut shown = String::new();
    for (index, line) in text.split_terminator('\n').enumerate() {
        let _ = writeln!(shown, "  {:>4} | {}", index + 1, visible::escape(line));
    }
    shown
}

/// What marks everything that a candidate touches.
pub fn candidate_mark(candidate: bool) -> &'static str {
    if candidate { " (candidate)" } else { "" }
}

/// The permissions on one line.
pub fn permissions(permissions: &Permissions) -> String {
    let list = |names: &[String]| format!("[{}]", names.join(", "));
    format!(
        "network={}, secrets={}, env={}, {} input inode read-only, {} output inode",
        permissions.network,
        list(&permissions.secrets),
        list(&permissions.env),
        permissions.input_inodes,
        permissions.output_inodes
    )
}

/// The limits on one line.
pub fn limits(limits: &Limits) -> String {
    let kib = |bytes: usize| format!("{} KiB", bytes / 1024);
    format!(
        "CPU {} s, address space {} MiB, {} s in all, input {}, output {}, stdout and stderr {} \
         each, {} descriptors, {} process, {} attempt",
        limits.cpu_s,
        limits.address_space_bytes / (1024 * 1024),
        limits.wall_ms / 1000,
        kib(limits.input_bytes),
        kib(limits.output_bytes),
        kib(limits.stream_bytes),
        limits.descriptors,
        limits.processes,
        limits.attempts
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_and_limits_read_as_they_are_promised() {
        assert_eq!(
            permissions(&Permissions::fixed()),
            "network=false, secrets=[], env=[], 1 input inode read-only, 1 output inode"
        );
        assert_eq!(
            limits(&Limits::fixed()),
            "CPU 2 s, address space 128 MiB, 10 s in all, input 32 KiB, output 64 KiB, stdout and \
             stderr 8 KiB each, 16 descriptors, 1 process, 1 attempt"
        );
    }

    #[test]
    fn code_is_numbered_and_nothing_in_it_is_hidden() {
        assert_eq!(code(b"a\n\tb\x1b\n"), "     1 | a\n     2 | \\tb\\u{1b}\n");
    }
}
