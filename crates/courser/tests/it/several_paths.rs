//! Connections with several paths between real sockets. RFC 10069.

use std::net::{IpAddr, Ipv4Addr};

use courser::{Connection, Endpoint, OpenPathError, PathId, PathPreference, TransportConfig};

use crate::common::{Pair, pair_with, pattern, spawn, until, within};

fn config(max_paths: u8) -> TransportConfig {
    TransportConfig {
        max_paths,
        ..TransportConfig::default()
    }
}

/// A pair whose client can send from each address of loopback.
fn pair(max_paths: u8) -> Pair {
    let mut pair = pair_with(config(max_paths), |config| config);
    let mut client = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into()).expect("a port");
    client.set_default_client_config(pair.client_config.clone());
    pair.client = client;
    pair
}

fn local(last: u8) -> IpAddr {
    IpAddr::from([127, 0, 0, last])
}

/// Sends bytes to the server and compares what arrives.
async fn send(client: &Connection, server: &Connection, len: usize) {
    let content = pattern(5, len);
    let (mut stream, content_to_send) = (client.open_uni().await.expect("open"), content.clone());
    let writer = spawn(async move {
        stream.write_all(&content_to_send).await.expect("open");
        stream.finish().expect("not finished");
    });
    let mut stream = within(30, server.accept_uni()).await.expect("open");
    let received = within(30, stream.read_to_end(len)).await.expect("complete");
    assert!(received == content, "the content differs");
    writer.await.expect("no panic");
}

#[tokio::test]
async fn data_takes_all_paths_that_the_client_opens() {
    let pair = pair(4);
    let (client, server) = pair.connect().await;
    let mut opened = Vec::new();
    for last in [2, 3] {
        opened.push(
            within(10, client.open_path(local(last)))
                .await
                .expect("allowed"),
        );
    }
    assert_eq!(opened, [PathId::new(1), PathId::new(2)]);
    until(|| server.paths().len() == 3).await;
    send(&client, &server, 20_000_000).await;
    let paths = client.paths();
    let addresses: Vec<_> = paths
        .iter()
        .filter_map(|path| path.addresses.local)
        .collect();
    assert_eq!(addresses[addresses.len() - 2..], [local(2), local(3)]);
    assert!(
        paths
            .iter()
            .all(|path| path.is_validated && !path.is_closing)
    );
    assert!(
        paths.iter().all(|path| path.stats.delivery_rate.is_some()),
        "{paths:?}"
    );
    assert_eq!(server.remote_address().ip(), local(1));
    assert_eq!(client.close_path(PathId::ZERO), Ok(true));
    send(&client, &server, 1_000_000).await;
    until(|| server.remote_address().ip() != local(1)).await;
    let backup = client.set_path_preference(opened[0], PathPreference::Backup);
    assert_eq!(backup, Ok(true));
    send(&client, &server, 1_000_000).await;
    pair.finish().await;
}

#[tokio::test]
async fn ends_that_have_not_agreed_keep_one_path() {
    let pair = pair(1);
    let (client, server) = pair.connect().await;
    let refused = client.open_path(local(2)).await;
    assert!(
        matches!(refused, Err(OpenPathError::Refused(_))),
        "{refused:?}"
    );
    assert!(client.paths().is_empty() && server.paths().is_empty());
    send(&client, &server, 100_000).await;
    pair.finish().await;
}

#[tokio::test]
async fn address_of_another_machine_is_refused() {
    let pair = pair(4);
    let (client, _server) = pair.connect().await;
    let foreign = IpAddr::from([192, 0, 2, 77]);
    assert_eq!(client.open_path(foreign).await, Err(OpenPathError::Address));
    pair.finish().await;
}
