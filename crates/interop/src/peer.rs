//! Implementations that take part in a matrix.

use std::path::{Path, PathBuf};
use std::process::Command;

use courser_measure::Failure;

/// An implementation: a program that is the server or the client of the runner's contract.
///
/// The program gets the role as its last argument and in the variable `ROLE`. It reads `TESTCASE`,
/// `REQUESTS`, `SSLKEYLOGFILE`, `QLOGDIR`, `LISTEN`, `WWW`, `CERTS` and `DOWNLOADS`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The name in the grid.
    pub name: String,
    /// The version of the implementation; empty if it is not known.
    pub version: String,
    /// The program.
    pub program: PathBuf,
    /// Arguments before the role.
    pub arguments: Vec<String>,
}

impl Peer {
    /// Returns this program as a peer; `arguments` come before the role.
    ///
    /// # Errors
    /// When the system does not report the path of this program.
    pub fn this_program(name: &str, version: &str, arguments: &[&str]) -> Result<Self, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::new(format!("cannot find this program: {error}")))?;
        Ok(Self {
            name: name.to_owned(),
            version: version.to_owned(),
            program,
            arguments: arguments.iter().map(ToString::to_string).collect(),
        })
    }

    /// Finds a peer from its name, whose program is in `folder`, or from `NAME=PROGRAM`. The file
    /// `NAME.version` beside the program has the version.
    ///
    /// # Errors
    /// When there is no such program.
    pub fn find(text: &str, folder: &Path) -> Result<Self, Failure> {
        let (name, program) = match text.split_once('=') {
            Some((name, program)) => (name, PathBuf::from(program)),
            None => (text, folder.join(text)),
        };
        if !program.is_file() {
            return Err(Failure::new(format!(
                "no program {} for the peer {name}",
                program.display()
            )));
        }
        let version = program.with_file_name(format!("{name}.version"));
        let version = std::fs::read_to_string(version).unwrap_or_default();
        Ok(Self {
            name: name.to_owned(),
            version: version.trim().to_owned(),
            program: std::path::absolute(&program).unwrap_or(program),
            arguments: Vec::new(),
        })
    }

    /// Returns the program in a role.
    pub(crate) fn command(&self, role: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(role).env("ROLE", role);
        command
    }
}
