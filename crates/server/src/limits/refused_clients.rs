//! Reports of clients that are refused because of their certificates.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use courser_base::Mutex;
use courser_quic::ConnectionError;
use courser_tls::rustls::{self, AlertDescription};
use tokio::time::Instant;

use crate::events::{Event, Events};

/// Reports refused clients as events, at most one per minute, because clients can cause any number.
#[derive(Debug)]
pub(crate) struct RefusedClients {
    events: Events,
    last: Mutex<Option<Instant>>,
}

impl RefusedClients {
    pub(crate) fn new(events: Events) -> Self {
        Self {
            events,
            last: Mutex::new(None),
        }
    }

    /// Reports a failed QUIC handshake if the client's certificate is the reason.
    pub(crate) fn on_quic(&self, address: SocketAddr, error: &ConnectionError) {
        if let ConnectionError::TransportError(own) = error
            && own.code.alert().is_some_and(is_about_certificates)
        {
            self.report(address, &own.reason);
        }
    }

    /// Reports a failed TCP handshake if the client's certificate is the reason.
    pub(crate) fn on_tcp(&self, address: SocketAddr, error: &io::Error) {
        let tls = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if let Some(rustls::Error::NoCertificatesPresented | rustls::Error::InvalidCertificate(_)) =
            tls
        {
            self.report(address, &error.to_string());
        }
    }

    fn report(&self, address: SocketAddr, reason: &str) {
        if self.is_due(Instant::now()) {
            self.events.report(Event::ClientCertificateRefused {
                address,
                reason: reason.to_owned(),
            });
        }
    }

    /// Returns true if an event may be reported now, and records the time.
    fn is_due(&self, now: Instant) -> bool {
        let mut last = self.last.lock();
        let is_due = last.is_none_or(|last| now.duration_since(last) >= REPORT_AGAIN);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

fn is_about_certificates(alert: u8) -> bool {
    use AlertDescription as Alert;
    matches!(
        Alert::from(alert),
        Alert::CertificateRequired
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
    )
}

/// Least time between two events (limit K190).
const REPORT_AGAIN: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    /// Limit K190.
    #[test]
    fn refusals_are_reported_once_in_a_minute() {
        let clients = RefusedClients::new(Events::default());
        let begin = Instant::now();
        for (millis, is_due) in [
            (0, true),
            (1, false),
            (59_999, false),
            (60_000, true),
            (119_999, false),
            (120_000, true),
        ] {
            let now = begin + Duration::from_millis(millis);
            assert_eq!(clients.is_due(now), is_due, "{millis} ms");
        }
    }
}
