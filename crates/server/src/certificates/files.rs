//! PEM files that may be replaced, with the file of an OCSP response.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use courser_quic::{ConfigError, Identity};

use super::look::Look;
use super::ocsp::Staple;

/// A chain and its key.
#[derive(Debug)]
pub(crate) struct Files {
    chain: PathBuf,
    key: PathBuf,
    /// The state of both files when they were last read, successfully or not.
    seen: [Look; 2],
    staple: Option<Staple>,
}

impl Files {
    pub(super) fn open(chain: &Path, key: &Path) -> Result<(Self, Identity), ConfigError> {
        let mut files = Self {
            chain: chain.to_owned(),
            key: key.to_owned(),
            seen: [Look::default(); 2],
            staple: None,
        };
        let identity = files.load()?;
        Ok((files, identity))
    }

    /// Staples the OCSP response in a file from the next read on.
    pub(super) fn staple(&mut self, path: &Path) {
        self.staple = Some(Staple::new(path));
    }

    /// Returns the reason why no OCSP response is stapled although there should be one, once.
    pub(super) fn take_problem(&mut self) -> Option<String> {
        self.staple.as_mut()?.take_problem()
    }

    pub(super) fn have_changed(&self) -> bool {
        let now = SystemTime::now();
        self.look() != self.seen || self.staple.as_ref().is_some_and(|it| it.has_changed(now))
    }

    /// Reads all files, changed or not.
    pub(super) fn read(&mut self) -> Result<Option<Identity>, ConfigError> {
        self.load().map(Some)
    }

    fn load(&mut self) -> Result<Identity, ConfigError> {
        // The check comes first, so that changes during the read cause another read.
        self.seen = self.look();
        let identity = Identity::from_pem_files(&self.chain, &self.key)?;
        let response = self.staple.as_mut().and_then(|staple| {
            let certificate = identity.certificate();
            staple.read(&certificate, SystemTime::now())
        });
        Ok(identity.with_ocsp(response))
    }

    fn look(&self) -> [Look; 2] {
        [Look::at(&self.chain), Look::at(&self.key)]
    }
}
