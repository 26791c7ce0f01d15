//! Malformed HTTP/3 requests through `--proxy`.

use courser::server::Protocol;
use courser::{ClientConfig, Connection, ConnectionError, Endpoint, SendStream, h3};

use super::proxy;
use super::serving::Serving;
use super::within;

/// A control stream with empty SETTINGS (RFC 9114 §6.2.1).
const CONTROL: &[u8] = &[0x00, 0x04, 0x00];
/// `POST https://localhost/echo` as entries of QPACK's static table and literals (RFC 9204 appendix A):
/// method 20, scheme 23, names 0 and 1.
const POST: &[u8] = b"\x00\x00\xd4\xd7\x50\x09localhost\x51\x05/echo";
/// `content-length: 5`, name 4 of that table.
const FIVE: &[u8] = b"\x54\x015";
const DATA: &[u8] = b"\x00\x04four";
/// HEADERS with `x: 1`.
const TRAILERS: &[u8] = b"\x01\x06\x00\x00\x21x\x011";

/// `host: other`.
const OTHER_HOST: &[u8] = b"\x24host\x05other";

/// Returns HEADERS with these fields (RFC 9114 §7.2.2).
fn headers(fields: &[&[u8]]) -> Vec<u8> {
    let section = fields.concat();
    let length = u8::try_from(section.len()).expect("below 64");
    [&[0x01, length][..], &section].concat()
}

/// Opens a connection and its control stream, which has to stay open.
async fn connect(serving: &Serving) -> (Endpoint, Connection, SendStream) {
    let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).expect("a socket");
    let config = ClientConfig::with_roots([serving.certificate()]).expect("a root");
    let config = config.alpn([h3::ALPN]);
    let connecting = endpoint.connect_with(config, serving.address, "localhost");
    let connection = within(connecting.expect("possible"))
        .await
        .expect("a server");
    let mut control = connection.open_uni().await.expect("open");
    control.write_all(CONTROL).await.expect("open");
    (endpoint, connection, control)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_content_length_is_a_bad_request() {
    let serving = proxy::start("http", &[]).await;
    let (_endpoint, connection, _control) = connect(&serving).await;
    let (mut send, mut receive) = connection.open_bi().await.expect("open");
    let request = [&headers(&[POST, FIVE]), DATA].concat();
    send.write_all(&request).await.expect("open");
    send.finish().expect("open");
    let answer = within(receive.read_to_end(1000)).await.expect("an answer");
    assert_eq!(answer[0], 0x01, "no HEADERS: {answer:x?}");
    // :status 400 is entry 67.
    assert_eq!(answer[2..6], [0x00, 0x00, 0xff, 0x04], "{answer:x?}");
}

/// RFC 9114 §4.3.1 and §4.1.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_with_two_hosts_reset_their_stream() {
    let serving = proxy::start("http", &[]).await;
    let (_endpoint, connection, _control) = connect(&serving).await;
    let (mut send, mut receive) = connection.open_bi().await.expect("open");
    send.write_all(&headers(&[POST, OTHER_HOST]))
        .await
        .expect("open");
    let answer = within(receive.read_to_end(1000)).await.expect("an answer");
    // :status 400 is entry 67.
    assert_eq!(answer[2..6], [0x00, 0x00, 0xff, 0x04], "{answer:x?}");
    // H3_MESSAGE_ERROR.
    let code = within(send.stopped()).await.expect("open");
    assert_eq!(code.map(u64::from), Some(0x10e));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_after_trailers_close_the_connection() {
    for last in [DATA, TRAILERS] {
        let serving = proxy::start("http", &[]).await;
        let (_endpoint, connection, _control) = connect(&serving).await;
        let (mut send, _receive) = connection.open_bi().await.expect("open");
        let request = [&headers(&[POST]), DATA, TRAILERS, last].concat();
        send.write_all(&request).await.expect("open");
        let reason = within(connection.closed()).await;
        // H3_FRAME_UNEXPECTED, RFC 9114 §4.1.
        let is_expected =
            matches!(reason, ConnectionError::ApplicationClosed { code, .. } if code.0 == 0x105);
        assert!(is_expected, "{reason}");
        // The server still serves other requests.
        let answer = serving.client(Protocol::Http3).await.get("/", &[]).await;
        assert_eq!(answer.status, 200);
    }
}
