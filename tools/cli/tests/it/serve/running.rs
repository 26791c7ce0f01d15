use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use courser::server::Protocol;
use http::Method;
use serde_json::Value;

use super::client::request;
use super::serving::Serving;
use super::within;
use crate::common::{Folder, refusal};

pub(crate) fn start(folder: &Folder, arguments: &[&str]) -> Serving {
    let path = folder.path().to_str().expect("UTF-8");
    Serving::start(&[&[path], arguments].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starts_without_a_certificate_and_prints_how_to_trust_it() {
    let folder = Folder::new();
    folder.file("index.html", "home");
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--json", &path];
    let serving = Serving::run(&arguments, Folder::new());
    let event = &serving.announced;
    let port = serving.address.port();
    assert_eq!(event["url"], format!("https://127.0.0.1:{port}/"));
    let spki = event["certificate"]["spki_sha256"]
        .as_str()
        .expect("a hash");
    assert_eq!((spki.len(), spki.ends_with('=')), (44, true), "{spki}");
    let chrome = event["chrome"].as_str().expect("a command");
    let expected = format!(
        "google-chrome --origin-to-force-quic-on=127.0.0.1:{port} \
         --ignore-certificate-errors-spki-list={spki} https://127.0.0.1:{port}/"
    );
    assert_eq!(chrome, expected);
}

/// Sends a request over plain HTTP, like the probe of a load balancer.
pub(crate) fn admin(serving: &Serving, path: &str) -> (u16, String) {
    admin_with(serving, path, "host: localhost")
}

/// Sends a request with these fields.
fn admin_with(serving: &Serving, path: &str, fields: &str) -> (u16, String) {
    admin_request(serving, "GET", path, fields)
}

/// Sends a request with this method.
pub(crate) fn admin_request(
    serving: &Serving,
    method: &str,
    path: &str,
    fields: &str,
) -> (u16, String) {
    let url = serving.announced["admin"].as_str().expect("an address");
    let authority = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(authority).expect("listens");
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\n{fields}\r\nconnection: close\r\n\r\n"
    )
    .expect("open");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("UTF-8");
    let status = text
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    (status.expect("a status"), body.expect("a body"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admin_reports_health_metrics_and_connections() {
    let folder = Folder::new();
    folder.file("a.txt", "12345");
    let serving = start(&folder, &["--admin", "127.0.0.1:0"]);
    let mut clients = Vec::new();
    for protocol in Protocol::ALL {
        let mut client = serving.client(protocol).await;
        assert_eq!(client.get("/a.txt", &[]).await.status, 200);
        assert_eq!(client.get("/nothing", &[]).await.status, 404);
        clients.push(client);
    }
    assert_eq!(admin(&serving, "/health").0, 200);
    assert_eq!(admin(&serving, "/ready").0, 200);
    assert_eq!(admin(&serving, "/elsewhere").0, 404);
    let (status, metrics) = admin(&serving, "/metrics");
    assert_eq!(status, 200);
    for line in [
        "courser_http_requests_total{protocol=\"h3\",method=\"GET\",code=\"200\"} 1",
        "courser_http_requests_total{protocol=\"h2\",method=\"GET\",code=\"404\"} 1",
        "courser_connections_open{protocol=\"http/1.1\"} 1",
        "courser_connections_total{protocol=\"h3\"} 1",
        "courser_quic_handshakes_total 1",
        "courser_quic_packets_lost_total 0",
        "courser_ready 1",
        "# EOF",
    ] {
        let is_there = metrics
            .lines()
            .any(|seen| seen.trim_end_matches(".0") == line);
        assert!(is_there, "no {line} in {metrics}");
    }
    assert!(
        metrics.contains("courser_http_request_duration_seconds_bucket"),
        "{metrics}"
    );
    let status: Value = serde_json::from_str(&admin(&serving, "/status").1).expect("JSON");
    let connections = status["connections"].as_array().expect("a list");
    assert_eq!(connections.len(), 3, "{status}");
    let quic = connections
        .iter()
        .find(|it| it["protocol"] == "h3")
        .expect("an entry");
    assert!(quic["quic"]["rtt_ms"].as_f64() > Some(0.0), "{quic}");
    assert!(
        quic["quic"]["congestion_window"].as_u64() > Some(0),
        "{quic}"
    );
    let began = Instant::now();
    loop {
        let list: Value =
            serde_json::from_str(&admin(&serving, "/connections?sort=protocol").1).expect("JSON");
        assert_eq!(list["total"], 3, "{list}");
        // The HTTP/3 connection becomes idle, which its sink reports as a limit by the application.
        if list["connections"][1]["limit"] == "application" {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{list}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(admin(&serving, "/").1.contains("main.js"));
    assert!(admin(&serving, "/main.js").1.contains("/connections?"));
}

#[test]
fn admin_requires_a_known_host_and_the_token() {
    let folder = Folder::new();
    let token = Folder::new();
    let file = token.file("token", "s3cret-s3cret-s3cret\n");
    let arguments = [
        "--admin",
        "127.0.0.1:0",
        "--admin-host",
        "here.test",
        "--admin-token-file",
        &file,
    ];
    let serving = start(&folder, &arguments);
    for (fields, status) in [
        ("host: attacker.test", 421),
        ("host: here.test", 401),
        ("host: here.test\r\nauthorization: Bearer wrong", 401),
        (
            "host: here.test\r\nauthorization: Bearer s3cret-s3cret-s3cret",
            200,
        ),
    ] {
        for path in ["/status", "/metrics"] {
            let (received, text) = admin_with(&serving, path, fields);
            assert_eq!(received, status, "{path} {fields}: {text}");
        }
    }
    assert_eq!(admin_with(&serving, "/health", "host: 127.0.0.1").0, 200);
    let (_, text) = admin_with(&serving, "/", "host: attacker.test");
    let names_all = text.contains("attacker.test") && text.contains("--admin-host");
    assert!(names_all && text.contains("127.0.0.1"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_count_requests_for_other_hosts() {
    let folder = Folder::new();
    folder.file("a.txt", "12345");
    let serving = start(&folder, &["--admin", "127.0.0.1:0", "--only-names"]);
    for protocol in [Protocol::Http2, Protocol::Http3] {
        let mut client = serving.client(protocol).await;
        assert_eq!(client.get("/a.txt", &[]).await.status, 200, "{protocol}");
        let mut other = request(Method::GET, "/a.txt", &[], "");
        *other.uri_mut() = "https://other.test/a.txt".parse().expect("a URI");
        let answer = within(client.send(other)).await.expect("an answer");
        assert_eq!(answer.status, 421, "{protocol}");
    }
    let (_, metrics) = admin(&serving, "/metrics");
    let line = "courser_requests_misdirected_total 2";
    assert!(metrics.lines().any(|seen| seen == line), "{metrics}");
}

#[test]
fn invalid_arguments_are_reported_in_one_line() {
    let error = refusal(&["serve", "/no/such/folder"]);
    assert!(error.contains("/no/such/folder"), "{error}");
    let error = refusal(&["serve", "--proxy", "localhost:80"]);
    assert!(error.contains("http://HOST[:PORT]"), "{error}");
    let error = refusal(&["serve", "--cert", "x.pem"]);
    assert!(error.contains("--key"), "{error}");
    let error = refusal(&["serve", "--acme"]);
    assert!(error.contains("--domain"), "{error}");
    let error = refusal(&["serve", ".", "--admin", "9443"]);
    assert!(error.contains("127.0.0.1:9443"), "{error}");
    let folder = Folder::new();
    let short = folder.file("short", "abc");
    let with_token = |file: &str| {
        let admin = [
            "serve",
            ".",
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
        ];
        refusal(&[&admin[..], &["--admin-token-file", file]].concat())
    };
    let error = with_token(&short);
    assert!(
        error.contains("3 bytes") && error.contains("16 to"),
        "{error}"
    );
    let error = with_token("/no/such/token");
    assert!(error.contains("/no/such/token"), "{error}");
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("bound").to_string();
    let error = refusal(&["serve", ".", "--listen", &address]);
    assert!(
        error.contains("UDP") && error.contains("taken") && error.contains("--listen"),
        "{error}"
    );
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let listen = ["serve", ".", "--listen", "127.0.0.1:0"];
    let error = refusal(&[&listen[..], &["--redirect-http", &address]].concat());
    assert!(
        error.contains(&address) && error.contains("(--redirect-http)"),
        "{error}"
    );
}
