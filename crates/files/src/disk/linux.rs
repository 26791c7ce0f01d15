//! Opening of files below a folder (openat2), and reads of data in memory (RWF_NOWAIT).

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use courser_base::RwLock;
use foldhash::fast::RandomState;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstatfs, openat, openat2, statat,
};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use super::resolve::resolve;
use super::{State, StateKind};
use crate::serve_error::{Blocking, ServeError};
use crate::version::Version;

/// The open root folder.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

pub(crate) fn open_root(path: &Path, blocking: Blocking) -> io::Result<(Folder, Version)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = match blocking {
        Blocking::Forbidden => openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED),
        Blocking::Allowed => rustix::fs::open(path, flags, Mode::empty()),
    };
    let file = match opened {
        Ok(fd) => File::from(fd),
        // Linux before 5.12 cannot guarantee that the call does not block.
        Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) if blocking == Blocking::Forbidden => {
            return Err(Errno::AGAIN.into());
        }
        Err(error) => return Err(error.into()),
    };
    let version = Version::of(&file.metadata()?);
    Ok((Folder(file.into()), version))
}

/// The method of opening files, which depends on the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    follow_symlinks: bool,
    /// True if openat2 works: Linux 5.6, without a system call filter that forbids it.
    opens_beneath: bool,
    /// True if openat2 can also refuse to wait for the disk: Linux 5.12.
    opens_cached: bool,
}

const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    // Otherwise, opening a pipe without a writer blocks.
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

impl Access {
    pub(crate) fn probe(folder: &Folder, follow_symlinks: bool) -> Self {
        let can = |resolve| {
            let opened = openat2(&folder.0, ".", FLAGS, Mode::empty(), resolve);
            !matches!(opened, Err(Errno::NOSYS | Errno::PERM | Errno::INVAL))
        };
        let opens_beneath = can(ResolveFlags::BENEATH);
        Self {
            follow_symlinks,
            opens_beneath,
            opens_cached: opens_beneath && can(ResolveFlags::BENEATH | ResolveFlags::CACHED),
        }
    }

    /// Opens `relative`. The second value is true if no symbolic link was on the path.
    pub(crate) fn open(
        self,
        folder: &Folder,
        root: &Path,
        relative: &Path,
        blocking: Blocking,
    ) -> Result<(File, bool), ServeError> {
        if blocking == Blocking::Forbidden && !self.opens_cached {
            return Err(ServeError::WouldBlock);
        }
        if !self.opens_beneath {
            return Ok((self.open_resolved(folder, root, relative)?, false));
        }
        let cached = match blocking {
            Blocking::Forbidden => ResolveFlags::CACHED,
            Blocking::Allowed => ResolveFlags::empty(),
        };
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let open = |path: &Path, resolve| {
            retrying(blocking, || {
                openat2(&folder.0, path, FLAGS, Mode::empty(), resolve)
            })
        };
        match open(relative, beneath | ResolveFlags::NO_SYMLINKS | cached) {
            Ok(fd) => return Ok((fd.into(), true)),
            Err(Errno::LOOP) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        if self.follow_symlinks {
            let fd = open(relative, ResolveFlags::NO_MAGICLINKS | cached);
            return Ok((fd.map_err(io::Error::from)?.into(), false));
        }
        match open(relative, beneath | cached) {
            Ok(fd) => Ok((fd.into(), false)),
            // An absolute link may lead back into the root. It is resolved by its path, and the
            // result is opened without following any link.
            Err(Errno::XDEV) if blocking == Blocking::Forbidden => Err(ServeError::WouldBlock),
            Err(Errno::XDEV) => {
                let real = resolve(root, relative, false)?;
                let inside = real.strip_prefix(root).map_err(|_| ServeError::NotFound)?;
                let inside = match inside.as_os_str().is_empty() {
                    true => Path::new("."),
                    false => inside,
                };
                match open(inside, beneath | ResolveFlags::NO_SYMLINKS) {
                    Ok(fd) => Ok((fd.into(), false)),
                    Err(Errno::LOOP | Errno::XDEV) => Err(ServeError::NotFound),
                    Err(error) => Err(io::Error::from(error).into()),
                }
            }
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}

impl Access {
    /// Opens `relative` on systems without openat2.
    fn open_resolved(
        self,
        folder: &Folder,
        root: &Path,
        relative: &Path,
    ) -> Result<File, ServeError> {
        let real = resolve(root, relative, self.follow_symlinks)?;
        if self.follow_symlinks {
            let opened = rustix::fs::open(&real, FLAGS, Mode::empty());
            return Ok(opened.map_err(io::Error::from)?.into());
        }
        let inside = real.strip_prefix(root).map_err(|_| ServeError::NotFound)?;
        match open_without_links(&folder.0, inside) {
            Ok(fd) => Ok(fd.into()),
            // A link appeared after the path was resolved.
            Err(Errno::LOOP | Errno::NOTDIR) => Err(ServeError::NotFound),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}

/// Opens a path folder by folder and refuses every symbolic link in it. A link that replaces a
/// folder after the path was resolved is not followed.
fn open_without_links(folder: &OwnedFd, inside: &Path) -> Result<OwnedFd, Errno> {
    let passing = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut names = inside.iter().peekable();
    let mut current: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        let flags = match names.peek() {
            Some(_) => passing,
            None => FLAGS | OFlags::NOFOLLOW,
        };
        let from = current.as_ref().unwrap_or(folder);
        current = Some(openat(from, name, flags, Mode::empty())?);
    }
    match current {
        Some(opened) => Ok(opened),
        None => openat(folder, ".", FLAGS, Mode::empty()),
    }
}

/// Repeats a lookup below a folder that fails with EAGAIN, which happens if something is renamed at
/// the same time.
fn retrying<T>(blocking: Blocking, mut open: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let tries = if blocking == Blocking::Allowed {
        TRIES
    } else {
        1
    };
    for _ in 1..tries {
        match open() {
            Err(Errno::AGAIN | Errno::INTR) => {}
            result => return result,
        }
    }
    open()
}

const TRIES: u32 = 100;

/// Returns the names in an open folder, without `.` and `..`.
pub(crate) fn names(
    folder: &File,
    _: &Path,
) -> io::Result<impl Iterator<Item = io::Result<OsString>>> {
    let entries = Dir::read_from(folder)?.map(|entry| {
        let name = entry?.file_name().to_bytes().to_owned();
        Ok(OsString::from_vec(name))
    });
    Ok(entries.filter(|name| !matches!(name, Ok(name) if name == "." || name == "..")))
}

/// Returns the state of a name in an open folder. Links are not followed.
pub(crate) fn state(folder: &File, _: &Path, name: &OsStr) -> io::Result<State> {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => StateKind::File,
        FileType::Directory => StateKind::Folder,
        FileType::Symlink => StateKind::Link,
        _ => StateKind::Other,
    };
    Ok(State {
        kind,
        len: u64::try_from(stat.st_size).unwrap_or(0),
        modified: time(stat.st_mtime, stat.st_mtime_nsec),
    })
}

/// Converts a time of the kernel. Returns `None` for times before 1970.
fn time(seconds: i64, nanos: u64) -> Option<SystemTime> {
    let since = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since)
}

/// The method of reading files, by device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reading {
    /// Files are in memory (tmpfs, ramfs), so reads never block.
    Memory,
    /// The kernel can limit a read to data in memory.
    Local,
    /// Another machine or another process serves the files, so any access may wait.
    Remote,
}

/// The method for each device seen so far. A folder spans only a few devices.
static DEVICES: LazyLock<RwLock<HashMap<u64, Reading, RandomState>>> =
    LazyLock::new(RwLock::default);

impl Reading {
    pub(crate) fn of(
        file: &File,
        version: &Version,
        blocking: Blocking,
    ) -> Result<Self, ServeError> {
        let device = version.device();
        let known = DEVICES.read();
        match (known.get(&device), blocking) {
            // Even metadata of an open file may require a response from another machine.
            (Some(Self::Remote) | None, Blocking::Forbidden) => return Err(ServeError::WouldBlock),
            (Some(reading), _) => return Ok(*reading),
            (None, Blocking::Allowed) => drop(known),
        }
        let kind = fstatfs(file).map_err(io::Error::from)?.f_type;
        let reading = match kind as u64 & 0xffff_ffff {
            0x0102_1994 | 0x8584_58f6 => Self::Memory, // tmpfs, ramfs
            // NFS, SMB, CIFS, SMB2, FUSE, 9P, Ceph, AFS, Coda
            0x6969 | 0x517b | 0xff53_4d42 | 0xfe53_4d42 | 0x6573_5546 | 0x0102_1997
            | 0x00c3_6400 | 0x6b41_4653 | 0x7375_7245 => Self::Remote,
            _ => Self::Local,
        };
        let mut known = DEVICES.write();
        if known.len() >= MAX_DEVICES {
            known.clear();
        }
        known.insert(device, reading);
        Ok(reading)
    }

    /// Reads data that was read a moment ago.
    pub(crate) fn read_now(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        file.read_at(buffer, offset)
    }

    /// Returns true if the kernel reports all changes.
    pub(crate) const fn can_be_watched(self) -> bool {
        !matches!(self, Self::Remote)
    }

    /// Reads at `offset` into `buffer` and returns the number of bytes, 0 at the end of the file.
    pub(crate) fn read(
        self,
        file: &File,
        buffer: &mut [u8],
        offset: u64,
        blocking: Blocking,
    ) -> Result<usize, ServeError> {
        if self == Self::Memory || blocking == Blocking::Allowed {
            return Ok(file.read_at(buffer, offset)?);
        }
        let buffers = &mut [IoSliceMut::new(buffer)];
        match preadv2(file, buffers, offset, ReadWriteFlags::NOWAIT) {
            Ok(len) => Ok(len),
            // File systems without support for this flag count as slow.
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR) => {
                Err(ServeError::WouldBlock)
            }
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}

const MAX_DEVICES: usize = 1024;

#[cfg(test)]
mod tests;
