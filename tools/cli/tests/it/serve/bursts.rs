//! A server returns its memory to the system after a burst of clients.

use std::sync::Arc;
use std::time::Duration;

use courser::{ClientConfig, Endpoint, TransportConfig, h3};
use futures_util::future::try_join_all;

use super::exhausted::resident;
use super::running::start;
use super::within;
use crate::common::Folder;

/// Enough clients for the server to release memory afterwards.
const CLIENTS: usize = 800;

/// The allocator of glibc keeps the memory unless the server trims it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_of_a_burst_of_clients_returns_to_the_system() {
    let folder = Folder::new();
    let serving = start(&folder, &["--no-tcp"]);
    let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).expect("a port");
    let config = ClientConfig::with_roots([serving.certificate()]).expect("a certificate");
    let config = config.alpn([h3::ALPN]);
    let connect = || {
        let connecting = endpoint.connect_with(config.clone(), serving.address, "localhost");
        connecting.expect("a name")
    };
    // A busy machine may take longer than the idle timeout.
    let transport = TransportConfig {
        keep_alive_interval: Some(Duration::from_secs(5)),
        ..TransportConfig::default()
    };
    let patient = config.clone().transport_config(Arc::new(transport));
    let first = endpoint.connect_with(patient, serving.address, "localhost");
    let first = within(first.expect("a name")).await.expect("a server");
    let before = resident(&serving);
    let clients = within(try_join_all((1..CLIENTS).map(|_| connect()))).await;
    let clients = clients.expect("a server");
    let full = resident(&serving).saturating_sub(before);
    assert!(full > 8 << 10, "{full} KiB");
    // The server checks the number of clients every 5 s.
    tokio::time::sleep(Duration::from_secs(6)).await;
    for client in clients {
        client.close(0u32.into(), b"");
    }
    let kept = within(async {
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let kept = resident(&serving).saturating_sub(before);
            if kept < full / 2 {
                break kept;
            }
        }
    });
    let kept = kept.await;
    println!("{CLIENTS} clients: {full} KiB, {kept} KiB afterwards");
    assert_eq!(first.close_reason(), None);
}
