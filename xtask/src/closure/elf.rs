//! What the headers of an executable say, and what its bytes must not say.
//!
//! goblin reads the headers; this module judges nothing but collects facts, and
//! looks for the names of places and people in the bytes. A field that cannot be
//! read is an error, never a favourable answer.

use std::path::Path;

use anyhow::{Context, Result, bail};
use goblin::elf::Elf;
use goblin::elf::dynamic::{DF_1_NOW, DF_1_PIE, DF_BIND_NOW};
use goblin::elf::header::{EM_X86_64, ET_DYN};
use goblin::elf::program_header::{PF_W, PF_X, PT_GNU_RELRO, PT_GNU_STACK, PT_LOAD, PT_NOTE};
use lazaret_profile::manifest::{ElfFacts, Relro};

/// The type of a note that holds a build id (elf.h).
const NT_GNU_BUILD_ID: u32 = 3;

/// Reads the facts of the executable `path` of a closure.
///
/// # Errors
/// When the bytes are no ELF executable of x86_64 or a header cannot be read.
pub fn facts(path: &str, bytes: &[u8]) -> Result<ElfFacts> {
    let elf = Elf::parse(bytes).with_context(|| format!("reading the headers of {path}"))?;
    if elf.header.e_machine != EM_X86_64 || !elf.is_64 || !elf.little_endian {
        bail!("{path} is no executable of x86_64");
    }
    let info = elf.dynamic.as_ref().map(|dynamic| &dynamic.info);
    let flags = info.map_or(0, |info| info.flags);
    let flags_1 = info.map_or(0, |info| info.flags_1);
    let bind_now = flags & DF_BIND_NOW != 0 || flags_1 & DF_1_NOW != 0;
    let has_relro = elf
        .program_headers
        .iter()
        .any(|header| header.p_type == PT_GNU_RELRO);
    let stack = elf
        .program_headers
        .iter()
        .find(|header| header.p_type == PT_GNU_STACK);
    let both = PF_W | PF_X;
    let unsafe_segments = elf
        .program_headers
        .iter()
        .filter(|header| header.p_type == PT_LOAD && header.p_flags & both == both)
        .count();
    let mut run_paths: Vec<String> = elf.rpaths.iter().map(|&text| text.to_owned()).collect();
    run_paths.extend(elf.runpaths.iter().map(|&text| text.to_owned()));
    Ok(ElfFacts {
        path: path.to_owned(),
        position_independent: elf.header.e_type == ET_DYN && flags_1 & DF_1_PIE != 0,
        interpreter: elf.interpreter.map(str::to_owned),
        needed: elf.libraries.iter().map(|&text| text.to_owned()).collect(),
        run_paths,
        // Without the header the kernel makes the stack executable.
        executable_stack: stack.is_none_or(|header| header.p_flags & PF_X != 0),
        relro: match (has_relro, bind_now) {
            (false, _) => Relro::None,
            (true, false) => Relro::Partial,
            (true, true) => Relro::Full,
        },
        bind_now,
        writable_executable_segments: u32::try_from(unsafe_segments).unwrap_or(u32::MAX),
        build_id: has_build_id(&elf, bytes)?,
    })
}

fn has_build_id(elf: &Elf<'_>, bytes: &[u8]) -> Result<bool> {
    if !elf
        .program_headers
        .iter()
        .any(|header| header.p_type == PT_NOTE)
    {
        return Ok(false);
    }
    let Some(notes) = elf.iter_note_headers(bytes) else {
        bail!("the notes cannot be read")
    };
    for note in notes {
        let note = note.context("reading a note")?;
        if note.name == "GNU" && note.n_type == NT_GNU_BUILD_ID {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Names that an output must not hold, because they tell where and by whom it was built.
#[derive(Debug, Default)]
pub struct Traces(Vec<(&'static str, Vec<u8>)>);

impl Traces {
    /// The names of this machine and of the repository at `root`.
    pub fn of_host(root: &Path) -> Self {
        let mut traces = Self::default();
        traces.path("the build directory", &root.display().to_string());
        if let Some(home) = std::env::var_os("HOME") {
            traces.path("the home directory", &home.to_string_lossy());
        }
        let host = rustix::system::uname();
        traces.name("the host's name", &host.nodename().to_string_lossy());
        if let Some(user) = std::env::var_os("USER").or_else(|| std::env::var_os("LOGNAME")) {
            traces.name("the user's name", &user.to_string_lossy());
        }
        traces
    }

    /// A path, followed by the slash that every path below it has.
    fn path(&mut self, what: &'static str, path: &str) {
        let path = path.trim_end_matches('/');
        if !path.is_empty() {
            self.0.push((what, format!("{path}/").into_bytes()));
        }
    }

    /// A name, where it is long enough to tell anything: `root` or `localhost` are words of
    /// every program.
    fn name(&mut self, what: &'static str, name: &str) {
        if name.len() >= 6 && !["localhost", "python", "debian", "ubuntu"].contains(&name) {
            self.0.push((what, name.as_bytes().to_vec()));
        }
    }

    /// Looks for all of them.
    ///
    /// # Errors
    /// Names the trace and where it was found.
    pub fn assert_absent(&self, path: &str, bytes: &[u8]) -> Result<()> {
        for (what, trace) in &self.0 {
            if let Some(offset) = bytes
                .windows(trace.len())
                .position(|window| window == trace)
            {
                let text = String::from_utf8_lossy(trace);
                bail!("{path} holds {what} ({text}) at byte {offset}");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This very test program: dynamic, so most facts are the opposite of what we want.
    fn own() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn a_dynamic_program_is_not_hardened_and_the_facts_say_why() {
        let facts = facts("test", &own()).unwrap();
        assert!(!facts.is_hardened());
        assert!(facts.interpreter.is_some());
        assert!(facts.needed.iter().any(|name| name.starts_with("libc")));
    }

    #[test]
    fn bytes_that_are_no_executable_are_an_error() {
        for bytes in [&b""[..], b"\x7fELF", b"#!/bin/sh\n"] {
            assert!(facts("x", bytes).is_err());
        }
        let whole = own();
        for length in (0..2_048).step_by(7) {
            // A cut file is an error or an incomplete answer, never a panic and never hardened.
            if let Ok(facts) = facts("x", &whole[..length]) {
                assert!(!facts.is_hardened(), "{length} bytes");
            }
        }
    }

    #[test]
    fn every_mutant_of_the_header_is_an_error_or_an_answer() {
        let whole = own();
        for offset in 0..64 {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = whole[..8_192].to_vec();
                bytes[offset] = value;
                let _ = facts("x", &bytes);
            }
        }
    }

    #[test]
    fn a_trace_of_the_build_is_found_with_its_place() {
        let mut traces = Traces::default();
        traces.path("the build directory", "/home/someone/lazaret/");
        traces.name("the host's name", "buildhost7");
        traces.name("the user's name", "root");
        traces
            .assert_absent("x", b"root /home/someone/lazarett")
            .unwrap();
        let error = traces
            .assert_absent("x", b"..../home/someone/lazaret/a.c")
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("the build directory (/home/someone/lazaret/) at byte 4")
        );
        assert!(traces.assert_absent("x", b"on buildhost7").is_err());
    }
}
