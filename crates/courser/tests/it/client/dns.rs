//! Names and HTTPS records, from a DNS server in this process.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use courser::Client;
use courser::client::{ClientBuilder, DnsResolver, Proxy, Resolve as _};
use http::{Request, Response, StatusCode, Version, header};
use http_body_util::BodyExt as _;
use tokio::net::UdpSocket;

use super::server::{Content, Protocols, Server, echo, full, service};
use super::{timing, within};

const A: u16 = 1;
const AAAA: u16 = 28;
const HTTPS: u16 = 65;

/// The answer to a query for a name and a type, and its delay.
type Zone = Arc<dyn Fn(&str, u16) -> Option<Vec<Vec<u8>>> + Send + Sync>;

/// Starts a DNS server with this zone. `None` means no answer at all.
async fn name_server(zone: Zone) -> (SocketAddr, Arc<Mutex<Vec<(String, u16)>>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    let address = socket.local_addr().expect("bound");
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    crate::common::spawn(async move {
        let mut query = [0; 1500];
        while let Ok((len, from)) = socket.recv_from(&mut query).await {
            let Some((name, kind, end)) = question(&query[..len]) else {
                continue;
            };
            log.lock().expect("no panic").push((name.clone(), kind));
            if let Some(records) = zone(&name, kind) {
                let answer = answer(&query[..end], kind, &records);
                // The client may be gone.
                let _ = socket.send_to(&answer, from).await;
            }
        }
    });
    (address, asked)
}

/// Returns the name, the type, and the end of the question.
fn question(query: &[u8]) -> Option<(String, u16, usize)> {
    let (mut at, mut name) = (12, String::new());
    loop {
        let len = usize::from(*query.get(at)?);
        at += 1;
        if len == 0 {
            break;
        }
        let label = std::str::from_utf8(query.get(at..at + len)?).ok()?;
        name.push_str(&label.to_ascii_lowercase());
        name.push('.');
        at += len;
    }
    let kind = u16::from_be_bytes([*query.get(at)?, *query.get(at + 1)?]);
    Some((name, kind, at + 4))
}

fn answer(question: &[u8], kind: u16, records: &[Vec<u8>]) -> Vec<u8> {
    let mut answer = question.to_vec();
    answer[2..4].copy_from_slice(&[0x81, 0x80]);
    let count = u16::try_from(records.len()).expect("fits").to_be_bytes();
    answer[4..12].copy_from_slice(&[0, 1, count[0], count[1], 0, 0, 0, 0]);
    for record in records {
        // The name of the question, type, class, 60 s.
        answer.extend([0xc0, 12]);
        answer.extend(kind.to_be_bytes());
        answer.extend([0, 1, 0, 0, 0, 60]);
        answer.extend(u16::try_from(record.len()).expect("fits").to_be_bytes());
        answer.extend(record);
    }
    answer
}

/// Encodes an HTTPS record of the origin itself, with these parameters.
fn https(params: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut record = vec![0, 1, 0];
    for (key, value) in params {
        record.extend(key.to_be_bytes());
        record.extend(u16::try_from(value.len()).expect("fits").to_be_bytes());
        record.extend(value);
    }
    record
}

fn alpn(names: &[&str]) -> (u16, Vec<u8>) {
    let mut value = Vec::new();
    for name in names {
        value.push(u8::try_from(name.len()).expect("fits"));
        value.extend(name.as_bytes());
    }
    (1, value)
}

fn builder(server: &Server, name_server: SocketAddr) -> ClientBuilder {
    Client::builder()
        .platform_roots(false)
        .root(server.identity.certificate())
        .proxy(Proxy::Direct)
        .resolver(DnsResolver::new([name_server]).expect("a resolver"))
}

fn url(server: &Server) -> String {
    format!("https://example.test:{}/", server.address.port())
}

fn here() -> Vec<Vec<u8>> {
    vec![vec![127, 0, 0, 1]]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn https_record_enables_http3_for_the_first_request() {
    let server = Server::start(Protocols::Both, echo()).await;
    let zone: Zone = Arc::new(|_, kind| {
        let records = match kind {
            A => here(),
            HTTPS => vec![https(&[alpn(&["h2", "h3"])])],
            _ => Vec::new(),
        };
        Some(records)
    });
    let (address, asked) = name_server(zone).await;
    let client = builder(&server, address).build().expect("a client");
    let response = within(client.get(url(&server))).await.expect("answered");
    assert_eq!(response.version(), Version::HTTP_3);
    let asked = asked.lock().expect("no panic").clone();
    // RFC 9460 §9.1: other ports have names of their own.
    let name = format!("_{}._https.example.test.", server.address.port());
    assert!(asked.contains(&(name, HTTPS)), "{asked:?}");
    assert!(
        asked.contains(&("example.test.".to_owned(), AAAA)),
        "{asked:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_and_ports_of_records_are_followed() {
    let quic = Server::start(Protocols::Quic, echo()).await;
    let server = Server::start(Protocols::Tcp, echo()).await;
    let port = quic.address.port().to_be_bytes().to_vec();
    let zone: Zone = Arc::new(move |_, kind| {
        let records = match kind {
            A => here(),
            HTTPS => vec![https(&[
                alpn(&["h3"]),
                (3, port.clone()),
                (4, vec![127, 0, 0, 1]),
            ])],
            _ => Vec::new(),
        };
        Some(records)
    });
    let (address, _) = name_server(zone).await;
    let client = builder(&server, address)
        .root(quic.identity.certificate())
        .build()
        .expect("a client");
    let response = within(client.get(url(&server))).await.expect("answered");
    assert_eq!(response.version(), Version::HTTP_3);
    assert_eq!(timing(&response).remote, Some(quic.address));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_records_do_not_delay_requests() {
    let server = Server::start(Protocols::Both, echo()).await;
    // HTTPS and AAAA queries are never answered.
    let zone: Zone = Arc::new(|_, kind| (kind == A).then(here));
    let (address, _) = name_server(zone).await;
    let client = builder(&server, address).build().expect("a client");
    let began = Instant::now();
    let response = within(client.get(url(&server))).await.expect("answered");
    assert_eq!(response.version(), Version::HTTP_2);
    let took = began.elapsed();
    // Far less than the time for HTTPS records (limit K73).
    assert!(took < Duration::from_secs(4), "{took:?}");
    let looked_up = timing(&response).name_lookup.expect("looked up");
    assert!(
        looked_up >= Duration::from_millis(50),
        "the AAAA answer was not awaited: {looked_up:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn name_without_addresses_is_an_error_of_names() {
    let server = Server::start(Protocols::Both, echo()).await;
    let zone: Zone = Arc::new(|_, _| Some(Vec::new()));
    let (address, _) = name_server(zone).await;
    let client = builder(&server, address).build().expect("a client");
    let error = within(client.get(url(&server)))
        .await
        .expect_err("no address");
    assert!(error.is_dns(), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_records_are_ignored() {
    let zone: Zone = Arc::new(|_, kind| {
        let records = match kind {
            A => here(),
            // A parameter longer than the record.
            HTTPS => vec![vec![0, 1, 0, 0, 1, 0, 200, 1]],
            _ => Vec::new(),
        };
        Some(records)
    });
    let (address, _) = name_server(zone).await;
    let resolver = DnsResolver::new([address]).expect("a resolver");
    let services = within(resolver.services("example.test", 443)).await;
    assert!(services.map_or(true, |services| services.is_empty()));
}

/// Starts a DNS server over HTTPS. `answer` returns the response to the bytes of a query.
async fn dns_over_https(
    answer: impl Fn(&[u8]) -> Vec<u8> + Copy + Send + Sync + 'static,
) -> Server {
    let respond = move |request: Request<Content>| async move {
        let kind = request.headers().get(header::CONTENT_TYPE).cloned();
        let query = request.into_body().collect().await.expect("a query");
        let mut response = Response::new(full(answer(&query.to_bytes())));
        if kind.is_none_or(|kind| kind != "application/dns-message") {
            *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        }
        response
    };
    Server::start(Protocols::Both, service(respond)).await
}

fn over_https(server: &Server) -> DnsResolver {
    let client = super::client(server);
    let url = format!("https://localhost:{}/dns-query", server.address.port());
    DnsResolver::over_https(client, &url).expect("a resolver")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_and_services_are_found_over_https() {
    let names = dns_over_https(|query| {
        assert_eq!(
            query[..2],
            [0, 0],
            "the ID, so that responses can be cached"
        );
        let (name, kind, end) = question(query).expect("a question");
        let records = match kind {
            A => here(),
            HTTPS if name.starts_with('_') => vec![https(&[alpn(&["h3"])])],
            _ => Vec::new(),
        };
        answer(&query[..end], kind, &records)
    })
    .await;
    let server = Server::start(Protocols::Both, echo()).await;
    let client = Client::builder()
        .platform_roots(false)
        .root(server.identity.certificate())
        .proxy(Proxy::Direct)
        .resolver(over_https(&names))
        .build()
        .expect("a client");
    let response = within(client.get(url(&server))).await.expect("answered");
    assert_eq!(response.version(), Version::HTTP_3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_over_https_are_errors_of_names() {
    for refuse in [
        // NXDOMAIN, SERVFAIL, and text.
        |query: &[u8]| [&query[..2], &[0x81, 0x83], &query[4..]].concat(),
        |query: &[u8]| [&query[..2], &[0x81, 0x82], &query[4..]].concat(),
        |_: &[u8]| b"no message".to_vec(),
    ] {
        let names = dns_over_https(refuse).await;
        let client = Client::builder()
            .proxy(Proxy::Direct)
            .resolver(over_https(&names))
            .build()
            .expect("a client");
        let error = within(client.get("https://example.test/")).await;
        assert!(error.expect_err("no address").is_dns());
    }
    let plain = DnsResolver::over_https(Client::new().expect("a client"), "http://a.test/");
    let error = plain.expect_err("without TLS").to_string();
    assert!(error.contains("https://"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_over_https_are_limited() {
    for (size, is_accepted) in [(65_535, true), (65_536, false)] {
        let names = match is_accepted {
            true => dns_over_https(|query| padded(query, 65_535)).await,
            false => dns_over_https(|query| padded(query, 65_536)).await,
        };
        let found = within(over_https(&names).addresses("example.test")).await;
        assert_eq!(found.is_ok(), is_accepted, "{size}: {found:?}");
    }
}

/// Answers with one address, and bytes after the message, up to a size.
fn padded(query: &[u8], size: usize) -> Vec<u8> {
    let (_, kind, end) = question(query).expect("a question");
    let records = if kind == A { here() } else { Vec::new() };
    let mut answer = answer(&query[..end], kind, &records);
    answer.resize(size, 0);
    answer
}

/// RFC 9460 §2.4.2: an alias leads to the records of its target, records beside it are ignored, and a loop ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aliases_are_followed_in_bounded_steps() {
    let alias = |target: &str| {
        let mut record = vec![0, 0];
        for label in target.split('.') {
            record.push(u8::try_from(label.len()).expect("fits"));
            record.extend(label.as_bytes());
        }
        record.push(0);
        record
    };
    let zone: Zone = Arc::new(move |name, kind| {
        let records = match (name, kind) {
            ("alias.test.", HTTPS) => vec![https(&[alpn(&["h2"])]), alias("service.test")],
            ("service.test.", HTTPS) => vec![https(&[alpn(&["h3"])])],
            ("loop.test.", HTTPS) => vec![alias("other.test")],
            ("other.test.", HTTPS) => vec![alias("loop.test")],
            _ => Vec::new(),
        };
        Some(records)
    });
    let (address, _) = name_server(zone).await;
    let resolver = DnsResolver::new([address]).expect("a resolver");
    let services = within(resolver.services("alias.test", 443)).await;
    let services = services.expect("records");
    assert_eq!(services.len(), 1, "{services:?}");
    assert!(services[0].offers_http3(), "{services:?}");
    assert_eq!(services[0].target.as_deref(), Some("service.test"));
    let services = within(resolver.services("loop.test", 443)).await;
    assert!(services.expect("no records").is_empty());
}
