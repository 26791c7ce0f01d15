//! gRPC's interoperability tests over each version of HTTP.

use courser_client::HttpVersion;
use courser_server::Protocol;

use super::cases::CASES;
use super::common::{start, to, until, within};

async fn all_cases(version: HttpVersion, protocol: Protocol) {
    let server = start();
    let channel = to(&server.uri())
        .version(version)
        .build()
        .expect("valid settings");
    for (name, case) in CASES {
        println!("{name}");
        within(case(channel.clone())).await;
    }
    // Cancelled calls have ended at the server too.
    until(|| server.test.open() == 0).await;
    let stats = server.handle.stats();
    let requests: u64 = Protocol::ALL.iter().map(|it| stats.of(*it).requests).sum();
    assert_eq!(
        stats.of(protocol).requests,
        requests,
        "all over one protocol"
    );
    assert!(requests > 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_cases_over_http3() {
    all_cases(HttpVersion::Http3Only, Protocol::Http3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_cases_over_http2() {
    all_cases(HttpVersion::Http2PriorKnowledge, Protocol::Http2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_cases_over_what_is_there_first() {
    all_cases(HttpVersion::Http3Or2, Protocol::Http3).await;
}
