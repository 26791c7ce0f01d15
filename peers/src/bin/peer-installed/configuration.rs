//! The configurations of servers: one thread, no access log, no compression, persistent connections,
//! and TLS 1.3 with one cipher suite where there is a setting for it.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::Path;

use peers::installed::Protocol;
use peers::settings::{CIPHER, IDLE_TIMEOUT};
use serde_json::json;

/// The values of all configurations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site<'a> {
    pub(crate) content: Content<'a>,
    pub(crate) certificate: &'a Path,
    pub(crate) key: &'a Path,
    pub(crate) protocol: Protocol,
    pub(crate) port: u16,
    /// Requests in flight on one connection.
    pub(crate) streams: u32,
    /// File descriptors that the server may have.
    pub(crate) descriptors: u64,
}

/// The source of responses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content<'a> {
    /// The files of a folder.
    Folder(&'a Path),
    /// A server of plain HTTP/1.1.
    Origin(SocketAddr),
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
    let (transport, settings) = nginx_transport(site);
    let idle = IDLE_TIMEOUT.as_secs();
    let (upstream, content) = match site.content {
        Content::Folder(folder) => (String::new(), format!("root {};", quoted(folder.display()))),
        Content::Origin(origin) => nginx_origin(origin, site.streams),
    };
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
    keepalive_requests {REQUESTS};{settings}
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
    scgi_temp_path {scgi};{upstream}
    server {{
        listen 127.0.0.1:{port} {transport};
        {content}
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
        certificate = quoted(site.certificate.display()),
        key = quoted(site.key.display()),
        port = site.port,
    )
}

/// Returns what follows the address of nginx, and the settings of the protocol.
fn nginx_transport(site: &Site<'_>) -> (&'static str, String) {
    match site.protocol {
        Protocol::H1 => ("ssl backlog=4096", String::new()),
        Protocol::H2 => (
            "ssl http2 backlog=4096",
            format!("\n    http2_max_concurrent_streams {};", site.streams),
        ),
        Protocol::H3 => (
            "quic",
            format!(
                "\n    http3_max_concurrent_streams {};\n    quic_gso on;",
                site.streams
            ),
        ),
    }
}

/// Returns the blocks of nginx that name the origin and forward to it, over connections that are
/// kept. Without the last setting, nginx writes what a client does not read at once to a file.
fn nginx_origin(origin: SocketAddr, connections: u32) -> (String, String) {
    let idle = IDLE_TIMEOUT.as_secs();
    let upstream = format!(
        "
    upstream origin {{
        server {origin};
        keepalive {connections};
        keepalive_requests {REQUESTS};
        keepalive_time 1d;
        keepalive_timeout {idle}s;
    }}"
    );
    let location = "location / {
            proxy_pass http://origin;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_max_temp_file_size 0;
        }";
    (upstream, location.to_owned())
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
    let content = match site.content {
        Content::Folder(folder) => format!("file.dir: {}", quoted(folder.display())),
        Content::Origin(origin) => format!(
            "proxy.reverse.url: \"http://{origin}/\"
        proxy.timeout.keepalive: {}",
            idle * 1000
        ),
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
        {content}
",
        connections = site.connections(),
        port = site.port,
        certificate = quoted(site.certificate.display()),
        key = quoted(site.key.display()),
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
    let handler = match site.content {
        Content::Folder(folder) => json!({ "handler": "file_server", "root": folder }),
        Content::Origin(origin) => json!({
            "handler": "reverse_proxy",
            "upstreams": [{ "dial": origin.to_string() }],
            "transport": {
                "protocol": "http",
                "versions": ["1.1"],
                "compression": false,
                "keep_alive": {
                    "max_idle_conns": site.streams,
                    "max_idle_conns_per_host": site.streams,
                    "idle_timeout": nanoseconds,
                },
            },
        }),
    };
    let server = json!({
        "listen": [format!("127.0.0.1:{}", site.port)],
        "protocols": protocols,
        "idle_timeout": nanoseconds,
        "automatic_https": { "disable": true },
        "tls_connection_policies": [{ "protocol_min": "tls1.3", "curves": ["x25519"] }],
        "routes": [{ "handle": [handler] }],
    });
    let certificate = json!({ "certificate": site.certificate, "key": site.key });
    let configuration = json!({
        "admin": { "disabled": true, "config": { "persist": false } },
        "logging": { "logs": { "default": { "level": "ERROR" } } },
        "apps": {
            "http": { "servers": { "measured": server } },
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
            content: Content::Folder(Path::new("/a b")),
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
        assert!(!text.contains("http2"), "{text}");
        let text = nginx(&site(Protocol::H3), Path::new("/own"), 80);
        assert!(text.contains("listen 127.0.0.1:4433 quic;"), "{text}");
    }

    #[test]
    fn proxies_forward_to_the_origin_and_serve_no_files() {
        let origin: SocketAddr = "127.0.0.1:8080".parse().expect("an address");
        let site = Site {
            content: Content::Origin(origin),
            ..site(Protocol::H3)
        };
        let text = nginx(&site, Path::new("/own"), 80);
        assert!(text.contains("server 127.0.0.1:8080;"), "{text}");
        assert!(text.contains("proxy_pass http://origin;"), "{text}");
        assert!(!text.contains("root "), "{text}");
        let text = h2o(&site);
        assert!(
            text.contains("proxy.reverse.url: \"http://127.0.0.1:8080/\""),
            "{text}"
        );
        assert!(!text.contains("file.dir"), "{text}");
        let value: serde_json::Value = serde_json::from_str(&caddy(&site)).expect("JSON");
        let handler = &value["apps"]["http"]["servers"]["measured"]["routes"][0]["handle"][0];
        assert_eq!(handler["upstreams"][0]["dial"], "127.0.0.1:8080");
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
        let server = &value["apps"]["http"]["servers"]["measured"];
        assert_eq!(server["protocols"], json!(["h3"]));
        assert_eq!(server["routes"][0]["handle"][0]["root"], "/a b");
    }

    #[test]
    fn words_are_quoted() {
        assert_eq!(quoted("a\"b\\c"), r#""a\"b\\c""#);
    }
}
