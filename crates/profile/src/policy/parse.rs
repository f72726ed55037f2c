//! From the text of `policy.toml` to a checked [`Policy`].
//!
//! The format is closed: a key, name, operator or constant that is not known
//! here is an error, so that a misspelt condition can never be an absent one.

use serde::Deserialize;

use super::errno::Errno;
use super::rule::{Action, Comparison, Condition, Rule, RuleError};
use super::signatures::{Parameter, Width, parameters_of};
use super::syscalls::Syscall;
use super::{Exemption, Policy, RuleListError, constants};

/// The only format that this reads.
const SCHEMA: &str = "lazaret-filter-policy/1";

/// No policy comes near; a larger text is refused before it is parsed.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Why a text is not a policy, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy.toml{}: {kind}", place(.rule.as_deref()))]
pub struct PolicyError {
    /// The id of the rule that is wrong, if one is.
    pub rule: Option<String>,
    /// What is wrong.
    pub kind: PolicyErrorKind,
}

fn place(rule: Option<&str>) -> String {
    rule.map_or_else(String::new, |id| format!(", rule {id:?}"))
}

/// What is wrong with a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyErrorKind {
    /// Longer than any policy.
    #[error("the text is longer than {TEXT_BYTES_MAX} bytes")]
    TooLong,
    /// Not TOML, or a key that is missing or unknown.
    #[error("{0}")]
    Toml(String),
    /// Another format than this one.
    #[error("the schema is {0:?}, not {SCHEMA:?}")]
    Schema(String),
    /// Only one default is safe.
    #[error("the default action is {0:?}; it can only be \"kill_process\"")]
    Default(String),
    /// Not one of the three actions.
    #[error("the action {0:?} is none of allow, errno NAME, kill_process")]
    Action(String),
    /// Not an error number that may be answered.
    #[error("the errno {0:?} is not in the table")]
    Errno(String),
    /// Not a system call of x86_64.
    #[error("the system call {0:?} is not in the table of x86_64")]
    Syscall(String),
    /// Name and number of an exempted call disagree.
    #[error("{name} is number {table}, not {written}")]
    Number {
        /// The name that was written.
        name: &'static str,
        /// Its number.
        table: u32,
        /// The number that was written.
        written: u32,
    },
    /// The name beside the index is another argument's.
    #[error("argument {index} of {syscall} is {table:?}, not {written:?}")]
    ArgumentName {
        /// The call.
        syscall: &'static str,
        /// The index that was written.
        index: u8,
        /// The argument's name.
        table: &'static str,
        /// The name that was written.
        written: String,
    },
    /// Neither dword nor qword.
    #[error("the width {0:?} is neither dword nor qword")]
    Width(String),
    /// Not one of the operators.
    #[error("the operator {0:?} is none of eq, ne, lt, le, gt, ge, masked_eq, within")]
    Operator(String),
    /// `masked_eq` needs a mask, nothing else may have one.
    #[error("the operator {0:?} and the mask do not go together")]
    Mask(String),
    /// Not a number or a constant.
    #[error("{0:?} is no number and no constant of the table")]
    Value(String),
    /// A constant that means nothing for this argument.
    #[error("the constant {constant:?} is not of the family of argument {argument:?}")]
    Family {
        /// The constant that was written.
        constant: String,
        /// The argument's name.
        argument: &'static str,
    },
    /// A part of a rule is wrong.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The rules do not fit together.
    #[error(transparent)]
    Rules(#[from] RuleListError),
}

impl From<RuleListError> for PolicyError {
    fn from(error: RuleListError) -> Self {
        Self {
            rule: None,
            kind: error.into(),
        }
    }
}

impl From<PolicyErrorKind> for PolicyError {
    fn from(kind: PolicyErrorKind) -> Self {
        Self { rule: None, kind }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyText {
    schema: String,
    default: DefaultText,
    #[serde(default)]
    exempt: Vec<ExemptionText>,
    rule: Vec<RuleText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultText {
    action: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExemptionText {
    syscall: String,
    number: u32,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    id: String,
    syscall: String,
    action: String,
    #[serde(default)]
    when: Vec<ConditionText>,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConditionText {
    index: u8,
    name: String,
    width: String,
    op: String,
    value: String,
    mask: Option<String>,
}

pub(super) fn parse(text: &str) -> Result<Policy, PolicyError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(PolicyErrorKind::TooLong.into());
    }
    let read: PolicyText =
        toml::from_str(text).map_err(|error| PolicyErrorKind::Toml(error.to_string()))?;
    if read.schema != SCHEMA {
        return Err(PolicyErrorKind::Schema(read.schema).into());
    }
    if read.default.action != "kill_process" {
        return Err(PolicyErrorKind::Default(read.default.action).into());
    }
    let exemptions = read
        .exempt
        .into_iter()
        .map(exemption)
        .collect::<Result<_, _>>()?;
    let rules = read
        .rule
        .iter()
        .map(|text| {
            rule(text).map_err(|kind| PolicyError {
                rule: Some(text.id.clone()),
                kind,
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(Policy::new(&read.default.reason, rules, exemptions)?)
}

fn exemption(text: ExemptionText) -> Result<Exemption, PolicyErrorKind> {
    let syscall = syscall(&text.syscall)?;
    if syscall.number != text.number {
        return Err(PolicyErrorKind::Number {
            name: syscall.name,
            table: syscall.number,
            written: text.number,
        });
    }
    Ok(Exemption {
        syscall,
        reason: text.reason,
    })
}

fn rule(text: &RuleText) -> Result<Rule, PolicyErrorKind> {
    let syscall = syscall(&text.syscall)?;
    let conditions = text
        .when
        .iter()
        .map(|when| condition(syscall, when))
        .collect::<Result<_, _>>()?;
    Ok(Rule::new(
        &text.id,
        syscall,
        action(&text.action)?,
        conditions,
        &text.reason,
    )?)
}

fn syscall(name: &str) -> Result<Syscall, PolicyErrorKind> {
    Syscall::by_name(name).ok_or_else(|| PolicyErrorKind::Syscall(name.to_owned()))
}

fn action(text: &str) -> Result<Action, PolicyErrorKind> {
    match text {
        "allow" => Ok(Action::Allow),
        "kill_process" => Ok(Action::KillProcess),
        _ => {
            let name = text
                .strip_prefix("errno ")
                .ok_or_else(|| PolicyErrorKind::Action(text.to_owned()))?;
            Errno::by_name(name)
                .map(Action::Errno)
                .ok_or_else(|| PolicyErrorKind::Errno(name.to_owned()))
        }
    }
}

fn condition(syscall: Syscall, text: &ConditionText) -> Result<Condition, PolicyErrorKind> {
    let index = text.index;
    let parameters = parameters_of(syscall.name).ok_or(RuleError::NoSignature {
        syscall: syscall.name,
    })?;
    let parameter = parameters
        .get(usize::from(index))
        .ok_or(RuleError::NoSuchArgument {
            syscall: syscall.name,
            index,
        })?;
    if parameter.name != text.name {
        return Err(PolicyErrorKind::ArgumentName {
            syscall: syscall.name,
            index,
            table: parameter.name,
            written: text.name.clone(),
        });
    }
    let width = match text.width.as_str() {
        "dword" => Width::Dword,
        "qword" => Width::Qword,
        other => return Err(PolicyErrorKind::Width(other.to_owned())),
    };
    Ok(Condition {
        index,
        width,
        comparison: comparison(text, parameter, width)?,
    })
}

fn comparison(
    text: &ConditionText,
    parameter: &Parameter,
    width: Width,
) -> Result<Comparison, PolicyErrorKind> {
    let value = value(&text.value, parameter, width)?;
    if (text.op == "masked_eq") != text.mask.is_some() {
        return Err(PolicyErrorKind::Mask(text.op.clone()));
    }
    match (text.op.as_str(), text.mask.as_deref()) {
        ("eq", _) => Ok(Comparison::Equal(value)),
        ("ne", _) => Ok(Comparison::NotEqual(value)),
        ("lt", _) => Ok(Comparison::Below(value)),
        ("le", _) => Ok(Comparison::AtMost(value)),
        ("gt", _) => Ok(Comparison::Above(value)),
        ("ge", _) => Ok(Comparison::AtLeast(value)),
        ("within", _) => Ok(Comparison::Within(value)),
        ("masked_eq", Some(mask)) => Ok(Comparison::MaskedEqual {
            mask: self::value(mask, parameter, width)?,
            value,
        }),
        (other, _) => Err(PolicyErrorKind::Operator(other.to_owned())),
    }
}

/// Terms joined by `|`: constants of the argument's family, or numbers.
fn value(text: &str, parameter: &Parameter, width: Width) -> Result<u64, PolicyErrorKind> {
    text.split('|').try_fold(0, |so_far, part| {
        term(part.trim(), parameter, width).map(|bits| so_far | bits)
    })
}

fn term(text: &str, parameter: &Parameter, width: Width) -> Result<u64, PolicyErrorKind> {
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        let number = match text.strip_prefix("0x") {
            Some(digits) if digits.bytes().all(|b| b.is_ascii_hexdigit()) => {
                u64::from_str_radix(digits, 16).ok()
            }
            _ if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
            _ => None,
        };
        return number.ok_or_else(|| PolicyErrorKind::Value(text.to_owned()));
    }
    let value = constants::value_of(text).ok_or_else(|| PolicyErrorKind::Value(text.to_owned()))?;
    if parameter.family != Some(constants::family_of(text)) {
        return Err(PolicyErrorKind::Family {
            constant: text.to_owned(),
            argument: parameter.name,
        });
    }
    // A negative constant is an int: as many bits of it as the kernel reads.
    Ok(value.cast_unsigned() & width.mask())
}
