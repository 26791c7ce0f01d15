//! The places where bodies are written.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use http::HeaderMap;

use crate::transfer::file_name::{NULL_DEVICE, is_null_device, name_of};

/// The place where the body of a response is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Standard output; a terminal gets no binary content.
    Stdout,
    /// Standard output, also for binary content on a terminal.
    ForcedStdout,
    /// A file, which is replaced or appended to.
    File(PathBuf),
    /// A new file whose name the server may choose.
    Named {
        /// The name without a usable one in the response; empty if there is none.
        fallback: String,
        /// The folder of the file.
        folder: PathBuf,
    },
}

/// The reason why a body is not written.
#[derive(thiserror::Error, Debug)]
pub(crate) enum SinkError {
    /// Neither the response nor the URL names a file.
    #[error("neither the response nor the URL names a file")]
    NoName,
    /// The rest of a download would go to a file that the server named.
    #[error("the server named the file {}", .0.display())]
    ServerNamed(PathBuf),
    /// Content with a NUL byte would go to a terminal.
    #[error("binary output can mess up your terminal")]
    Binary,
    /// The system cannot write to this place.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// The file or folder, or `standard output`.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}

impl Destination {
    /// Returns a file in a folder. On Windows, `/dev/null` is the null device, which is in no folder.
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

    /// Returns true for standard output.
    pub(crate) const fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout | Self::ForcedStdout)
    }

    /// Opens the destination for a response with these headers. The first `offset` bytes of a file stay.
    ///
    /// # Errors
    /// When there is no name, or the file cannot be opened.
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
            Self::Named { fallback, folder } => {
                let name = name_of(headers).unwrap_or_else(|| fallback.clone());
                if name.is_empty() {
                    return Err(SinkError::NoName);
                }
                (folder.join(name), true)
            }
        };
        if creates_folders && let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
        }
        let mut options = File::options();
        options.write(true);
        match (offset, is_new) {
            // A server that chooses the name must not choose what is overwritten or appended to.
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

/// An open destination.
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

    /// Writes bytes.
    ///
    /// # Errors
    /// When the bytes are not for a terminal, or cannot be written.
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

    /// Writes what is buffered.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn finish(&mut self) -> Result<(), SinkError> {
        match &mut self.output {
            Output::Stdout => io::stdout().flush().map_err(no_stdout),
            Output::File(..) => Ok(()),
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

fn no_stdout(error: io::Error) -> SinkError {
    unwritable(Path::new("standard output"), error)
}

fn unwritable(path: &Path, error: io::Error) -> SinkError {
    let path = path.to_owned();
    SinkError::Write { path, error }
}

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
        let refused = opened.expect_err("the server named it");
        assert!(refused.to_string().contains("kept"), "{refused}");
    }
}
