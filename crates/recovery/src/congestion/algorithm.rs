//! Controllers by name.

use std::fmt;
use std::str::FromStr;

/// A controller by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Algorithm {
    /// RFC 9002 appendix B.
    NewReno,
    /// RFC 9438.
    #[default]
    Cubic,
    /// draft-briscoe-iccrg-prague-congestion-control, for paths with L4S queues.
    Prague,
    /// BBRv3, draft-ietf-ccwg-bbr.
    Bbr,
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        match name {
            "newreno" => Ok(Self::NewReno),
            "cubic" => Ok(Self::Cubic),
            "prague" => Ok(Self::Prague),
            "bbr" | "bbr3" | "bbrv3" => Ok(Self::Bbr),
            _ => Err(UnknownAlgorithm(name.to_owned())),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NewReno => "newreno",
            Self::Cubic => "cubic",
            Self::Prague => "prague",
            Self::Bbr => "bbr",
        })
    }
}

/// No controller has this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownAlgorithm(pub String);

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown controller '{}', known are newreno, cubic, bbr, prague",
            self.0
        )
    }
}

impl std::error::Error for UnknownAlgorithm {}
