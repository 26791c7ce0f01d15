//! The configurations of servers of files: one thread, no access log, no compression, persistent
//! connections, and TLS 1.3 with one cipher suite where there is a setting for it.

use std::fmt::Display;
use std::path::Path;

use peers::file_server::Protocol;
use peers::settings::{CIPHER, IDLE_TIMEOUT};
use serde_json::json;

/// The values of all configurations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) certificate: &'a Path,
    pub(crate) key: &'a Path,
    pub(crate) protocol: Protocol,
    pub(crate) port: u16,
    /// Requests in flight on one connection.
    pub(crate) streams: u32,
    /// File descriptors that the server may have.
    pub(crate) descriptors: u64,
}

impl Site<'_> {
    /// Connections at once; HTTP/1.1 needs one for each request in flight.
    const fn connections(&self) -> u64 {
        self.descriptors / 4
    }
}

/// Returns the configuration of nginx, which keeps its own files in `own` and reports its counts
/// over plain HTTP on the port `status`.
pub(crate) fn nginx(site: &Site<'_>, own: &Path, status: u16) -> String {
    let path = |name: &str| quoted(own.join(name).display());
    let http2 = match site.protocol {
        Protocol::H2 => " http2",
        Protocol::H1 | Protocol::H3 => "",
    };
    let idle = IDLE_TIMEOUT.as_secs();
    format!(
        "daemon off;
master_process off;
pid {pid};
error_log stderr warn;
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    gzip off;
    default_type application/octet-stream;
    sendfile on;
    tcp_nodelay on;
    keepalive_timeout {idle}s;
    keepalive_time 1d;
    keepalive_requests {REQUESTS};
    http2_max_concurrent_streams {streams};
    open_file_cache max={open_files} inactive={idle}s;
    open_file_cache_valid 60s;
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites {CIPHER};
    ssl_ecdh_curve X25519;
    ssl_session_cache off;
    ssl_session_tickets off;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    client_body_temp_path {body};
    proxy_temp_path {proxy};
    fastcgi_temp_path {fastcgi};
    uwsgi_temp_path {uwsgi};
    scgi_temp_path {scgi};
    server {{
        listen 127.0.0.1:{port} ssl{http2} backlog=4096;
        root {folder};
    }}
    server {{
        listen 127.0.0.1:{status};
        location / {{ stub_status; }}
    }}
}}
",
        pid = path("nginx.pid"),
        body = path("body"),
        proxy = path("proxy"),
        fastcgi = path("fastcgi"),
        uwsgi = path("uwsgi"),
        scgi = path("scgi"),
        connections = site.connections(),
        // The rest is for connections.
        open_files = site.descriptors / 2,
        streams = site.streams,
        certificate = quoted(site.certificate.display()),
        key = quoted(site.key.display()),
        port = site.port,
        folder = quoted(site.folder.display()),
    )
}

/// Returns the configuration of H2O. Its library of TLS is told by [`openssl`].
pub(crate) fn h2o(site: &Site<'_>) -> String {
    let idle = IDLE_TIMEOUT.as_secs();
    let (transport, suites) = match site.protocol {
        // H2O's own TLS is below QUIC.
        Protocol::H3 => (
            format!(
                "\n  quic:\n    max-streams-bidi: {}\n    max-udp-payload-size: 1472",
                site.streams
            ),
            format!("\n    cipher-suite-tls1.3: [{CIPHER}]"),
        ),
        Protocol::H1 | Protocol::H2 => Default::default(),
    };
    // H2O refuses QUIC without tickets; no client here uses them.
    let resumption = match site.protocol {
        Protocol::H3 => "ticket",
        Protocol::H1 | Protocol::H2 => "off",
    };
    let timeouts = match site.protocol {
        // Without a limit it may wait for connections that are closed.
        Protocol::H3 => {
            format!("http3-idle-timeout: {idle}\nhttp3-graceful-shutdown-timeout: 1")
        }
        Protocol::H2 => format!(
            "http2-idle-timeout: {idle}\nhttp2-max-concurrent-requests-per-connection: {}",
            site.streams
        ),
        Protocol::H1 => format!("http1-request-timeout: {idle}"),
    };
    format!(
        "num-threads: 1
max-connections: {connections}
tcp-fastopen: 0
{timeouts}
ssl-session-resumption:
  mode: {resumption}
listen:
  host: 127.0.0.1
  port: {port}{transport}
  ssl:
    certificate-file: {certificate}
    key-file: {key}
    minimum-version: TLSv1.3
    ocsp-update-interval: 0
    neverbleed: OFF{suites}
compress: OFF
hosts:
  \"default\":
    paths:
      \"/\":
        file.dir: {folder}
",
        connections = site.connections(),
        port = site.port,
        certificate = quoted(site.certificate.display()),
        key = quoted(site.key.display()),
        folder = quoted(site.folder.display()),
    )
}

/// Returns a configuration of OpenSSL for programs that have no setting for TLS 1.3.
pub(crate) fn openssl() -> String {
    format!(
        "openssl_conf = all
[all]
ssl_conf = ssl
[ssl]
system_default = tls
[tls]
Ciphersuites = {CIPHER}
Groups = X25519
"
    )
}

/// Returns the configuration of Caddy. Go chooses the cipher suite itself: AES-128 where the CPU
/// has instructions for AES.
pub(crate) fn caddy(site: &Site<'_>) -> String {
    let nanoseconds = u64::try_from(IDLE_TIMEOUT.as_nanos()).unwrap_or(u64::MAX);
    let protocols: &[&str] = match site.protocol {
        Protocol::H3 => &["h3"],
        // Caddy has HTTP/2 beside HTTP/1.1 only; the client chooses.
        Protocol::H2 => &["h1", "h2"],
        Protocol::H1 => &["h1"],
    };
    let server = json!({
        "listen": [format!("127.0.0.1:{}", site.port)],
        "protocols": protocols,
        "idle_timeout": nanoseconds,
        "automatic_https": { "disable": true },
        "tls_connection_policies": [{ "protocol_min": "tls1.3", "curves": ["x25519"] }],
        "routes": [{ "handle": [{ "handler": "file_server", "root": site.folder }] }],
    });
    let certificate = json!({ "certificate": site.certificate, "key": site.key });
    let configuration = json!({
        "admin": { "disabled": true, "config": { "persist": false } },
        "logging": { "logs": { "default": { "level": "ERROR" } } },
        "apps": {
            "http": { "servers": { "files": server } },
            "tls": {
                "certificates": { "load_files": [certificate] },
                "session_tickets": { "disabled": true },
            },
        },
    });
    configuration.to_string()
}

/// A word in quotation marks, which the configurations of nginx and H2O read alike.
fn quoted(word: impl Display) -> String {
    let word = word.to_string().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{word}\"")
}

/// More requests than any run has.
const REQUESTS: u32 = 2_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn site(protocol: Protocol) -> Site<'static> {
        Site {
            folder: Path::new("/a b"),
            certificate: Path::new("/c.pem"),
            key: Path::new("/k.pem"),
            protocol,
            port: 4433,
            streams: 100,
            descriptors: 1000,
        }
    }

    #[test]
    fn nginx_listens_with_the_protocol_that_is_wanted() {
        let text = nginx(&site(Protocol::H2), Path::new("/own"), 80);
        assert!(text.contains("listen 127.0.0.1:4433 ssl http2 "), "{text}");
        assert!(text.contains("root \"/a b\";"), "{text}");
        let text = nginx(&site(Protocol::H1), Path::new("/own"), 80);
        assert!(text.contains("listen 127.0.0.1:4433 ssl "), "{text}");
        assert!(!text.contains("ssl http2 "), "{text}");
    }

    #[test]
    fn h2o_listens_on_udp_for_http3_alone() {
        let text = h2o(&site(Protocol::H3));
        assert!(
            text.contains("  quic:\n    max-streams-bidi: 100\n"),
            "{text}"
        );
        let text = h2o(&site(Protocol::H2));
        assert!(!text.contains("quic"), "{text}");
    }

    #[test]
    fn caddy_is_configured_in_json() {
        let text = caddy(&site(Protocol::H3));
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let server = &value["apps"]["http"]["servers"]["files"];
        assert_eq!(server["protocols"], json!(["h3"]));
        assert_eq!(server["routes"][0]["handle"][0]["root"], "/a b");
    }

    #[test]
    fn words_are_quoted() {
        assert_eq!(quoted("a\"b\\c"), r#""a\"b\\c""#);
    }
}
