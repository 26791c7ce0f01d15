//! What `courser proxy` prints about itself: its templates, and how to use it.

use courser::masque::Prefix;
use courser_services::PlainListener;
use courser_services::forward::ForwardSettings;
use serde_json::json;

use crate::serve::announce::ForwardRows;

/// The facts about a forward proxy for its announcement.
#[derive(Debug)]
pub(super) struct Facts {
    serves_tcp: bool,
    serves_udp: bool,
    /// The addresses of clients of IP tunnels.
    pool: Vec<Prefix>,
    /// Lines in the file of --auth.
    clients: Option<usize>,
    targets: String,
    plain: Vec<std::net::SocketAddr>,
    /// True for a certificate that clients do not trust by default.
    pub(super) is_dev: bool,
}

impl Facts {
    pub(super) fn of(
        settings: &ForwardSettings,
        pool: &[Prefix],
        targets: String,
        plain: &[PlainListener],
    ) -> Self {
        Self {
            serves_tcp: settings.serves_tcp,
            serves_udp: settings.serves_udp,
            pool: pool.to_vec(),
            clients: settings.credentials.as_ref().map(|it| it.len()),
            targets,
            plain: plain.iter().map(PlainListener::address).collect(),
            is_dev: false,
        }
    }

    /// Returns the protocols that are proxied.
    pub(super) fn what(&self) -> String {
        let all = [
            (self.serves_tcp, "TCP (CONNECT, http URLs)"),
            (self.serves_udp, "UDP (CONNECT-UDP)"),
            (!self.pool.is_empty(), "IP (CONNECT-IP)"),
        ];
        let served: Vec<_> = all.iter().filter(|it| it.0).map(|it| it.1).collect();
        match served.as_slice() {
            [others @ .., last] if !others.is_empty() => {
                format!("{} and {last}", others.join(", "))
            }
            served => served.concat(),
        }
    }

    fn pool(&self) -> Vec<String> {
        self.pool.iter().map(ToString::to_string).collect()
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
        let ip_template = format!("https://{authority}{IP_TEMPLATE}");
        if !self.pool.is_empty() {
            rows.push(("template", format!("{ip_template}  (CONNECT-IP)")));
            rows.push(("pool", self.pool().join(", ")));
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
        if self.serves_tcp || self.serves_udp {
            let flags = format!("--proxy masque://{authority}{trust}{user}");
            rows.push(("try", format!("courser get {flags} https://example.org/")));
        }
        if !self.pool.is_empty() {
            let auth = self.clients.map_or("", |_| " --auth TOKEN");
            let trust = if self.is_dev { " --insecure" } else { "" };
            rows.push((
                "try",
                format!("courser tunnel {authority}{trust}{auth} --check"),
            ));
        }
        ForwardRows {
            rows,
            json: json!({
                "tcp": self.serves_tcp,
                "udp": self.serves_udp,
                "template": self.serves_udp.then_some(template),
                "ip": !self.pool.is_empty(),
                "ip_template": (!self.pool.is_empty()).then_some(ip_template),
                "pool": self.pool(),
                "plain": self.plain.iter().map(|it| format!("http://{it}")).collect::<Vec<_>>(),
                "needs_credentials": self.clients.is_some(),
                "targets": self.targets,
            }),
        }
    }
}

/// The template of CONNECT-UDP at the well-known path (RFC 9298 §2).
const TEMPLATE: &str = "/.well-known/masque/udp/{target_host}/{target_port}/";

/// The template of CONNECT-IP at the well-known path (RFC 9484 §3).
const IP_TEMPLATE: &str = "/.well-known/masque/ip/{target}/{ipproto}/";
