//! What `courser proxy` prints about itself: its templates, and how to use it.

use courser_services::PlainListener;
use courser_services::forward::ForwardSettings;
use serde_json::json;

use crate::serve::announce::ForwardRows;

/// The facts about a forward proxy for its announcement.
#[derive(Debug)]
pub(super) struct Facts {
    serves_tcp: bool,
    serves_udp: bool,
    /// Lines in the file of --auth.
    clients: Option<usize>,
    targets: String,
    plain: Vec<std::net::SocketAddr>,
    /// True for a certificate that clients do not trust by default.
    pub(super) is_dev: bool,
}

impl Facts {
    pub(super) fn of(settings: &ForwardSettings, targets: String, plain: &[PlainListener]) -> Self {
        Self {
            serves_tcp: settings.serves_tcp,
            serves_udp: settings.serves_udp,
            clients: settings.credentials.as_ref().map(|it| it.len()),
            targets,
            plain: plain.iter().map(PlainListener::address).collect(),
            is_dev: false,
        }
    }

    /// Returns the protocols that are proxied.
    pub(super) fn what(&self) -> String {
        let what = match (self.serves_tcp, self.serves_udp) {
            (true, true) => "TCP (CONNECT, http URLs) and UDP (CONNECT-UDP)",
            (true, false) => "TCP (CONNECT, http URLs)",
            _ => "UDP (CONNECT-UDP)",
        };
        what.to_owned()
    }

    /// Returns the rows for a proxy that clients of this machine reach at `authority`.
    pub(super) fn rows(&self, authority: &str) -> ForwardRows {
        let mut rows = Vec::new();
        for address in &self.plain {
            rows.push(("plain", format!("http://{address}  (HTTP/1.1 without TLS)")));
        }
        let template = format!("https://{authority}{TEMPLATE}");
        if self.serves_udp {
            rows.push(("template", format!("{template}  (CONNECT-UDP)")));
        }
        let clients = match self.clients {
            Some(1) => "1 line in the file of --auth (Basic or Bearer)".to_owned(),
            Some(lines) => format!("{lines} lines in the file of --auth (Basic or Bearer)"),
            None => "everybody who can connect".to_owned(),
        };
        rows.push(("clients", clients));
        rows.push(("targets", self.targets.clone()));
        let user = self.clients.map_or("", |_| " --proxy-user NAME:SECRET");
        let trust = if self.is_dev { " --proxy-insecure" } else { "" };
        if self.serves_tcp {
            let flags = format!("--proxy https://{authority}{trust}{user}");
            rows.push(("try", format!("curl {flags} https://example.org/")));
        }
        let flags = format!("--proxy masque://{authority}{trust}{user}");
        rows.push(("try", format!("courser get {flags} https://example.org/")));
        ForwardRows {
            rows,
            json: json!({
                "tcp": self.serves_tcp,
                "udp": self.serves_udp,
                "template": self.serves_udp.then_some(template),
                "plain": self.plain.iter().map(|it| format!("http://{it}")).collect::<Vec<_>>(),
                "needs_credentials": self.clients.is_some(),
                "targets": self.targets,
            }),
        }
    }
}

/// The template of CONNECT-UDP at the well-known path (RFC 9298 §2).
const TEMPLATE: &str = "/.well-known/masque/udp/{target_host}/{target_port}/";
