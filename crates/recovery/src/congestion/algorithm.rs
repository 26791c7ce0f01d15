//! The names of the controllers.

use std::fmt;
use std::str::FromStr;

/// The algorithm of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Algorithm {
    /// NewReno, RFC 9002 appendix B.
    NewReno,
    /// CUBIC, RFC 9438.
    #[default]
    Cubic,
    /// Prague, draft-briscoe-iccrg-prague-congestion-control, for paths with L4S queues.
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

/// The error for a name that no controller has.
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
