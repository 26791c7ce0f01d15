//! The announcement of HTTP/3 in `Alt-Svc` fields (RFC 7838).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{HeaderValue, Request};

use crate::exchange::control_data;
use crate::phase::Part;
use crate::tasks::Task;

/// Settings of the `Alt-Svc` field in responses over TCP, which announces HTTP/3 (RFC 7838).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AltSvc {
    /// Time for which clients may remember the announcement. Default one day.
    pub max_age: Duration,
    /// The announced port. Default `None`: the port to which the request was sent according to its host, because
    /// port mappings of containers and routers usually map the same port for UDP. A request over HTTP/1.0 without a
    /// host gets the port on which the server listens.
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
    fn value(self, port: u16) -> HeaderValue {
        let text = format!("h3=\":{port}\"; ma={}", self.max_age.as_secs());
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("clear"))
    }
}

/// The `Alt-Svc` fields of the responses at one address (RFC 7838).
#[derive(Clone, Debug)]
pub(crate) struct AltSvcHeader(Arc<Announcement>);

#[derive(Debug)]
struct Announcement {
    settings: AltSvc,
    listening: PortValue,
    /// The value for another port, which a port mapping causes. It is usually the same for all clients.
    mapped: OnceLock<PortValue>,
    part: Part,
    /// The task that accepts QUIC clients.
    quic: Option<Arc<Task>>,
}

/// A port and the field that announces it.
#[derive(Clone, Debug)]
struct PortValue {
    port: u16,
    value: HeaderValue,
}

impl AltSvcHeader {
    /// Creates the fields for an address with this port.
    pub(crate) fn new(settings: AltSvc, port: u16, part: Part, quic: Option<Arc<Task>>) -> Self {
        let port = settings.port.unwrap_or(port);
        let value = settings.value(port);
        Self(Arc::new(Announcement {
            settings,
            listening: PortValue { port, value },
            mapped: OnceLock::new(),
            part,
            quic,
        }))
    }

    /// Returns the port to announce in the response to an admitted request.
    pub(crate) fn port<B>(&self, request: &Request<B>) -> u16 {
        let requested = || control_data::port(request).unwrap_or(self.0.listening.port);
        self.0.settings.port.unwrap_or_else(requested)
    }

    /// Returns the value of the field that announces this port. While the server drains or its QUIC socket has failed,
    /// it withdraws the announcement, because clients that remember it would try a closed port.
    pub(crate) fn value(&self, port: u16) -> HeaderValue {
        let this = &*self.0;
        let is_stopped = this.quic.as_ref().is_some_and(|task| task.is_stopped());
        if is_stopped || this.part.is_draining() {
            return HeaderValue::from_static("clear");
        }
        if port == this.listening.port {
            return this.listening.value.clone();
        }
        let mapped = this.mapped.get_or_init(|| PortValue {
            port,
            value: this.settings.value(port),
        });
        match mapped.port == port {
            true => mapped.value.clone(),
            false => this.settings.value(port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::Phases;

    fn announced(port: Option<u16>, host: Option<&str>) -> HeaderValue {
        let settings = AltSvc {
            port,
            ..AltSvc::default()
        };
        let header = AltSvcHeader::new(settings, 4433, Phases::new().part(), None);
        let mut request = Request::get("/");
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let request = request.body(()).expect("a request");
        let value = header.value(header.port(&request));
        // The same port again, and another one.
        assert_eq!(header.value(header.port(&request)), value);
        assert_eq!(header.value(1), "h3=\":1\"; ma=86400");
        value
    }

    #[test]
    fn announced_port_is_the_one_that_the_client_used() {
        assert_eq!(announced(None, Some("a.test")), "h3=\":443\"; ma=86400");
        assert_eq!(
            announced(None, Some("a.test:8443")),
            "h3=\":8443\"; ma=86400"
        );
        assert_eq!(
            announced(None, Some("[::1]:4433")),
            "h3=\":4433\"; ma=86400"
        );
        assert_eq!(announced(None, None), "h3=\":4433\"; ma=86400");
        assert_eq!(
            announced(Some(444), Some("a.test")),
            "h3=\":444\"; ma=86400"
        );
    }
}
