//! Opening and reading with what all systems have.

use std::fs::File;
use std::io;
use std::path::Path;

use super::resolve::resolve;
use crate::trouble::{Patience, Trouble};
use crate::version::Version;

/// The root, which is known by its path.
#[derive(Debug)]
pub(crate) struct Folder;

pub(crate) fn open_root(path: &Path, _: Patience) -> io::Result<(Folder, Version)> {
    let metadata = std::fs::metadata(path)?;
    match metadata.is_dir() {
        true => Ok((Folder, Version::of(&metadata))),
        false => Err(io::ErrorKind::NotADirectory.into()),
    }
}

/// The way names are looked up.
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
        patience: Patience,
    ) -> Result<(File, bool), Trouble> {
        if patience == Patience::Never {
            return Err(Trouble::WouldBlock);
        }
        let real = resolve(root, relative, self.follow_symlinks)?;
        // What may be a pipe must not be waited for, and folders cannot be opened everywhere.
        let metadata = std::fs::metadata(&real)?;
        if !metadata.is_file() && !metadata.is_dir() {
            return Err(Trouble::NotFound);
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
    /// Without it folders cannot be opened (`FILE_FLAG_BACKUP_SEMANTICS`).
    const FOLDERS_TOO: u32 = 0x0200_0000;
    let mut options = std::fs::OpenOptions::new();
    options.read(true).custom_flags(FOLDERS_TOO).open(path)
}

/// The way a file is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reading;

impl Reading {
    pub(crate) const fn of(_: &File, _: &Version, patience: Patience) -> Result<Self, Trouble> {
        match patience {
            Patience::Never => Err(Trouble::WouldBlock),
            Patience::Any => Ok(Self),
        }
    }

    /// Reads what was read a moment ago.
    pub(crate) fn read_now(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        read_at(file, buffer, offset)
    }

    /// Changes are not watched.
    pub(crate) const fn can_be_watched(self) -> bool {
        false
    }

    pub(crate) fn read(
        self,
        file: &File,
        buffer: &mut [u8],
        offset: u64,
        patience: Patience,
    ) -> Result<usize, Trouble> {
        match patience {
            Patience::Never => Err(Trouble::WouldBlock),
            Patience::Any => Ok(read_at(file, buffer, offset)?),
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
