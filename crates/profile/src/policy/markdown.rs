//! The policy as a page for people: `docs/filter.md` is what this prints.

use std::fmt::Write as _;

use super::{Comparison, Condition, Parameter, Policy, Rule, constants, parameters_of};
use crate::filter::{AcceptedSet, CompileError, Filter, TooManyTerms};

/// Why a page could not be printed.
#[derive(Debug, thiserror::Error)]
pub enum MarkdownError {
    /// The policy has no program.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The program accepts nothing that could be listed.
    #[error(transparent)]
    Terms(#[from] TooManyTerms),
}

const INTRODUCTION: &str = "\
# The system call filter

<!-- Generated from policy.toml. To change this page, change that file and run
     LAZARET_BLESS=1 cargo test -p lazaret-profile --test filter -->

The launcher installs this filter before a byte of the package is compiled. From then on nothing
in the process, not even an interpreter that has been taken over, can ask the kernel for anything
that is not listed here, and no filter can be taken off again.

1. A call by another convention than x86_64's own (`int 0x80`, for example) kills the process.
2. A call with the x32 bit (0x40000000) in its number kills it.
3. The first rule below whose conditions all hold decides.
4. Everything else kills it.

An argument is compared on exactly the bits that the kernel reads: the low 32 for an `int` (*dword*),
all 64 for a `long` or a pointer (*qword*). A refusal with an error number carries nothing out.
";

const LISTING: &str = "\
## What the compiled program accepts

Found out from the program's bytes by walking every path, not from the rules above; a test shows
that the two say the same about every possible call. Everything that is not listed kills.
";

/// The page of a policy and the profiles that have it.
pub fn policy_markdown(policy: &Policy, profiles: &[&str]) -> Result<String, MarkdownError> {
    let filter = Filter::compile(policy)?;
    let accepted = AcceptedSet::of_filter(&filter)?;
    let mut page = String::from(INTRODUCTION);
    // Writing to a String cannot fail.
    let _ = writeln!(page, "\nProfiles: `{}`.\n", profiles.join("`, `"));
    page.push_str("## Rules\n\n");
    page.push_str("| number | call | when | answer | why |\n|---|---|---|---|---|\n");
    for rule in policy.rules() {
        write_rule(&mut page, rule);
    }
    let _ = writeln!(
        page,
        "| | everything else | | **kill** | {} |",
        cell(policy.default_reason())
    );
    page.push_str("\n## Not shown to filters\n\n| number | call | why |\n|---|---|---|\n");
    for exemption in policy.exemptions() {
        let (syscall, reason) = (exemption.syscall, cell(&exemption.reason));
        let _ = writeln!(
            page,
            "| {} | `{}` | {reason} |",
            syscall.number, syscall.name
        );
    }
    let _ = writeln!(
        page,
        "\n{LISTING}\n{} instructions, SHA-256 `{}`.\n\n```text\n{accepted}```",
        filter.instructions().len(),
        filter.sha256()
    );
    Ok(page)
}

fn write_rule(page: &mut String, rule: &Rule) {
    let syscall = rule.syscall();
    let conditions: Vec<String> = rule
        .conditions()
        .iter()
        .map(|condition| describe(syscall.name, condition))
        .collect();
    let answer = match rule.action() {
        super::Action::Allow => "allow".to_owned(),
        super::Action::Errno(errno) => format!("**{errno}**"),
        super::Action::KillProcess => "**kill**".to_owned(),
    };
    let _ = writeln!(
        page,
        "| {} | `{}` | {} | {answer} | {} |",
        syscall.number,
        syscall.name,
        conditions.join("<br>"),
        cell(rule.reason())
    );
}

/// Text in a table's cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

fn describe(syscall: &str, condition: &Condition) -> String {
    let parameter = parameters_of(syscall).and_then(|all| all.get(usize::from(condition.index)));
    let Some(parameter) = parameter else {
        return String::new();
    };
    let value = |value| value_text(parameter, value);
    let comparison = match condition.comparison {
        Comparison::Equal(wanted) => format!("= {}", value(wanted)),
        Comparison::NotEqual(wanted) => format!("≠ {}", value(wanted)),
        Comparison::Below(bound) => format!("&lt; {}", value(bound)),
        Comparison::AtMost(bound) => format!("≤ {}", value(bound)),
        Comparison::Above(bound) => format!("> {}", value(bound)),
        Comparison::AtLeast(bound) => format!("≥ {}", value(bound)),
        Comparison::Within(bits) => format!("has no bits but {}", value(bits)),
        Comparison::MaskedEqual { mask, value: bits } => {
            format!("& {mask:#x} = {}", value(bits))
        }
    };
    let width = condition.width.name();
    format!("`{}` ({width}) {comparison}", parameter.name).replace('|', "\\|")
}

/// A value by the constants of the argument's family, if they make it up.
fn value_text(parameter: &Parameter, value: u64) -> String {
    parameter
        .family
        .and_then(|family| {
            names(
                family,
                value & parameter.width.mask(),
                parameter.width.mask(),
            )
        })
        .unwrap_or_else(|| {
            if value < 1024 {
                value.to_string()
            } else {
                format!("{value:#x}")
            }
        })
}

fn names(family: &str, value: u64, mask: u64) -> Option<String> {
    let of_family = || {
        constants::all()
            .filter(move |(name, _)| constants::family_of(name) == family)
            .map(move |(name, number)| (name, number.cast_unsigned() & mask))
    };
    if let Some((name, _)) = of_family().find(|&(_, number)| number == value) {
        return Some(name.to_owned());
    }
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = value;
    // The access mode of open is a number of two bits, and O_RDONLY is 0.
    if family == "O_" && value & 3 == 0 {
        parts.push("O_RDONLY");
    }
    let mut bits: Vec<(&str, u64)> = of_family()
        .filter(|&(_, number)| number.is_power_of_two())
        .collect();
    bits.sort_unstable_by_key(|&(_, bit)| bit);
    for (name, bit) in bits {
        if rest & bit != 0 {
            parts.push(name);
            rest &= !bit;
        }
    }
    (rest == 0 && !parts.is_empty()).then(|| parts.join(" | "))
}
