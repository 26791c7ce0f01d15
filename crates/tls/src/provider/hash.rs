//! The hashes of transcripts.

use aws_lc_rs::digest::{self, SHA256, SHA384};
use rustls::crypto::hash::{Context, Hash, HashAlgorithm, Output};

use super::fips::is_fips;

/// A hash function of a cipher suite.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sha {
    Sha256,
    Sha384,
}

impl Sha {
    fn digest(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha256 => &SHA256,
            Self::Sha384 => &SHA384,
        }
    }
}

impl Hash for Sha {
    fn start(&self) -> Box<dyn Context> {
        Box::new(Transcript(digest::Context::new(self.digest())))
    }

    fn hash(&self, data: &[u8]) -> Output {
        output(digest::digest(self.digest(), data))
    }

    fn output_len(&self) -> usize {
        self.digest().output_len()
    }

    fn algorithm(&self) -> HashAlgorithm {
        match self {
            Self::Sha256 => HashAlgorithm::SHA256,
            Self::Sha384 => HashAlgorithm::SHA384,
        }
    }

    fn fips(&self) -> bool {
        is_fips()
    }
}

/// A hash of messages that continues.
struct Transcript(digest::Context);

impl Context for Transcript {
    fn fork_finish(&self) -> Output {
        output(self.0.clone().finish())
    }

    fn fork(&self) -> Box<dyn Context> {
        Box::new(Self(self.0.clone()))
    }

    fn finish(self: Box<Self>) -> Output {
        output(self.0.finish())
    }

    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }
}

fn output(digest: digest::Digest) -> Output {
    Output::new(digest.as_ref())
}
