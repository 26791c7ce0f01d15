//! Tunnels for packets: CONNECT-UDP and CONNECT-IP.

use std::sync::Arc;

use courser::h3::Empty;
use courser::masque::{IpProxy, OnEnd, OnIpEnd, Refusal, UdpProxy};
use courser_base::Mutex;
use http::{Request, Response};
use percent_encoding::percent_decode_str;

use super::record::{Kind, Record};
use super::refusals::{off, page, refused};
use super::relay::End;
use crate::body::{Body, boxed};

/// Returns the protocol of a well-known path.
pub(super) fn kind(path: &str) -> Option<Kind> {
    if path.starts_with(UDP_PATH) {
        return Some(Kind::Udp);
    }
    path.starts_with(IP_PATH).then_some(Kind::Ip)
}

/// The proxies that are served.
pub(super) struct Proxies<'a> {
    pub(super) udp: Option<&'a UdpProxy>,
    pub(super) ip: Option<&'a IpProxy>,
}

impl Proxies<'_> {
    /// Answers a request for a tunnel.
    pub(super) async fn answer<B>(
        &self,
        kind: Kind,
        mut request: Request<B>,
        mut record: Record,
    ) -> Response<Body> {
        // A request that ends before its response has a record too: that of the last clone.
        match (kind, self.udp, self.ip) {
            (Kind::Ip, _, Some(ip)) => {
                let pending = Arc::new(Mutex::new(Some(record)));
                let ended = pending.clone();
                request.extensions_mut().insert(OnIpEnd::new(move |tunnel| {
                    if let Some(mut record) = ended.lock().take() {
                        record.on_ip(tunnel);
                    }
                }));
                answered(ip.answer(request).await, &pending)
            }
            (Kind::Udp, Some(udp), _) => {
                let pending = Arc::new(Mutex::new(Some(record)));
                let ended = pending.clone();
                request.extensions_mut().insert(OnEnd::new(move |tunnel| {
                    if let Some(mut record) = ended.lock().take() {
                        record.on_udp(tunnel);
                    }
                }));
                answered(udp.answer(request).await, &pending)
            }
            _ => refused(off(record.name()), &mut record),
        }
    }
}

/// Records the response to a request for a tunnel.
fn answered(response: Response<Empty>, pending: &Mutex<Option<Record>>) -> Response<Body> {
    let refusal = response.extensions().get::<Refusal>().cloned();
    let mut record = pending.lock();
    match (refusal, record.as_mut()) {
        (Some(refusal), Some(record)) => return refused(refusal, record),
        (Some(refusal), None) => return page(&refusal),
        (None, Some(record)) => {
            record.on_opened(response.status(), None);
            // Until the tunnel reports another end: its request may end before its response.
            record.on_end(End::Client.name());
        }
        // The tunnel has ended already.
        (None, None) => {}
    }
    drop(record);
    response.map(boxed)
}

/// Returns the target in a path of CONNECT-UDP for logs, or the path if it has none.
pub(super) fn udp_target(path: &str) -> String {
    match variables(path, UDP_PATH) {
        Some((host, port)) if host.contains(':') => format!("[{host}]:{port}"),
        Some((host, port)) => format!("{host}:{port}"),
        None => path.to_owned(),
    }
}

/// Returns the scope in a path of CONNECT-IP for logs, as target and protocol, or the path if it has none.
pub(super) fn ip_target(path: &str) -> String {
    match variables(path, IP_PATH) {
        Some((target, protocol)) => format!("{target} {protocol}"),
        None => path.to_owned(),
    }
}

/// Returns the two variables of a well-known path. The log escapes what they contain.
fn variables(path: &str, prefix: &str) -> Option<(String, String)> {
    let rest = path.strip_prefix(prefix)?;
    let (first, second) = rest.trim_end_matches('/').split_once('/')?;
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some((decoded(first), decoded(second)))
}

/// The path of CONNECT-UDP before its variables (RFC 9298 §2).
const UDP_PATH: &str = "/.well-known/masque/udp/";

/// The path of CONNECT-IP before its variables (RFC 9484 §3).
const IP_PATH: &str = "/.well-known/masque/ip/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_shown_as_people_write_them() {
        for (path, expected) in [
            ("/.well-known/masque/udp/a.test/443/", "a.test:443"),
            (
                "/.well-known/masque/udp/2001%3Adb8%3a%3A1/443/",
                "[2001:db8::1]:443",
            ),
            (
                "/.well-known/masque/udp/a.test",
                "/.well-known/masque/udp/a.test",
            ),
        ] {
            assert_eq!(udp_target(path), expected);
        }
        for (path, expected) in [
            ("/.well-known/masque/ip/*/*/", "* *"),
            ("/.well-known/masque/ip/%2A/17/", "* 17"),
            ("/.well-known/masque/ip/10.0.0.0%2F8/%2A/", "10.0.0.0/8 *"),
            ("/.well-known/masque/ip/", "/.well-known/masque/ip/"),
        ] {
            assert_eq!(ip_target(path), expected);
        }
        assert_eq!(kind("/.well-known/masque/tcp/a/1/"), None);
    }
}
