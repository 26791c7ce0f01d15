//! Certificates in PEM files that may be replaced, with an OCSP response in another file.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use courser_quic::{ConfigError, Identity};

use super::file_stamp::FileStamp;
use super::ocsp::Staple;

/// The files of a chain and its key.
#[derive(Debug)]
pub(crate) struct Files {
    chain: PathBuf,
    key: PathBuf,
    /// The stamps of both files when they were last read, successfully or not.
    seen: [FileStamp; 2],
    staple: Option<Staple>,
}

impl Files {
    pub(super) fn open(chain: &Path, key: &Path) -> Result<(Self, Identity), ConfigError> {
        let mut files = Self {
            chain: chain.to_owned(),
            key: key.to_owned(),
            seen: [FileStamp::default(); 2],
            staple: None,
        };
        let identity = files.load()?;
        Ok((files, identity))
    }

    /// Staples the OCSP response in a file, starting with the next read.
    pub(super) fn staple(&mut self, path: &Path) {
        self.staple = Some(Staple::new(path));
    }

    /// Returns the reason for which no OCSP response is stapled, and clears it.
    pub(super) fn take_problem(&mut self) -> Option<String> {
        self.staple.as_mut()?.take_problem()
    }

    pub(super) fn have_changed(&self) -> bool {
        let now = SystemTime::now();
        self.stamps() != self.seen || self.staple.as_ref().is_some_and(|it| it.has_changed(now))
    }

    /// Reads all files, changed or not.
    pub(super) fn read(&mut self) -> Result<Option<Identity>, ConfigError> {
        self.load().map(Some)
    }

    fn load(&mut self) -> Result<Identity, ConfigError> {
        // The stamps are taken before, so that changes during the read cause another read.
        self.seen = self.stamps();
        let identity = Identity::from_pem_files(&self.chain, &self.key)?;
        let response = self.staple.as_mut().and_then(|staple| {
            let certificate = identity.certificate();
            staple.read(&certificate, SystemTime::now())
        });
        Ok(identity.with_ocsp(response))
    }

    fn stamps(&self) -> [FileStamp; 2] {
        [FileStamp::at(&self.chain), FileStamp::at(&self.key)]
    }
}
