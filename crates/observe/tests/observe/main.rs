//! Tests of spans and metrics with connections over loopback.

#![expect(clippy::unwrap_used, reason = "tests")]

mod metrics;
mod spans;

use std::net::SocketAddr;
use std::sync::Arc;

use courser_quic::telemetry::SinkFactory;
use courser_quic::{ClientConfig, Connection, Endpoint, Identity, ServerConfig};

/// A server and a client with one connection.
struct Pair {
    server: Endpoint,
    client: Endpoint,
    accepted: Connection,
    connected: Connection,
}

impl Pair {
    async fn connect(sinks: &Arc<dyn SinkFactory>) -> Self {
        let identity = Identity::dev().unwrap();
        let config = ServerConfig::with_identity(&identity).unwrap();
        let config = config.alpn(["test"]).sinks(Arc::clone(sinks));
        let server = Endpoint::server(config, loopback()).unwrap();
        let client = Endpoint::client(loopback()).unwrap();
        let config = ClientConfig::with_roots([identity.certificate()]).unwrap();
        let config = config.alpn(["test"]).sinks(Arc::clone(sinks));
        let address = server.local_addr().unwrap();
        let connecting = client.connect_with(config, address, "localhost").unwrap();
        let (connected, accepted) = tokio::join!(connecting, async {
            server.accept().await.unwrap().await.unwrap()
        });
        Self {
            server,
            client,
            accepted,
            connected: connected.unwrap(),
        }
    }

    /// Sends a request and a response over a stream, and closes the connection with code 7.
    async fn exchange(self) -> (Endpoint, Endpoint) {
        let (mut send, mut receive) = self.connected.open_bi().await.unwrap();
        send.write_all(b"request").await.unwrap();
        send.finish().unwrap();
        let (mut answer, mut question) = self.accepted.accept_bi().await.unwrap();
        assert_eq!(question.read_to_end(100).await.unwrap(), b"request");
        answer.write_all(&[0; 3000]).await.unwrap();
        answer.finish().unwrap();
        assert_eq!(receive.read_to_end(10_000).await.unwrap().len(), 3000);
        assert_eq!(send.stopped().await.unwrap(), None);
        self.connected
            .close(7_u32.into(), b"done\nadmin: logged in");
        self.accepted.closed().await;
        drop((
            self.accepted,
            self.connected,
            send,
            receive,
            answer,
            question,
        ));
        self.client.wait_idle().await;
        self.server.wait_idle().await;
        (self.client, self.server)
    }
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}
