//! What is known of a transfer when it is over.

use std::time::Duration;

use courser::client::Timing;
use http::response::Parts;
use http::{Method, StatusCode, Uri};

use super::exit::Failed;

/// What -w and --timing tell of.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) url: String,
    pub(crate) number: usize,
    pub(crate) method: Method,
    pub(crate) effective: Option<Uri>,
    /// The head of the last response.
    pub(crate) response: Option<Parts>,
    /// Of the last request.
    pub(crate) timing: Option<Timing>,
    /// When the last request began: what was before are redirects, if there were any.
    pub(crate) last_began: Duration,
    pub(crate) total: Duration,
    /// What the first transfer had to wait for before it began: the client was made. Not in
    /// `total`, nor in the steps, which count as curl does.
    pub(crate) set_up: Duration,
    pub(crate) redirects: u64,
    pub(crate) retries: u32,
    pub(crate) connects: usize,
    pub(crate) size_download: u64,
    pub(crate) size_upload: u64,
    pub(crate) size_header: u64,
    pub(crate) size_request: u64,
    pub(crate) file_name: String,
    pub(crate) redirect_url: Option<Uri>,
    pub(crate) failed: Option<Failed>,
    /// True when the body went to standard output.
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

    /// Bytes per second.
    pub(crate) fn speed(&self, bytes: u64) -> u64 {
        let micros = self.total.as_micros().max(1);
        u64::try_from(u128::from(bytes) * 1_000_000 / micros).unwrap_or(u64::MAX)
    }

    /// A step of the last request, counted from the beginning of the transfer; 0 if it was not
    /// taken.
    pub(crate) fn step(&self, step: impl FnOnce(&Timing) -> Option<Duration>) -> Duration {
        let taken = self.timing.as_ref().and_then(step);
        taken.map_or(Duration::ZERO, |taken| self.last_began + taken)
    }

    /// As curl counts them: QUIC connects and is secure at the same time.
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

/// When the steps were done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    pub(crate) name_lookup: Duration,
    pub(crate) connect: Duration,
    pub(crate) secure: Duration,
    pub(crate) request: Duration,
    pub(crate) first_byte: Duration,
}
