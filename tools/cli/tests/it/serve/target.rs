//! Requests with two hosts through `--proxy`. The server refuses them itself, and over HTTP/3 they are malformed.

use courser::server::Protocol;
use http::Method;
use http_body_util::BodyExt as _;

use super::client::{Client, request};
use super::{proxy, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_with_two_hosts_are_rejected() {
    let serving = proxy::start("http", &[]).await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        for (host, status, word) in [
            ("other.test", 400, ""),
            ("localhost:1", 400, ""),
            ("LOCALHOST", 200, "host: localhost\n"),
        ] {
            // The request target is the whole URI, also over HTTP/1.1.
            let request = request(Method::GET, "/", &[("host", host)], "");
            let response = match serving.client(protocol).await {
                Client::Http1(mut send) => within(send.send_request(request)).await,
                Client::Http2(mut send) => within(send.send_request(request)).await,
                Client::Http3(_) => panic!("not {protocol}"),
            };
            let (head, body) = response.expect("an answer").into_parts();
            let content = within(body.collect()).await.expect("content").to_bytes();
            let text = String::from_utf8_lossy(&content);
            assert_eq!(head.status, status, "{protocol} {host}: {text}");
            assert!(text.contains(word), "{protocol} {host}: {text}");
        }
    }
}
