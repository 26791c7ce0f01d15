//! The drop of a runtime ends the driver of its endpoint (F59). All pending calls on the endpoint end with an error
//! that states this, and endpoints of other runtimes continue.

use std::fmt::Debug;
use std::net::UdpSocket;

use courser::{
    ClientConfig, ConnectError, Connection, ConnectionError, Endpoint, Identity, ReadError,
    ServerConfig, StoppedError, TransportConfig, TransportErrorCode, WriteError,
};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::common::{self, loopback, within};

fn runtime() -> Runtime {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    runtime.expect("threads")
}

/// A client on a runtime of its own, and a server that allows one stream of each kind and few
/// bytes.
struct Ends {
    theirs: Runtime,
    client: Endpoint,
    server: Endpoint,
    client_config: ClientConfig,
}

impl Ends {
    fn new() -> Self {
        let identity = Identity::dev().expect("random numbers");
        let narrow = TransportConfig {
            max_bidi_streams: 1,
            max_uni_streams: 1,
            stream_receive_window: 4096,
            stream_receive_window_max: 4096,
            ..TransportConfig::default()
        };
        let config = ServerConfig::with_identity(&identity).expect("matching key");
        let config = config.alpn(["test"]).transport_config(narrow);
        let server = Endpoint::server(config, loopback()).expect("a port");
        let theirs = runtime();
        let entered = theirs.enter();
        let mut client = Endpoint::client(loopback()).expect("a port");
        drop(entered);
        let config = ClientConfig::with_roots([identity.certificate()]).expect("a certificate");
        let client_config = config.alpn(["test"]);
        client.set_default_client_config(client_config.clone());
        Self {
            theirs,
            client,
            server,
            client_config,
        }
    }

    async fn connect(&self, from: &Endpoint) -> (Connection, Connection) {
        let address = self.server.local_addr().expect("bound");
        let connecting = from.connect(address, "localhost").expect("configured");
        let accept = async { self.server.accept().await.expect("open").await };
        let (client, server) = within(20, async { tokio::join!(connecting, accept) }).await;
        (client.expect("handshake"), server.expect("handshake"))
    }
}

/// Starts a call, and returns its error once it has ended.
fn pending<T: Send, E: Send + 'static>(
    call: impl Future<Output = Result<T, E>> + Send + 'static,
) -> JoinHandle<E> {
    common::spawn(async move {
        match call.await {
            Ok(_) => panic!("it had no reason to succeed"),
            Err(error) => error,
        }
    })
}

/// Returns the error of a call that ends.
async fn ended<E: Debug>(name: &str, call: JoinHandle<E>) -> E {
    match tokio::time::timeout(std::time::Duration::from_secs(10), call).await {
        Ok(error) => error.expect("no panic"),
        Err(_) => panic!("{name} hangs"),
    }
}

fn assert_stopped(name: &str, error: &ConnectionError) {
    let ConnectionError::TransportError(error) = error else {
        panic!("{name}: {error:?}");
    };
    assert_eq!(error.code, TransportErrorCode::INTERNAL_ERROR, "{name}");
    let text = error.to_string();
    let names_the_cause = text.contains("the endpoint has stopped") && text.contains("runtime");
    assert!(names_the_cause, "{name}: {text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pending_calls_end_when_the_runtime_of_the_endpoint_is_dropped() {
    let ends = Ends::new();
    let (client, server) = ends.connect(&ends.client).await;
    let (mut send, mut receive) = client.open_bi().await.expect("allowed");
    let mut uni = client.open_uni().await.expect("allowed");
    uni.write_all(b"all").await.expect("open");
    uni.finish().expect("open");
    // The server's application reads nothing, so it grants no credit.
    let silent = UdpSocket::bind(loopback()).expect("a port");
    let silent = silent.local_addr().expect("bound");
    let connecting = ends.client.connect(silent, "localhost").expect("a name");

    let call = |it: &Connection| it.clone();
    let (a, b, c, d) = (call(&client), call(&client), call(&client), call(&client));
    let (e, f) = (call(&client), call(&client));
    let calls = [
        ("connect", pending(connecting)),
        ("accept_uni", pending(async move { a.accept_uni().await })),
        ("accept_bi", pending(async move { b.accept_bi().await })),
        ("open_uni", pending(async move { c.open_uni().await })),
        ("open_bi", pending(async move { d.open_bi().await })),
        (
            "read_datagram",
            pending(async move { e.read_datagram().await }),
        ),
        (
            "closed",
            pending(async move { Err::<(), _>(f.closed().await) }),
        ),
    ];
    let read = pending(async move { receive.read_chunk(1).await });
    let write = pending(async move { send.write_all(&[7; 10_000_000]).await });
    let accept = ends.client.clone();
    let accept = common::spawn(async move { accept.accept().await.map(drop) });
    let idle = ends.client.clone();
    let idle = common::spawn(async move { idle.wait_idle().await });
    // The server has received all that it accepts, so the calls above are waiting now.
    let (_reply, mut begun) = within(10, server.accept_bi()).await.expect("a stream");
    let first = within(10, begun.read_chunk(1)).await;
    assert!(first.expect("open").is_some());
    for (name, call) in &calls {
        assert!(!call.is_finished(), "{name} did not wait");
    }
    assert!(!read.is_finished() && !write.is_finished() && !idle.is_finished());

    ends.theirs.shutdown_background();

    for (name, call) in calls {
        assert_stopped(name, &ended(name, call).await);
    }
    match ended("read", read).await {
        ReadError::ConnectionLost(error) => assert_stopped("read", &error),
        error => panic!("read: {error:?}"),
    }
    match ended("write", write).await {
        WriteError::ConnectionLost(error) => assert_stopped("write", &error),
        error => panic!("write: {error:?}"),
    }
    assert_eq!(ended("accept", accept).await, None);
    ended("wait_idle", idle).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn later_calls_fail_at_once_and_other_endpoints_continue() {
    let ends = Ends::new();
    let mut here = Endpoint::client(loopback()).expect("a port");
    here.set_default_client_config(ends.client_config.clone());
    let (client, _server) = ends.connect(&ends.client).await;
    let (other, other_server) = ends.connect(&here).await;
    let (mut send, mut receive) = client.open_bi().await.expect("allowed");
    ends.theirs.shutdown_background();
    assert_stopped("closed", &within(10, client.closed()).await);

    let address = ends.server.local_addr().expect("bound");
    let refused = ends.client.connect(address, "localhost").map(drop);
    assert!(
        matches!(refused, Err(ConnectError::EndpointStopping)),
        "{refused:?}"
    );
    let later = async {
        assert!(ends.client.accept().await.is_none());
        ends.client.wait_idle().await;
        assert!(client.open_bi().await.is_err());
        assert!(client.accept_uni().await.is_err());
        assert!(send.write_all(b"late").await.is_err());
        let stopped = send.stopped().await;
        assert!(
            matches!(stopped, Err(StoppedError::ConnectionLost(_))),
            "{stopped:?}"
        );
        assert!(receive.read_chunk(1).await.is_err());
        assert!(client.read_datagram().await.is_err());
        assert!(client.send_datagram_wait(b"late"[..].into()).await.is_err());
    };
    within(10, later).await;
    client.close(0u32.into(), b"");
    ends.client.close(0u32.into(), b"");

    let (mut send, _receive) = within(10, other.open_bi()).await.expect("allowed");
    send.write_all(b"hello").await.expect("open");
    send.finish().expect("open");
    let exchange = async {
        let (_, mut receive) = other_server.accept_bi().await.expect("a stream");
        receive.read_to_end(10).await
    };
    assert_eq!(within(20, exchange).await.expect("complete"), b"hello");
}
