//! Opens traces and writes pages.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use courser_qlog::Reader;

use crate::Error;

/// Opens a trace and reads its header.
pub(crate) fn open(path: &Path) -> Result<Reader<BufReader<File>>, Error> {
    let name = path.display();
    let file =
        File::open(path).map_err(|error| Error::new(format!("cannot read {name}: {error}")))?;
    Reader::new(BufReader::with_capacity(READ_BUFFER, file))
        .map_err(|error| Error::new(format!("{name}: {error}")))
}

/// Writes a file that did not exist or replaces one.
pub(crate) fn write(path: &Path, content: &str) -> Result<(), Error> {
    fs::write(path, content)
        .map_err(|error| Error::new(format!("cannot write {}: {error}", path.display())))
}

const READ_BUFFER: usize = 256 * 1024;
