//! What `--verbose` prints.

use courser::webtransport::Session;
use courser_measure::printable;
use courser_units::rfc3339;

use super::connect::{Connected, hex};
use super::open;

/// Prints lines to standard error if it is on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verbose(pub(super) bool);

impl Verbose {
    fn line(self, text: &str) {
        if self.0 {
            eprintln!("* {}", printable(text));
        }
    }

    pub(super) fn on_connected(self, connected: &Connected) {
        let quic = connected.http3.quic();
        let data = quic.handshake_data();
        let group = data.as_ref().and_then(|it| it.key_exchange.clone());
        let suite = data.as_ref().and_then(|it| it.suite);
        self.line(&format!(
            "connected to udp {} with HTTP/3 over QUIC {}, {} {}",
            connected.address,
            quic.stats().version,
            suite.map_or_else(String::new, |it| format!("{it:?}")),
            group.unwrap_or_default(),
        ));
        if let Some(facts) = &connected.certificate {
            let names = facts.names.join(", ");
            let until = rfc3339(facts.not_after);
            let hash = hex(&facts.sha256);
            self.line(&format!(
                "certificate for {names}, valid until {until}, sha256 {hash}"
            ));
        }
    }

    pub(super) async fn on_session(self, session: &Session, connected: &Connected) {
        if !self.0 {
            return;
        }
        if let Some(announced) = open::announced(&connected.http3).await {
            self.line(&format!("the server announces {announced}"));
        }
        let protocol = match session.protocol() {
            Some(name) => format!("protocol \"{name}\""),
            None => "no protocol".to_owned(),
        };
        let datagrams = match session.datagrams().max_size() {
            Some(size) => format!("datagrams of up to {size} bytes now"),
            None => "no datagrams".to_owned(),
        };
        self.line(&format!(
            "session {} in {}, {protocol}, {datagrams}",
            session.id(),
            session.dialect()
        ));
    }

    pub(super) fn on_draining(self) {
        self.line("the server asks to end the session soon");
    }

    pub(super) fn on_closed(self, closed: &str) {
        self.line(closed);
    }
}
