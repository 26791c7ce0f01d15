//! Writes bodies to standard output or files.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use http::HeaderMap;

use crate::transfer::file_name::{NULL_DEVICE, is_null_device, name_of};

/// The output for the body of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Standard output; binary content for a terminal is an error.
    Stdout,
    /// Standard output, also for binary content on a terminal.
    ForcedStdout,
    /// A file, which is replaced or appended to.
    File(PathBuf),
    /// A file that is not replaced: if it exists, a number is appended to its name.
    Unclobbered(PathBuf),
    /// A file whose name the server may choose. It must not exist, unless its name is that of the URL.
    Named {
        /// The name if the response has no usable one.
        fallback: String,
        /// The folder of the file.
        folder: PathBuf,
    },
}

/// The reason why a body is not written.
#[derive(thiserror::Error, Debug)]
pub(crate) enum SinkError {
    /// A download would be resumed in a file that the server named.
    #[error("the server named the file {}", .0.display())]
    ServerNamed(PathBuf),
    /// The content has a NUL byte, and standard output is a terminal.
    #[error("binary output can mess up your terminal")]
    Binary,
    /// The file or folder cannot be created or written.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// The file or folder, or `standard output`.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
}

impl Destination {
    /// Returns a file in a folder. On Windows, `/dev/null` is the null device, whatever the folder.
    pub(crate) fn file(folder: &Path, name: &str) -> Self {
        match cfg!(windows) && is_null_device(name) {
            true => Self::File(NULL_DEVICE.into()),
            false => Self::File(folder.join(name)),
        }
    }

    /// Returns the file if its name does not depend on the response.
    pub(crate) fn known_file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            _ => None,
        }
    }

    /// Returns true for standard output, forced or not.
    pub(crate) const fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout | Self::ForcedStdout)
    }

    /// Opens the destination for a response with these headers. The first `offset` bytes of a file are kept.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened.
    pub(crate) fn open(
        &self,
        headers: &HeaderMap,
        offset: u64,
        creates_folders: bool,
    ) -> Result<Sink, SinkError> {
        let (path, is_new) = match self {
            Self::Stdout => return Ok(Sink::stdout(io::stdout().is_terminal())),
            Self::ForcedStdout => return Ok(Sink::stdout(false)),
            Self::File(path) => (path.clone(), false),
            Self::Unclobbered(path) => return open_numbered(path, creates_folders),
            Self::Named { fallback, folder } => {
                // The user knows the name in the URL, so that its file may be replaced.
                let (name, is_new) = match name_of(headers) {
                    Some(name) => (name, true),
                    None => (fallback.clone(), offset > 0),
                };
                (folder.join(name), is_new)
            }
        };
        if creates_folders && let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
        }
        let mut options = File::options();
        options.write(true);
        match (offset, is_new) {
            // A server must not choose which file is overwritten or appended to.
            (0, true) => options.create_new(true),
            (_, true) => return Err(SinkError::ServerNamed(path)),
            // A device cannot be truncated.
            _ if path.as_os_str() == NULL_DEVICE && cfg!(windows) => &mut options,
            (0, false) => options.create(true).truncate(true),
            _ => options.append(true),
        };
        let file = options
            .open(&path)
            .map_err(|error| unwritable(&path, error))?;
        Ok(Sink {
            output: Output::File(file, path),
            may_be_binary: true,
        })
    }
}

/// An open file or standard output. Writes are buffered until [`finish`](Self::finish).
#[derive(Debug)]
pub(crate) struct Sink {
    output: Output,
    may_be_binary: bool,
}

#[derive(Debug)]
enum Output {
    Stdout,
    File(File, PathBuf),
}

impl Sink {
    const fn stdout(is_terminal: bool) -> Self {
        Self {
            output: Output::Stdout,
            may_be_binary: !is_terminal,
        }
    }

    /// Writes bytes to the buffer.
    ///
    /// # Errors
    /// Returns an error if the bytes are binary and standard output is a terminal, or if they cannot be written.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        if !self.may_be_binary && bytes.contains(&0) {
            return Err(SinkError::Binary);
        }
        match &mut self.output {
            Output::Stdout => io::stdout().write_all(bytes).map_err(no_stdout),
            Output::File(file, path) => file
                .write_all(bytes)
                .map_err(|error| unwritable(path, error)),
        }
    }

    /// Flushes the buffer.
    ///
    /// # Errors
    /// Returns an error if the bytes cannot be written.
    pub(crate) fn finish(&mut self) -> Result<(), SinkError> {
        match &mut self.output {
            Output::Stdout => io::stdout().flush().map_err(no_stdout),
            Output::File(..) => Ok(()),
        }
    }

    /// Removes the file of a transfer that failed. Devices and standard output stay.
    pub(crate) fn remove(&self) {
        if let Output::File(file, path) = &self.output
            && file.metadata().is_ok_and(|it| it.is_file())
        {
            // The transfer has failed already.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Sets the time of the last modification. A file that does not allow it keeps its time.
    pub(crate) fn set_time(&self, time: SystemTime) {
        if let Output::File(file, _) = &self.output {
            let _ = file.set_modified(time);
        }
    }

    /// Returns the name of the file; empty for standard output.
    pub(crate) fn name(&self) -> String {
        match &self.output {
            Output::Stdout => String::new(),
            Output::File(_, path) => path.display().to_string(),
        }
    }
}

/// Opens a new file, with a number at the end of its name if others exist.
fn open_numbered(path: &Path, creates_folders: bool) -> Result<Sink, SinkError> {
    if creates_folders && let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    }
    for number in 0..=MAX_NUMBER {
        let mut name = path.as_os_str().to_owned();
        if number > 0 {
            name.push(format!(".{number}"));
        }
        let name = PathBuf::from(name);
        match File::options().write(true).create_new(true).open(&name) {
            Ok(file) => {
                return Ok(Sink {
                    output: Output::File(file, name),
                    may_be_binary: true,
                });
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(unwritable(&name, error)),
        }
    }
    Err(unwritable(path, io::ErrorKind::AlreadyExists.into()))
}

fn no_stdout(error: io::Error) -> SinkError {
    unwritable(Path::new("standard output"), error)
}

fn unwritable(path: &Path, error: io::Error) -> SinkError {
    let path = path.to_owned();
    SinkError::Write { path, error }
}

/// The largest number that is appended to the name of a file, as in curl.
const MAX_NUMBER: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_the_server_names_are_not_appended_to() {
        let destination = Destination::Named {
            fallback: "kept".to_owned(),
            folder: "/no/such/folder".into(),
        };
        let opened = destination.open(&HeaderMap::new(), 1, false);
        let refused = opened.expect_err("no resumption");
        assert!(refused.to_string().contains("kept"), "{refused}");
    }
}
