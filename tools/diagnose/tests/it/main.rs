//! Tests the probe against servers in this process, over loopback.

use courser::{Endpoint, Incoming, RetryPolicy, ServerConfig};
use courser_diagnose::probe::{Arguments, Facts, MAX_HANDSHAKES, run};

/// Answers each request of a client with a few bytes.
async fn answer(incoming: Incoming) -> Option<()> {
    let connection = incoming.await.ok()?;
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        receive.read_to_end(1000).await.ok()?;
        send.write_all(b"hello").await.ok()?;
        send.finish().ok()?;
    }
    Some(())
}

/// Starts a server of HTTP/0.9, and examines it.
async fn examine(config: ServerConfig) -> Facts {
    let config = config.alpn(["hq-interop"]);
    let server = Endpoint::server(config, "127.0.0.1:0".parse().expect("an address"));
    let server = server.expect("a server");
    let address = server.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            tokio::spawn(answer(incoming));
        }
    });
    let arguments = Arguments {
        host: address.to_string(),
        path: "/".to_owned(),
        alpn: vec!["h3".to_owned(), "hq-interop".to_owned()],
        server_name: Some("localhost".to_owned()),
        ca: None,
        timeout: std::time::Duration::from_secs(5),
        no_tcp: true,
        json: false,
        html: None,
    };
    let mut steps = 0;
    let report = run(&arguments, |_| steps += 1).await.expect("an address");
    assert!(
        report.facts.handshakes <= MAX_HANDSHAKES && steps >= 5,
        "{report}"
    );
    report.facts
}

fn server() -> ServerConfig {
    ServerConfig::dev().expect("a certificate")
}

#[tokio::test]
async fn server_of_another_protocol_is_examined() {
    let facts = examine(server()).await;
    let first = facts.first.expect("a handshake");
    assert_eq!(
        (first.protocol.as_str(), first.retry),
        ("hq-interop", false)
    );
    let rebinding = first.rebinding.expect("tried");
    assert!(rebinding.survived && rebinding.validated);
    let resumed = facts.resumed.expect("tried").expect("resumed");
    assert!(
        resumed.resumed && resumed.key_update == Some(true),
        "{resumed:?}"
    );
    assert!(
        resumed.migration.is_some_and(|it| it.survived),
        "{resumed:?}"
    );
    assert_eq!(
        facts.unknown_alpn,
        Some(courser_diagnose::probe::Refusal::Code(0x178))
    );
}

#[tokio::test]
async fn retry_is_reported() {
    let facts = examine(server().retry(RetryPolicy::Always)).await;
    let first = facts.first.expect("a handshake");
    assert!(first.retry && !first.exceeds_three_times);
}

#[tokio::test]
async fn migration_is_not_tried_if_the_server_forbids_it() {
    let facts = examine(server().migration(false)).await;
    let first = facts.first.expect("a handshake");
    assert!(first.parameters.expect("known").disable_active_migration);
    assert!(
        first.rebinding.expect("tried").survived,
        "NATs rebind nevertheless"
    );
    assert_eq!(
        facts.resumed.expect("tried").expect("resumed").migration,
        None
    );
}

#[tokio::test]
async fn versions_of_a_server_are_listed() {
    let facts =
        examine(server().versions([courser::QuicVersion::V2, courser::QuicVersion::V1])).await;
    let versions = facts.versions.expect("an answer");
    assert!(
        versions.contains(&1) && versions.contains(&0x6b33_43cf),
        "{versions:?}"
    );
    assert_eq!(facts.version2, Some(Ok(0x6b33_43cf)));
}
