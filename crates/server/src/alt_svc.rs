//! The announcement of HTTP/3 (RFC 7838).

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

use crate::phase::Part;
use crate::tasks::Task;

/// The announcement of HTTP/3 in responses over TCP (RFC 7838).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AltSvc {
    /// Time for which clients may remember it. Default one day.
    pub max_age: Duration,
    /// The announced port, if clients see another than the one that the server listens on.
    pub port: Option<u16>,
}

impl Default for AltSvc {
    fn default() -> Self {
        Self {
            max_age: Duration::from_secs(24 * 60 * 60),
            port: None,
        }
    }
}

impl AltSvc {
    /// Returns the value of the field, RFC 7838 §3.
    pub(crate) fn value(self, port: u16) -> HeaderValue {
        let port = self.port.unwrap_or(port);
        let text = format!("h3=\":{port}\"; ma={}", self.max_age.as_secs());
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("clear"))
    }
}

/// The announcement of HTTP/3 in responses (RFC 7838).
#[derive(Clone, Debug)]
pub(crate) struct AltSvcHeader {
    pub(crate) announced: HeaderValue,
    pub(crate) part: Part,
    /// The task that accepts clients over QUIC.
    pub(crate) quic: Option<Arc<Task>>,
}

impl AltSvcHeader {
    /// Returns the value. A draining server and one whose QUIC socket has failed withdraw the
    /// announcement: clients that remember it would try a port that is closed.
    pub(crate) fn value(&self) -> HeaderValue {
        let is_stopped = self.quic.as_ref().is_some_and(|task| task.is_stopped());
        if is_stopped || self.part.is_draining() {
            HeaderValue::from_static("clear")
        } else {
            self.announced.clone()
        }
    }
}
