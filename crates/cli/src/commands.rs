//! One module per command. Each gives an exit code, or an error that nobody could
//! foresee.

pub mod doctor;
pub mod format;
pub mod init;
pub mod package;
