//! The file of `--dump-header`.

use std::fs::File;
use std::io::Write as _;

use courser_base::Mutex;

use super::exit::{Failed, WRITE_ERROR};

/// The destination of response headers.
#[derive(Debug)]
pub(crate) enum Dump {
    Nowhere,
    Stdout,
    File(Mutex<File>, String),
}

impl Dump {
    pub(crate) fn open(path: Option<&str>) -> Result<Self, Failed> {
        match path {
            None => Ok(Self::Nowhere),
            Some("-") => Ok(Self::Stdout),
            Some(path) => match File::create(path) {
                Ok(file) => Ok(Self::File(Mutex::new(file), path.to_owned())),
                Err(error) => Err(unwritable(path, &error)),
            },
        }
    }

    pub(crate) fn write(&self, head: &str) -> Result<(), Failed> {
        let written = match self {
            Self::Nowhere => return Ok(()),
            Self::Stdout => std::io::stdout().write_all(head.as_bytes()),
            Self::File(file, _) => {
                let mut file = file.lock();
                file.write_all(head.as_bytes())
            }
        };
        written.map_err(|error| match self {
            Self::File(_, path) => unwritable(path, &error),
            _ => unwritable("standard output", &error),
        })
    }
}

fn unwritable(path: &str, error: &std::io::Error) -> Failed {
    Failed::new(WRITE_ERROR, format!("cannot write {path}: {error}"))
}
