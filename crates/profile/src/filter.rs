//! The filter: a policy as the program that the kernel runs before each system
//! call, and the proofs that the program and the policy are the same thing.
//!
//! A [`Filter`] is made from a policy ([`Filter::compile`]) or from the very
//! bytes that are installed ([`Filter::from_bytes`]); either way it is verified
//! before it exists, so that running it can neither fail nor loop. What it
//! accepts is found out from its instructions alone ([`AcceptedSet::of_filter`],
//! a walk over every path) and compared with the policy, bit by bit, by
//! [`Filter::prove`]. This module must never take the policy's word for what
//! the program does, nor produce a program that does not look at the
//! architecture and the x32 bit first.

mod accepted;
#[cfg(all(target_os = "linux", not(lazaret_no_profile)))]
mod compile;
mod diagram;
mod instruction;
mod sweep;
mod symbolic;
mod verify;

use std::fmt::Write as _;

use lazaret_contract::digest::Sha256Digest;

use crate::policy::{Action, Call, Policy};

pub use accepted::{AcceptedSet, ArgumentBits, Entry, Outcome, TooManyTerms};
#[cfg(all(target_os = "linux", not(lazaret_no_profile)))]
pub use compile::CompileError;
pub use instruction::{Instruction, Operation, Test};
pub use sweep::{NUMBERS_SWEPT, combined_halves, satisfying, sweep_arguments, variations};
pub use symbolic::{Disagreement, Walk, equal_policies};
pub use verify::{INSTRUCTIONS_MAX, VerifyError, VerifyErrorKind};

/// A verified seccomp program for x86_64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    instructions: Vec<Instruction>,
}

impl Filter {
    /// The one program of a policy. Deterministic: the same policy gives the
    /// same bytes, whatever the order of its calls in the file. Only the build
    /// compiles, on Linux; a closure holds the bytes.
    #[cfg(all(target_os = "linux", not(lazaret_no_profile)))]
    pub fn compile(policy: &Policy) -> Result<Self, CompileError> {
        let instructions = compile::compile(policy)?;
        Ok(Self::from_instructions(instructions)?)
    }

    /// The program in `filter.bpf`: an array of `struct sock_filter`
    /// (linux/filter.h), eight bytes each, little-endian.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, VerifyError> {
        Self::from_instructions(instruction::decode(bytes)?)
    }

    /// A program from its instructions, refused unless it is one of the few
    /// forms that a filter of ours can have.
    pub fn from_instructions(instructions: Vec<Instruction>) -> Result<Self, VerifyError> {
        verify::verify(&instructions)?;
        Ok(Self { instructions })
    }

    /// The instructions, in order.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The bytes of `filter.bpf`, which are also those in the launcher.
    pub fn to_bytes(&self) -> Vec<u8> {
        instruction::encode(&self.instructions)
    }

    /// The digest of [`Filter::to_bytes`].
    pub fn sha256(&self) -> Sha256Digest {
        Sha256Digest::of(&self.to_bytes())
    }

    /// `lazaret_filter.h`, which the launcher includes: the program as a
    /// constant array, its length and its digest.
    pub fn to_c_header(&self) -> String {
        let mut text = String::from(
            "/* Generated from policy.toml by the build. Do not edit. */\n\
             #ifndef LAZARET_FILTER_H\n\
             #define LAZARET_FILTER_H\n\n\
             #include <linux/filter.h>\n\n",
        );
        let count = self.instructions.len();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "#define LZ_FILTER_INSTRUCTIONS {count}");
        let _ = writeln!(text, "#define LZ_FILTER_SHA256 \"{}\"\n", self.sha256());
        text.push_str("static const struct sock_filter lz_filter[LZ_FILTER_INSTRUCTIONS] = {\n");
        for Instruction { code, jt, jf, k } in &self.instructions {
            let _ = writeln!(text, "    {{ 0x{code:02x}, {jt}, {jf}, 0x{k:08x} }},");
        }
        text.push_str("};\n\n#endif\n");
        text
    }

    /// What the program answers to a call: an interpreter of the bytecode, as
    /// the kernel's, for the forms that [`Filter::from_instructions`] accepts.
    pub fn run(&self, call: &Call) -> Action {
        verify::run(&self.instructions, call)
    }

    /// What an installed filter will answer to these registers; what the attack
    /// suite compares the live answers with. Calls that [`Policy::is_exempt`]
    /// names are not shown to any filter by newer kernels.
    pub fn predicted(&self, number: u32, arguments: [u64; 6], architecture: u32) -> Action {
        self.run(&Call {
            number,
            architecture,
            arguments,
        })
    }

    /// Shows that the program accepts exactly what the policy says: every path
    /// is walked, and both become one canonical diagram over all 448 bits that
    /// a filter can see. The error is a call on which the two differ.
    pub fn prove(&self, policy: &Policy) -> Result<(), Disagreement> {
        symbolic::prove(self, policy)
    }

    /// The program in the notation of the kernel's bpf tools, one line each.
    pub fn disassemble(&self) -> String {
        let mut text = String::new();
        for (at, instruction) in self.instructions.iter().enumerate() {
            let _ = writeln!(text, "{at:4}: {}", instruction.describe(at));
        }
        text
    }
}
