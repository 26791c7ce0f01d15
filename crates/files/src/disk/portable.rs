//! Opening and reading of files with functions that all systems have.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::Path;

use super::resolve::resolve;
use super::{State, StateKind};
use crate::serve_error::{Blocking, ServeError};
use crate::version::Version;

/// The root, which is identified by its path only.
#[derive(Debug)]
pub(crate) struct Folder;

pub(crate) fn open_root(path: &Path, _: Blocking) -> io::Result<(Folder, Version)> {
    let metadata = std::fs::metadata(path)?;
    match metadata.is_dir() {
        true => Ok((Folder, Version::of(&metadata))),
        false => Err(io::ErrorKind::NotADirectory.into()),
    }
}

/// The method of opening files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    follow_symlinks: bool,
}

impl Access {
    pub(crate) const fn probe(_: &Folder, follow_symlinks: bool) -> Self {
        Self { follow_symlinks }
    }

    pub(crate) fn open(
        self,
        _: &Folder,
        root: &Path,
        relative: &Path,
        blocking: Blocking,
    ) -> Result<(File, bool), ServeError> {
        if blocking == Blocking::Forbidden {
            return Err(ServeError::WouldBlock);
        }
        let real = resolve(root, relative, self.follow_symlinks)?;
        // Opening a pipe would block, and some systems cannot open folders.
        let metadata = std::fs::metadata(&real)?;
        if !metadata.is_file() && !metadata.is_dir() {
            return Err(ServeError::NotFound);
        }
        Ok((open(&real)?, false))
    }
}

#[cfg(not(windows))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(windows)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt as _;
    /// Allows folders to be opened (`FILE_FLAG_BACKUP_SEMANTICS`).
    const FOLDERS_TOO: u32 = 0x0200_0000;
    let mut options = std::fs::OpenOptions::new();
    options.read(true).custom_flags(FOLDERS_TOO).open(path)
}

/// Returns the names in the folder at `path`.
pub(crate) fn names(
    _: &File,
    path: &Path,
) -> io::Result<impl Iterator<Item = io::Result<OsString>>> {
    Ok(std::fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())))
}

/// Returns the state of a name in the folder at `path`. Links are not followed.
pub(crate) fn state(_: &File, path: &Path, name: &OsStr) -> io::Result<State> {
    let metadata = std::fs::symlink_metadata(path.join(name))?;
    let kind = match metadata.file_type() {
        kind if kind.is_file() => StateKind::File,
        kind if kind.is_dir() => StateKind::Folder,
        kind if kind.is_symlink() => StateKind::Link,
        _ => StateKind::Other,
    };
    Ok(State {
        kind,
        len: metadata.len(),
        modified: metadata.modified().ok(),
    })
}

/// The method of reading a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reading;

impl Reading {
    pub(crate) const fn of(_: &File, _: &Version, blocking: Blocking) -> Result<Self, ServeError> {
        match blocking {
            Blocking::Forbidden => Err(ServeError::WouldBlock),
            Blocking::Allowed => Ok(Self),
        }
    }

    /// Reads data that was read a moment ago.
    pub(crate) fn read_now(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        read_at(file, buffer, offset)
    }

    /// Returns false: changes are not watched on this system.
    pub(crate) const fn can_be_watched(self) -> bool {
        false
    }

    pub(crate) fn read(
        self,
        file: &File,
        buffer: &mut [u8],
        offset: u64,
        blocking: Blocking,
    ) -> Result<usize, ServeError> {
        match blocking {
            Blocking::Forbidden => Err(ServeError::WouldBlock),
            Blocking::Allowed => Ok(read_at(file, buffer, offset)?),
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}
