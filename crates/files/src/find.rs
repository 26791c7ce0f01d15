//! Lookup of the file that a request names.

use std::path::{Path, PathBuf};

use crate::age::Moment;
use crate::asked::Asked;
use crate::coding::Coding;
use crate::disk::Reading;
use crate::path;
use crate::root::{Kind, Opened, Root};
use crate::trouble::{Patience, Trouble};

/// The result of looking up a path.
#[derive(Debug)]
pub(crate) enum Found {
    File(FoundFile),
    /// A folder that was requested without a trailing slash.
    NeedsSlash,
    /// A folder without an `index.html`.
    Folder(PathBuf),
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

/// Looks up the file or folder that a request names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finder<'a> {
    pub(crate) root: &'a Root,
    pub(crate) dotfiles: bool,
    pub(crate) precompressed: bool,
    pub(crate) now: Moment,
    pub(crate) patience: Patience,
}

impl Finder<'_> {
    /// Returns the path below the root of the file that this request path names.
    pub(crate) fn name(&self, path: &str) -> Result<PathBuf, Trouble> {
        let relative = path::relative(path, self.dotfiles).ok_or(Trouble::NotFound)?;
        Ok(match path.ends_with('/') {
            true => relative.join(INDEX),
            false => relative,
        })
    }

    /// Opens the file or folder of this name.
    pub(crate) fn find(&self, asked: &Asked<'_>, name: &Path) -> Result<Found, Trouble> {
        let is_folder = asked.path().ends_with('/');
        if self.precompressed {
            for coding in asked.codings(Coding::ON_DISK) {
                match self.open_coded(name, coding) {
                    Ok(found) => return Ok(Found::File(found)),
                    Err(Trouble::NotFound) => {}
                    Err(trouble) => return Err(trouble),
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
            Ok(_) => Err(Trouble::NotFound),
            Err(Trouble::NotFound) if is_folder => self.find_folder(name),
            Err(trouble) => Err(trouble),
        }
    }

    fn open_coded(&self, name: &Path, coding: Coding) -> Result<FoundFile, Trouble> {
        let mut file = name.as_os_str().to_owned();
        file.push(coding.suffix());
        let file = PathBuf::from(file);
        let opened = self.open(&file)?;
        match opened.kind {
            Kind::File => self.file(opened, file, name.to_owned(), coding),
            _ => Err(Trouble::NotFound),
        }
    }

    fn file(
        &self,
        opened: Opened,
        file: PathBuf,
        name: PathBuf,
        coding: Coding,
    ) -> Result<FoundFile, Trouble> {
        Ok(FoundFile {
            reading: Reading::of(&opened.file, &opened.version, self.patience)?,
            opened,
            file,
            name,
            coding,
        })
    }

    fn find_folder(&self, index: &Path) -> Result<Found, Trouble> {
        let folder = index.parent().unwrap_or(Path::new(""));
        match self.open(folder)?.kind {
            Kind::Folder => Ok(Found::Folder(self.root.path().join(folder))),
            _ => Err(Trouble::NotFound),
        }
    }

    fn open(&self, relative: &Path) -> Result<Opened, Trouble> {
        self.root.open(relative, self.now, self.patience)
    }
}

const INDEX: &str = "index.html";
