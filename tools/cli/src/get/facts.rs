//! Collects the figures of a transfer.

use std::time::Duration;

use courser::client::Timing;
use courser_measure::MovesReport;
use http::response::Parts;
use http::{Method, StatusCode, Uri};

use super::exit::Failed;

/// The figures of a transfer, which --write-out and --timing show.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) url: String,
    pub(crate) number: usize,
    pub(crate) method: Method,
    pub(crate) effective: Option<Uri>,
    /// The URL of the last request with its fragment.
    pub(crate) effective_url: Option<String>,
    /// The status and header of the last response.
    pub(crate) response: Option<Parts>,
    /// The times of the last request.
    pub(crate) timing: Option<Timing>,
    /// The start of the last request. Time before it was spent on redirects.
    pub(crate) last_began: Duration,
    pub(crate) total: Duration,
    /// The time to create the client before the first transfer. As in curl, `total` and the steps do not include
    /// it.
    pub(crate) set_up: Duration,
    pub(crate) redirects: u64,
    pub(crate) retries: u32,
    pub(crate) connects: usize,
    pub(crate) size_download: u64,
    pub(crate) size_upload: u64,
    pub(crate) size_header: u64,
    pub(crate) size_request: u64,
    pub(crate) file_name: String,
    /// Moves of the QUIC connections so far; `None` without --rebind-every.
    pub(crate) moves: Option<MovesReport>,
    pub(crate) redirect_url: Option<String>,
    pub(crate) failed: Option<Failed>,
    /// True if the body was written to standard output.
    pub(crate) is_on_stdout: bool,
}

impl Facts {
    pub(crate) fn status(&self) -> Option<StatusCode> {
        self.response.as_ref().map(|response| response.status)
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let value = self.response.as_ref()?.headers.get(name)?;
        value.to_str().ok()
    }

    /// Returns the mean rate of the transfer in bytes per second.
    pub(crate) fn speed(&self, bytes: u64) -> u64 {
        let micros = self.total.as_micros().max(1);
        u64::try_from(u128::from(bytes) * 1_000_000 / micros).unwrap_or(u64::MAX)
    }

    /// Returns the end of a step of the last request, counted from the start of the transfer, or 0 if the step did
    /// not occur.
    pub(crate) fn step(&self, step: impl FnOnce(&Timing) -> Option<Duration>) -> Duration {
        let taken = self.timing.as_ref().and_then(step);
        taken.map_or(Duration::ZERO, |taken| self.last_began + taken)
    }

    /// Returns the ends of the steps as curl counts them. QUIC connects and secures the connection in one step.
    pub(crate) fn steps(&self) -> Steps {
        Steps {
            name_lookup: self.step(|timing| timing.name_lookup),
            connect: self.step(|timing| timing.tcp_connect.or(timing.quic_handshake)),
            secure: self.step(|timing| timing.tls_handshake.or(timing.quic_handshake)),
            request: self.step(|timing| timing.request_started),
            first_byte: self.step(|timing| timing.first_byte),
        }
    }
}

/// The ends of the steps, counted from the start of the transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    pub(crate) name_lookup: Duration,
    pub(crate) connect: Duration,
    pub(crate) secure: Duration,
    pub(crate) request: Duration,
    pub(crate) first_byte: Duration,
}
