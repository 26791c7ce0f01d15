//! Failures of tunnels.

use courser::masque::{Ended, OpenError};

/// The reason why a tunnel did not come up, or could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// A setting is invalid.
    #[error("{0}")]
    Setting(String),
    /// The proxy is not reached, or has refused the tunnel.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// The proxy has ended the tunnel before it came up.
    #[error("the proxy has given no addresses: {0}")]
    Ended(Ended),
    /// The proxy did not answer in time.
    #[error("{0}")]
    Late(String),
    /// The system has refused the device, an address, a route or a rule.
    #[error("{0}")]
    System(String),
    /// There are no TUN devices on this system.
    #[error("this system has no TUN devices that courser can use: it supports those of Linux")]
    Unsupported,
}

impl Failure {
    /// Returns true if the proxy has refused the client itself, so that trying again would not help.
    pub fn is_final(&self) -> bool {
        let Self::Open(error) = self else {
            return matches!(self, Self::Setting(_) | Self::System(_));
        };
        error
            .status()
            .is_some_and(|status| matches!(status.as_u16(), 400..=407 | 501))
    }
}
