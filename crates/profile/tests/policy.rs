//! What a policy file may say, and the tables behind its names.
#![expect(clippy::panic, reason = "helpers of tests may stop the test")]

use std::collections::BTreeSet;
use std::path::Path;

use lazaret_profile::policy::{
    Action, BUILT_IN, Comparison, Errno, Policy, Syscall, Width, constants, signatures,
};

const HEAD: &str = "\
schema = \"lazaret-filter-policy/1\"
[default]
action = \"kill_process\"
reason = \"A reason.\"
";

/// A policy of one rule with these lines.
fn one_rule(lines: &str) -> String {
    format!("{HEAD}[[rule]]\nid = \"a\"\nreason = \"A reason.\"\n{lines}\n")
}

fn refusal(text: &str) -> String {
    match Policy::parse(text) {
        Ok(policy) => panic!("accepted: {policy:?}"),
        Err(error) => error.to_string(),
    }
}

/// One rule on fcntl with one condition, written so.
fn fcntl(condition: &str) -> String {
    one_rule(&format!(
        "syscall = \"fcntl\"\naction = \"allow\"\nwhen = [{{ {condition} }}]"
    ))
}

#[test]
fn the_policies_of_this_tree_are_read() {
    for (id, text) in BUILT_IN {
        let policy = Policy::parse(text).expect(id);
        assert!(policy.rules().len() > 10, "{id}");
        assert!(Policy::of_profile(id).expect(id).is_ok());
    }
    assert!(Policy::of_profile("json-python-bwrap-v9").is_none());
}

#[test]
fn a_condition_means_what_is_written() {
    let cases = [
        ("op = \"eq\", value = \"F_GETFD\"", Comparison::Equal(1)),
        ("op = \"ne\", value = \"7\"", Comparison::NotEqual(7)),
        ("op = \"lt\", value = \"0x10\"", Comparison::Below(16)),
        ("op = \"le\", value = \"127\"", Comparison::AtMost(127)),
        ("op = \"gt\", value = \"1\"", Comparison::Above(1)),
        ("op = \"ge\", value = \"F_SETFL\"", Comparison::AtLeast(4)),
        (
            "op = \"within\", value = \"1 | 2|0x4\"",
            Comparison::Within(7),
        ),
        (
            "op = \"masked_eq\", mask = \"0xff\", value = \"3\"",
            Comparison::MaskedEqual {
                mask: 255,
                value: 3,
            },
        ),
    ];
    for (written, expected) in cases {
        let text = fcntl(&format!(
            "index = 1, name = \"op\", width = \"dword\", {written}"
        ));
        let policy = Policy::parse(&text).expect(written);
        let condition = policy.rules()[0].conditions()[0];
        assert_eq!(condition.comparison, expected, "{written}");
        assert_eq!(condition.width, Width::Dword);
    }
}

#[test]
fn a_negative_constant_is_the_int_that_the_kernel_reads() {
    let text = one_rule(
        "syscall = \"openat\"\naction = \"allow\"\n\
         when = [{ index = 0, name = \"dirfd\", width = \"dword\", op = \"eq\", value = \"AT_FDCWD\" }]",
    );
    let policy = Policy::parse(&text).expect("a policy");
    let condition = policy.rules()[0].conditions()[0];
    assert_eq!(condition.comparison, Comparison::Equal(0xffff_ff9c));
}

#[test]
fn whatever_is_not_known_is_refused_and_named() {
    let allow = "syscall = \"read\"\naction = \"allow\"";
    let cases = [
        (one_rule(&format!("{allow}\nwen = []")), "wen"),
        (one_rule("action = \"allow\""), "syscall"),
        (one_rule("syscall = \"reed\"\naction = \"allow\""), "reed"),
        (one_rule("syscall = \"read\"\naction = \"alow\""), "alow"),
        (one_rule("syscall = \"read\"\naction = \"log\""), "log"),
        (one_rule("syscall = \"read\"\naction = \"errno\""), "errno"),
        (
            one_rule("syscall = \"read\"\naction = \"errno EFOO\""),
            "EFOO",
        ),
        (one_rule("syscall = \"read\"\naction = \"errno 13\""), "13"),
        (
            one_rule("syscall = \"read\"\naction = \"kill_process\""),
            "conditions",
        ),
        (format!("rule = []\n{HEAD}"), "1 to"),
        (HEAD.to_owned(), "rule"),
        (one_rule(allow).replace("policy/1", "policy/2"), "policy/2"),
        (
            one_rule(allow).replace("\"kill_process\"", "\"allow\""),
            "default action",
        ),
        (one_rule(allow).replace("id = \"a\"", "id = \"A b\""), "id"),
        (
            one_rule(allow).replacen("reason = \"A reason.\"\nsys", "reason = \"\"\nsys", 1),
            "reason",
        ),
        (
            one_rule(&format!(
                "{allow}\n[[exempt]]\nsyscall = \"uprobe\"\nnumber = 335\nreason = \"A.\""
            )),
            "336",
        ),
        (
            one_rule(&format!(
                "{allow}\n[[exempt]]\nsyscall = \"read\"\nnumber = 0\nreason = \"A.\""
            )),
            "exempts",
        ),
        (
            format!("{}{}", one_rule(allow), " ".repeat(300_000)),
            "longer",
        ),
        ("not toml".to_owned(), "TOML"),
    ];
    for (text, named) in cases {
        let error = refusal(&text);
        assert!(error.contains(named), "{error:?} does not name {named:?}");
    }
}

#[test]
fn a_condition_that_compares_other_bits_than_the_kernel_reads_is_refused() {
    // G01, G02: the width is the kernel's, and so are the argument and its family.
    let rest = "op = \"eq\", value = \"1\"";
    let cases = [
        (
            format!("index = 1, name = \"op\", width = \"qword\", {rest}"),
            "reads argument 1",
        ),
        (
            format!("index = 2, name = \"arg\", width = \"dword\", {rest}"),
            "reads argument 2",
        ),
        (
            format!("index = 1, name = \"op\", width = \"word\", {rest}"),
            "word",
        ),
        (
            format!("index = 1, name = \"arg\", width = \"dword\", {rest}"),
            "\"op\"",
        ),
        (
            format!("index = 3, name = \"x\", width = \"dword\", {rest}"),
            "no argument 3",
        ),
        (
            format!("index = 1, name = \"op\", width = \"dword\", mask = \"1\", {rest}"),
            "mask",
        ),
        (
            format!("index = 1, name = \"op\", width = \"dword\", {rest}, also = 1"),
            "also",
        ),
    ];
    for (condition, named) in cases {
        let error = refusal(&fcntl(&condition));
        assert!(error.contains(named), "{error:?} does not name {named:?}");
    }
    let values = [
        (
            "op = \"eq\", value = \"0x100000001\"",
            "bits that the kernel does not read",
        ),
        ("op = \"eq\", value = \"-1\"", "-1"),
        ("op = \"eq\", value = \"\"", "no constant"),
        ("op = \"eq\", value = \"1|\"", "no constant"),
        ("op = \"eq\", value = \"0x\"", "0x"),
        ("op = \"eq\", value = \"F_FOO\"", "F_FOO"),
        ("op = \"eq\", value = \"O_CLOEXEC\"", "family"),
        ("op = \"eq\", value = \"99999999999999999999\"", "999"),
        ("op = \"is\", value = \"1\"", "is"),
        ("op = \"masked_eq\", value = \"1\"", "mask"),
        (
            "op = \"masked_eq\", mask = \"0\", value = \"0\"",
            "does not depend",
        ),
        (
            "op = \"masked_eq\", mask = \"1\", value = \"2\"",
            "does not depend",
        ),
        ("op = \"le\", value = \"0xffffffff\"", "does not depend"),
        ("op = \"ge\", value = \"0\"", "does not depend"),
        ("op = \"lt\", value = \"0\"", "does not depend"),
        ("op = \"within\", value = \"0xffffffff\"", "does not depend"),
    ];
    for (value, named) in values {
        let text = fcntl(&format!(
            "index = 1, name = \"op\", width = \"dword\", {value}"
        ));
        let error = refusal(&text);
        assert!(error.contains(named), "{error:?} does not name {named:?}");
    }
}

#[test]
fn a_call_whose_parameters_are_not_known_can_have_no_conditions() {
    let text = one_rule(
        "syscall = \"mount\"\naction = \"allow\"\n\
         when = [{ index = 0, name = \"x\", width = \"qword\", op = \"eq\", value = \"1\" }]",
    );
    assert!(refusal(&text).contains("signatures"));
}

#[test]
fn numbers_and_names_of_calls_are_unique_and_ascending() {
    let all: Vec<Syscall> = Syscall::all().collect();
    assert!(all.windows(2).all(|pair| pair[0].number < pair[1].number));
    let names: BTreeSet<&str> = all.iter().map(|syscall| syscall.name).collect();
    assert_eq!(names.len(), all.len());
    for syscall in all {
        assert_eq!(Syscall::by_name(syscall.name), Some(syscall));
        assert_eq!(Syscall::by_number(syscall.number), Some(syscall));
    }
    assert_eq!(Syscall::by_number(100_000), None);
}

#[test]
fn the_numbers_are_those_of_the_hosts_header() {
    let places = [
        "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
        "/usr/include/asm/unistd_64.h",
    ];
    let Some(header) = places.iter().find(|place| Path::new(place).exists()) else {
        let missing = "no asm/unistd_64.h on this host (Debian: linux-libc-dev)";
        assert!(
            std::env::var_os("LAZARET_REQUIRE_CLOSURE").is_none(),
            "{missing}"
        );
        println!("SKIPPED: {missing}");
        return;
    };
    let text = std::fs::read_to_string(header).expect("readable");
    let mut seen = 0;
    for line in text.lines() {
        let Some((name, number)) = line
            .strip_prefix("#define __NR_")
            .and_then(|rest| rest.split_once(' '))
        else {
            continue;
        };
        let number: u32 = number.trim().parse().expect("a number");
        let known = Syscall::by_name(name);
        // A newer header than the table may know more; it may not disagree.
        if let Some(syscall) = known {
            assert_eq!(syscall.number, number, "{name}");
            seen += 1;
        } else {
            let last = Syscall::all().map(|syscall| syscall.number).max();
            assert!(Some(number) > last, "{name} is not in the table");
        }
    }
    assert!(seen > 300, "only {seen} numbers in {header}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_constants_are_those_of_the_c_library() {
    use std::collections::BTreeMap;
    let library: BTreeMap<&str, i64> = [
        ("AT_EMPTY_PATH", libc::AT_EMPTY_PATH),
        ("AT_FDCWD", libc::AT_FDCWD),
        ("AT_SYMLINK_NOFOLLOW", libc::AT_SYMLINK_NOFOLLOW),
        ("CLOCK_BOOTTIME", libc::CLOCK_BOOTTIME),
        ("CLOCK_MONOTONIC", libc::CLOCK_MONOTONIC),
        ("CLOCK_PROCESS_CPUTIME_ID", libc::CLOCK_PROCESS_CPUTIME_ID),
        ("CLOCK_REALTIME", libc::CLOCK_REALTIME),
        ("CLOCK_THREAD_CPUTIME_ID", libc::CLOCK_THREAD_CPUTIME_ID),
        ("F_DUPFD", libc::F_DUPFD),
        ("F_DUPFD_CLOEXEC", libc::F_DUPFD_CLOEXEC),
        ("F_GETFD", libc::F_GETFD),
        ("F_GETFL", libc::F_GETFL),
        ("F_SETFD", libc::F_SETFD),
        ("F_SETFL", libc::F_SETFL),
        ("FD_CLOEXEC", libc::FD_CLOEXEC),
        ("MAP_ANONYMOUS", libc::MAP_ANONYMOUS),
        ("MAP_FIXED", libc::MAP_FIXED),
        ("MAP_NORESERVE", libc::MAP_NORESERVE),
        ("MAP_PRIVATE", libc::MAP_PRIVATE),
        ("MAP_SHARED", libc::MAP_SHARED),
        ("MREMAP_DONTUNMAP", libc::MREMAP_DONTUNMAP),
        ("MREMAP_FIXED", libc::MREMAP_FIXED),
        ("MREMAP_MAYMOVE", libc::MREMAP_MAYMOVE),
        ("O_APPEND", libc::O_APPEND),
        ("O_CLOEXEC", libc::O_CLOEXEC),
        ("O_CREAT", libc::O_CREAT),
        ("O_DIRECTORY", libc::O_DIRECTORY),
        ("O_EXCL", libc::O_EXCL),
        ("O_NOFOLLOW", libc::O_NOFOLLOW),
        ("O_NONBLOCK", libc::O_NONBLOCK),
        ("O_PATH", libc::O_PATH),
        ("O_RDONLY", libc::O_RDONLY),
        ("O_RDWR", libc::O_RDWR),
        ("O_TRUNC", libc::O_TRUNC),
        ("O_WRONLY", libc::O_WRONLY),
        ("PROT_EXEC", libc::PROT_EXEC),
        ("PROT_NONE", libc::PROT_NONE),
        ("PROT_READ", libc::PROT_READ),
        ("PROT_WRITE", libc::PROT_WRITE),
        ("TIMER_ABSTIME", libc::TIMER_ABSTIME),
        // glibc calls it 0 on x86_64; the kernel's and musl's value is this.
        ("O_LARGEFILE", 0o100_000),
    ]
    .into_iter()
    .map(|(name, value)| (name, i64::from(value)))
    .collect();
    let table: BTreeMap<&str, i64> = constants::all().collect();
    assert_eq!(table, library);
}

#[cfg(target_os = "linux")]
#[test]
fn the_error_numbers_are_those_of_the_c_library() {
    let library = [
        ("EPERM", libc::EPERM),
        ("ENOENT", libc::ENOENT),
        ("EINTR", libc::EINTR),
        ("EBADF", libc::EBADF),
        ("EAGAIN", libc::EAGAIN),
        ("ENOMEM", libc::ENOMEM),
        ("EACCES", libc::EACCES),
        ("EEXIST", libc::EEXIST),
        ("ENODEV", libc::ENODEV),
        ("ENOTDIR", libc::ENOTDIR),
        ("EINVAL", libc::EINVAL),
        ("ENOTTY", libc::ENOTTY),
        ("ENOSPC", libc::ENOSPC),
        ("EROFS", libc::EROFS),
        ("ERANGE", libc::ERANGE),
        ("ENOSYS", libc::ENOSYS),
        ("EOPNOTSUPP", libc::EOPNOTSUPP),
    ];
    let table: Vec<(&str, i32)> = Errno::all()
        .map(|errno| (errno.name(), i32::from(errno.number())))
        .collect();
    assert_eq!(table, library);
    assert_eq!(
        Errno::by_name("ENOSYS")
            .map(Action::Errno)
            .map(|it| it.to_string())
            .as_deref(),
        Some("ENOSYS")
    );
}

#[test]
fn signatures_are_of_known_calls_and_have_at_most_six_parameters() {
    for (name, parameters) in signatures::all() {
        assert!(Syscall::by_name(name).is_some(), "{name}");
        assert!(parameters.len() <= 6, "{name}");
        for parameter in parameters {
            if let Some(family) = parameter.family {
                assert!(
                    constants::all().any(|(constant, _)| constants::family_of(constant) == family),
                    "{name}: {family}"
                );
            }
        }
    }
}
