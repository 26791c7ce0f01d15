//! Implementations that take part in a matrix.

use std::path::{Path, PathBuf};
use std::process::Command;

use courser_measure::Failure;

/// An implementation: a program that is the server or the client of the runner's contract.
///
/// The program gets the role as its last argument and in the variable `ROLE`. It reads `TESTCASE`,
/// `REQUESTS`, `SSLKEYLOGFILE`, `QLOGDIR`, `LISTEN`, `WWW`, `CERTS` and `DOWNLOADS`, and as a client
/// `PROTOCOL`, which is set if the server supports one protocol only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The name in the grid.
    pub name: String,
    /// The version of the implementation; empty if it is not known.
    pub version: String,
    /// The only protocol that its ends support, as `PROTOCOL` names it; `None` if they support that of each
    /// test.
    pub protocol: Option<String>,
    /// The path of the executable.
    pub program: PathBuf,
    /// Arguments before the role.
    pub arguments: Vec<String>,
}

impl Peer {
    /// Returns this program as a peer; `arguments` come before the role.
    ///
    /// # Errors
    /// Returns an error if the system does not report the path of this program.
    pub fn this_program(name: &str, version: &str, arguments: &[&str]) -> Result<Self, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::new(format!("cannot find this program: {error}")))?;
        Ok(Self {
            name: name.to_owned(),
            version: version.to_owned(),
            protocol: None,
            program,
            arguments: arguments.iter().map(ToString::to_string).collect(),
        })
    }

    /// Finds a peer from its name, whose program is in `folder`, or from `NAME=PROGRAM`. The file
    /// `NAME.version` beside the program has the version, and `NAME.protocol` the protocol if its ends
    /// support one only.
    ///
    /// # Errors
    /// Returns an error if there is no such program.
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
        let beside = |what: &str| {
            let file = program.with_file_name(format!("{name}.{what}"));
            let text = std::fs::read_to_string(file).unwrap_or_default();
            text.trim().to_owned()
        };
        let (version, protocol) = (beside("version"), beside("protocol"));
        Ok(Self {
            name: name.to_owned(),
            version,
            protocol: Some(protocol).filter(|protocol| !protocol.is_empty()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_protocol_of_a_program_are_read_from_files_beside_it() {
        let name = format!("courser-peer-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let files = [
            ("full", ""),
            ("full.version", "2.0\n"),
            ("narrow", ""),
            ("narrow.protocol", "h3\n"),
        ];
        for (file, text) in files {
            std::fs::write(folder.join(file), text).expect("written");
        }
        let [full, narrow] =
            ["full", "narrow"].map(|name| Peer::find(name, &folder).expect("a program"));
        let absent = Peer::find("absent", &folder);
        std::fs::remove_dir_all(&folder).expect("removed");
        assert_eq!((full.version.as_str(), full.protocol), ("2.0", None));
        assert_eq!(narrow.version, "");
        assert_eq!(narrow.protocol.as_deref(), Some("h3"));
        assert!(absent.is_err(), "{absent:?}");
    }
}
