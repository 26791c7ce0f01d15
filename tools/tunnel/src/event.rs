//! What happens to a tunnel.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use crate::plan::Plan;

/// Something that happened to a tunnel, with its text.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The connection is there, for the first time or again.
    Connected {
        /// The address of the proxy.
        proxy: SocketAddr,
        /// The name of the interface.
        device: String,
    },
    /// The network of the system is set up.
    Applied(Plan),
    /// The tunnel was lost, and is opened again after some time.
    Lost {
        /// The reason.
        reason: String,
        /// The time until the next attempt.
        wait: Duration,
    },
    /// Something that the user should know.
    Warning(String),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected { proxy, device } => {
                write!(f, "connected to the proxy at {proxy}, through {device}")
            }
            Self::Applied(plan) => plan.fmt(f),
            Self::Lost { reason, wait } => {
                let seconds = wait.as_secs_f64();
                write!(
                    f,
                    "the tunnel was lost: {reason}; trying again in {seconds:.1} s"
                )
            }
            Self::Warning(text) => write!(f, "warning: {text}"),
        }
    }
}
