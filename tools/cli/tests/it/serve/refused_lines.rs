//! Lines of the access log for requests that the server answers itself.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use courser::server::Protocol;
use serde_json::Value;

use super::client::tls;
use super::running::{admin, start};
use super::serving::Serving;
use super::within;
use crate::common::Folder;

/// Sends bytes without TLS and returns the response.
fn plain(serving: &Serving, request: &str) -> String {
    let mut stream = TcpStream::connect(serving.address).expect("a server");
    stream.write_all(request.as_bytes()).expect("open");
    let mut response = String::new();
    let _ = stream.read_to_string(&mut response);
    response
}

/// Sends bytes over TLS as HTTP/1.1 and returns the response.
async fn over_http1(serving: &Serving, request: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let connected = tls(serving.address, serving.certificate(), b"http/1.1");
    let mut stream = within(connected).await.expect("a server");
    within(stream.write_all(request.as_bytes()))
        .await
        .expect("open");
    let mut response = Vec::new();
    let _ = within(stream.read_to_end(&mut response)).await;
    String::from_utf8_lossy(&response).into_owned()
}

/// Sends a request with too many fields and returns the status.
async fn with_many_fields(serving: &Serving, protocol: Protocol) -> u16 {
    let mut fields = vec![("x", "1"); 20];
    fields.push(("user-agent", "probe"));
    let mut client = serving.client(protocol).await;
    client.get("/there", &fields).await.status.as_u16()
}

/// Sends a refused request of each kind, and returns the lines of the log.
async fn lines(format: &str) -> (Vec<String>, String) {
    let folder = Folder::new();
    folder.file("index.html", "home");
    let log = folder.path().join("log");
    let log_text = log.to_str().expect("UTF-8");
    let flag = format!("--access-log={format}");
    let arguments = [
        &*flag,
        "--access-log-file",
        log_text,
        "--admin",
        "127.0.0.1:0",
        "--max-header-fields",
        "15",
    ];
    let serving = start(&folder, &arguments);
    let response = over_http1(&serving, "NON\x1bSENSE \"\r\n\r\n").await;
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    // The line is written when the connection has ended, and the order is that of the requests.
    wait_for_lines(&log, 1).await;
    let response = plain(&serving, "GET /plain HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    let nameless =
        "GET /nameless?a HTTP/1.1\r\nreferer: r\r\nuser-agent: probe\r\nconnection: close\r\n\r\n";
    let response = over_http1(&serving, nameless).await;
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    for protocol in [Protocol::Http2, Protocol::Http3] {
        assert_eq!(
            with_many_fields(&serving, protocol).await,
            431,
            "{protocol}"
        );
    }
    let text = wait_for_lines(&log, 5).await;
    let (_, metrics) = admin(&serving, "/metrics");
    (text.lines().map(str::to_owned).collect(), metrics)
}

/// Waits until the log has this many lines, and returns them.
async fn wait_for_lines(log: &Path, count: usize) -> String {
    let lines = async {
        loop {
            let text = std::fs::read_to_string(log).expect("our file");
            if text.lines().count() >= count {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(lines).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_requests_have_lines_with_their_cause() {
    let (lines, metrics) = lines("combined").await;
    let expected = [
        r#""NON\x1bSENSE \"" 400 0 "-" "-" invalid_request"#,
        r#""GET /plain HTTP/1.1" 400 0 "-" "-" plain_http"#,
        r#""GET /nameless?a HTTP/1.1" 400 0 "r" "probe" invalid_request"#,
        r#""GET /there HTTP/2.0" 431 0 "-" "probe" fields_too_large"#,
        r#""-" 431 0 "-" "-" fields_too_large"#,
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with("127.0.0.1 - - ["), "{line}");
        assert!(line.ends_with(expected), "{line} instead of {expected}");
    }
    for count in [
        "courser_http_requests_refused_total{cause=\"plain_http\"} 1",
        "courser_http_requests_refused_total{cause=\"invalid_request\"} 2",
        "courser_http_requests_refused_total{cause=\"fields_too_large\"} 2",
    ] {
        assert!(metrics.contains(count), "{count} is not in {metrics}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_requests_have_lines_of_json() {
    let (lines, _) = lines("json").await;
    let lines: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let first = &lines[0];
    assert_eq!(first["first_line"], "NON\x1bSENSE \"");
    assert!(
        first["method"].is_null() && first["uri"].is_null(),
        "{first}"
    );
    assert_eq!(
        (&first["status"], &first["cause"]),
        (&400.into(), &"invalid_request".into())
    );
    assert_eq!(first["tls_version"], "TLSv1.3");
    assert!(lines[1]["tls_version"].is_null(), "{}", lines[1]);
    assert_eq!(lines[2]["uri"], "/nameless?a");
    assert_eq!(lines[3]["uri"], "/there");
    assert!(lines[4]["uri"].is_null(), "{}", lines[4]);
    let protocols = lines.iter().map(|line| line["protocol"].as_str());
    let expected = ["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/2.0", "HTTP/3.0"];
    assert!(protocols.eq(expected.map(Some)), "{lines:#?}");
    for line in &lines[3..] {
        assert_eq!(line["cause"], "fields_too_large");
    }
    assert!(lines.iter().all(|line| line["request_id"].is_string()));
}
