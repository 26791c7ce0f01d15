use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use courser::server::Protocol;
use http::Method;
use http_body_util::BodyExt as _;
use rustix::process::Signal;
use serde_json::Value;

use super::client::{Client, request};
use super::common::{Folder, certificate, refusal};
use super::serving::Serving;
use super::within;

fn start(folder: &Folder, arguments: &[&str]) -> Serving {
    let path = folder.path().to_str().expect("UTF-8");
    Serving::start(&[&[path], arguments].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starts_without_any_file_and_says_how_to_trust_it() {
    let folder = Folder::new();
    folder.file("index.html", "home");
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--json", &path];
    let serving = Serving::run(&arguments, Folder::new());
    let said = &serving.announced;
    let port = serving.address.port();
    assert_eq!(said["url"], format!("https://127.0.0.1:{port}/"));
    let spki = said["certificate"]["spki_sha256"].as_str().expect("a hash");
    assert_eq!((spki.len(), spki.ends_with('=')), (44, true), "{spki}");
    let chrome = said["chrome"].as_str().expect("a command");
    let wanted = format!(
        "google-chrome --origin-to-force-quic-on=127.0.0.1:{port} \
         --ignore-certificate-errors-spki-list={spki} https://127.0.0.1:{port}/"
    );
    assert_eq!(chrome, wanted);
}

/// A response that has begun when the signal comes is finished.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_drains_and_counts() {
    let folder = Folder::new();
    folder.file("large", &"x".repeat(30_000_000));
    for protocol in Protocol::ALL {
        let mut serving = start(&folder, &["--no-compress"]);
        let mut client = serving.client(protocol).await;
        let asked = request(Method::GET, "/large", &[], "");
        let response = within(client.begin(asked)).await.expect("an answer");
        serving.signal(Signal::TERM);
        assert_eq!(serving.next_event()["event"], "draining");
        // It is told while the sockets are being closed.
        let mut tries = 0;
        loop {
            let late = Client::connect(protocol, serving.address, serving.certificate());
            let late = tokio::time::timeout(std::time::Duration::from_secs(3), late).await;
            if !matches!(late, Ok(Ok(_))) {
                break;
            }
            tries += 1;
            assert!(tries < 10, "{protocol}: new connections are taken");
        }
        let content = within(response.into_body().collect())
            .await
            .expect("finished");
        assert_eq!(content.to_bytes().len(), 30_000_000, "{protocol}");
        let drained = serving.next_event();
        assert_eq!(drained["event"], "drained", "{drained}");
        assert_eq!(drained["requests_finished"], 1, "{protocol}: {drained}");
        assert_eq!(drained["requests_cut"], 0, "{protocol}: {drained}");
        serving.ended();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadline_and_second_signal_cut() {
    let folder = Folder::new();
    folder.file("large", &"x".repeat(30_000_000));
    for (timeout, signals) in [("0.5", 1), ("3600", 2)] {
        let mut serving = start(&folder, &["--no-compress", "--drain-timeout", timeout]);
        let mut client = serving.client(Protocol::Http2).await;
        let asked = request(Method::GET, "/large", &[], "");
        let _unread = within(client.begin(asked)).await.expect("an answer");
        for _ in 0..signals {
            serving.signal(Signal::TERM);
            // Signals that follow at once are one.
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        assert_eq!(serving.next_event()["event"], "draining");
        let drained = serving.next_event();
        assert_eq!(drained["requests_cut"], 1, "{timeout}: {drained}");
        serving.ended();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sighup_reloads_the_certificate() {
    let folder = Folder::new();
    folder.file("index.html", "home");
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    let (old, new) = (certificate(2100), certificate(2101));
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--json",
        "--cert",
        &old.cert,
        "--key",
        &old.key,
        &path,
    ];
    let mut serving = Serving::run(&arguments, Folder::new());
    let first = serving.announced["certificate"]["sha256"].clone();
    std::fs::copy(&new.key, &old.key).expect("ours");
    serving.signal(Signal::HUP);
    let event = serving.next_event();
    assert_eq!(event["event"], "certificate_kept", "{event} after {first}");
    std::fs::copy(&new.cert, &old.cert).expect("ours");
    serving.signal(Signal::HUP);
    let replaced = loop {
        let event = serving.next_event();
        if event["event"] != "certificate_kept" {
            break event;
        }
    };
    assert_eq!(replaced["event"], "certificate_replaced");
    let identity = courser::Identity::from_pem_files(&new.cert, &new.key).expect("readable");
    for protocol in Protocol::ALL {
        let client = Client::connect(protocol, serving.address, identity.certificate());
        let mut client = within(client).await.expect("the new certificate");
        assert_eq!(client.get("/", &[]).await.text(), "home", "{protocol}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_logged() {
    let folder = Folder::new();
    folder.file("a.txt", "12345");
    let logs = Folder::new();
    let log = logs.path().join("access.log");
    let log_text = log.to_str().expect("UTF-8");
    for format in ["common", "combined", "json"] {
        let flag = format!("--access-log={format}");
        let mut serving = start(&folder, &[&flag, "--access-log-file", log_text]);
        let mut client = serving.client(Protocol::Http3).await;
        let fields = [("user-agent", "te\"st"), ("referer", "https://x/")];
        assert_eq!(client.get("/a.txt?q='1'", &fields).await.status, 200);
        drop(client);
        serving.signal(Signal::TERM);
        while serving.next_event()["event"] != "drained" {}
        serving.ended();
        let text = std::fs::read_to_string(&log).expect("written");
        std::fs::remove_file(&log).expect("ours");
        assert_eq!(text.lines().count(), 1, "{text}");
        let line = text.trim_end();
        if format == "json" {
            let line: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(
                (&line["uri"], &line["status"]),
                (&"/a.txt?q='1'".into(), &200.into())
            );
            assert_eq!(
                (&line["bytes"], &line["protocol"]),
                (&5.into(), &"HTTP/3.0".into())
            );
            assert_eq!(line["complete"], true, "{line}");
        } else {
            let tail = "\"GET /a.txt?q='1' HTTP/3.0\" 200 5";
            assert!(line.starts_with("127.0.0.1 - - ["), "{line}");
            assert!(line.contains(tail), "{line}");
            let has_agent = line.ends_with("\"https://x/\" \"te\\\"st\"");
            assert_eq!(has_agent, format == "combined", "{line}");
        }
    }
}

/// Plain HTTP, as a probe of a load balancer asks.
fn admin(serving: &Serving, path: &str) -> (u16, String) {
    let url = serving.announced["admin"].as_str().expect("an address");
    let authority = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(authority).expect("listens");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
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
async fn admin_tells_health_metrics_and_connections() {
    let folder = Folder::new();
    folder.file("a.txt", "12345");
    let serving = start(
        &folder,
        &["--admin", "127.0.0.1:0", "--drain-delay", "3600"],
    );
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
        .expect("there");
    assert!(quic["quic"]["rtt_ms"].as_f64() > Some(0.0), "{quic}");
    assert!(
        quic["quic"]["congestion_window"].as_u64() > Some(0),
        "{quic}"
    );
    assert!(admin(&serving, "/").1.contains("fetch(\"/status\""));
    serving.signal(Signal::TERM);
    within(async {
        while admin(&serving, "/ready").0 != 503 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(admin(&serving, "/health").0, 200);
}

#[test]
fn mistakes_are_told_in_one_line() {
    let said = refusal(&["serve", "/no/such/folder"]);
    assert!(said.contains("/no/such/folder"), "{said}");
    let said = refusal(&["serve", "--proxy", "localhost:80"]);
    assert!(said.contains("http://HOST[:PORT]"), "{said}");
    let said = refusal(&["serve", "--cert", "x.pem"]);
    assert!(said.contains("--key"), "{said}");
    let said = refusal(&["serve", "--acme"]);
    assert!(said.contains("--domain"), "{said}");
    let said = refusal(&["serve", ".", "--admin", "9443"]);
    assert!(said.contains("127.0.0.1:9443"), "{said}");
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound").to_string();
    let said = refusal(&["serve", ".", "--listen", &address]);
    assert!(
        said.contains("UDP") && said.contains("taken") && said.contains("--listen"),
        "{said}"
    );
}
