//! The announcement of HTTP/3 in `Alt-Svc` fields (RFC 7838).

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

use crate::phase::Part;
use crate::tasks::Task;

/// Settings of the `Alt-Svc` field in responses over TCP, which announces HTTP/3 (RFC 7838).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AltSvc {
    /// Time for which clients may remember the announcement. Default one day.
    pub max_age: Duration,
    /// The announced port, if clients reach the server at another port than it listens on.
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
    /// Returns the value of the field (RFC 7838 §3).
    pub(crate) fn value(self, port: u16) -> HeaderValue {
        let port = self.port.unwrap_or(port);
        let text = format!("h3=\":{port}\"; ma={}", self.max_age.as_secs());
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("clear"))
    }
}

/// The `Alt-Svc` field of the responses at one address (RFC 7838).
#[derive(Clone, Debug)]
pub(crate) struct AltSvcHeader {
    pub(crate) announced: HeaderValue,
    pub(crate) part: Part,
    /// The task that accepts QUIC clients.
    pub(crate) quic: Option<Arc<Task>>,
}

impl AltSvcHeader {
    /// Returns the value of the field. While the server drains or its QUIC socket has failed, it withdraws the
    /// announcement, because clients that remember it would try a closed port.
    pub(crate) fn value(&self) -> HeaderValue {
        let is_stopped = self.quic.as_ref().is_some_and(|task| task.is_stopped());
        if is_stopped || self.part.is_draining() {
            HeaderValue::from_static("clear")
        } else {
            self.announced.clone()
        }
    }
}
