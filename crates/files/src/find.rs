//! Lookup of requested files on disk.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::age::Moment;
use crate::coding::Coding;
use crate::disk::Reading;
use crate::file_request::FileRequest;
use crate::path::Requested;
use crate::root::{Kind, Opened, Root};
use crate::serve_error::{Blocking, ServeError};

/// The result of looking up a path.
#[derive(Debug)]
pub(crate) enum Found {
    File(FoundFile),
    /// A folder that was requested without a trailing slash.
    NeedsSlash,
    /// A folder without an `index.html`.
    Folder(FoundFolder),
}

/// A folder that was found and opened.
#[derive(Debug)]
pub(crate) struct FoundFolder {
    pub(crate) file: File,
    /// Path of the folder below the root.
    pub(crate) relative: PathBuf,
}

/// A file that was found and opened.
#[derive(Debug)]
pub(crate) struct FoundFile {
    pub(crate) opened: Opened,
    /// Path below the root, with the suffix of its coding.
    pub(crate) file: PathBuf,
    /// The same path without the suffix. It determines the content type.
    pub(crate) name: PathBuf,
    /// The coding of the file on disk.
    pub(crate) coding: Coding,
    pub(crate) reading: Reading,
}

impl Requested {
    /// Returns the path below the root of the requested file. For a folder, this is its index.
    pub(crate) fn file(&self) -> PathBuf {
        match self.is_folder {
            true => self.relative.join(INDEX),
            false => self.relative.clone(),
        }
    }
}

/// Looks up requested files and folders below the root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finder<'a> {
    pub(crate) root: &'a Root,
    pub(crate) precompressed: bool,
    pub(crate) now: Moment,
    pub(crate) blocking: Blocking,
}

impl Finder<'_> {
    /// Opens the file or folder of this name.
    pub(crate) fn find(
        &self,
        request: &FileRequest<'_>,
        name: &Path,
        is_folder: bool,
    ) -> Result<Found, ServeError> {
        if self.precompressed {
            for coding in request.codings(Coding::ON_DISK) {
                match self.open_coded(name, coding) {
                    Ok(found) => return Ok(Found::File(found)),
                    Err(ServeError::NotFound) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        match self.open(name) {
            Ok(opened) if opened.kind == Kind::File => {
                let (file, name) = (name.to_owned(), name.to_owned());
                let coding = Coding::Identity;
                Ok(Found::File(self.file(opened, file, name, coding)?))
            }
            Ok(opened) if opened.kind == Kind::Folder && !is_folder => Ok(Found::NeedsSlash),
            Ok(_) => Err(ServeError::NotFound),
            Err(ServeError::NotFound) if is_folder => self.find_folder(name),
            Err(error) => Err(error),
        }
    }

    fn open_coded(&self, name: &Path, coding: Coding) -> Result<FoundFile, ServeError> {
        let mut file = name.as_os_str().to_owned();
        file.push(coding.suffix());
        let file = PathBuf::from(file);
        let opened = self.open(&file)?;
        match opened.kind {
            Kind::File => self.file(opened, file, name.to_owned(), coding),
            _ => Err(ServeError::NotFound),
        }
    }

    fn file(
        &self,
        opened: Opened,
        file: PathBuf,
        name: PathBuf,
        coding: Coding,
    ) -> Result<FoundFile, ServeError> {
        Ok(FoundFile {
            reading: Reading::of(&opened.file, &opened.version, self.blocking)?,
            opened,
            file,
            name,
            coding,
        })
    }

    fn find_folder(&self, index: &Path) -> Result<Found, ServeError> {
        let folder = index.parent().unwrap_or(Path::new(""));
        let opened = self.open(folder)?;
        match opened.kind {
            Kind::Folder => Ok(Found::Folder(FoundFolder {
                file: opened.file,
                relative: folder.to_owned(),
            })),
            _ => Err(ServeError::NotFound),
        }
    }

    fn open(&self, relative: &Path) -> Result<Opened, ServeError> {
        self.root.open(relative, self.now, self.blocking)
    }
}

const INDEX: &str = "index.html";
