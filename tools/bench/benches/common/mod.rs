//! A client and a server on loopback.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use courser_quic::{
    ClientConfig, Connection, Endpoint, Identity, RecvStream, SendStream, ServerConfig,
    TransportConfig,
};

/// Two endpoints. The server answers each stream with as many bytes as its first four bytes ask for.
pub struct World {
    client: Endpoint,
    server: SocketAddr,
}

impl World {
    /// Binds both endpoints, and runs the server on the runtime that this is called in.
    pub fn new() -> Self {
        let identity = Identity::dev().expect("random numbers");
        let transport = TransportConfig {
            max_bidi_streams: MAX_STREAMS,
            ..TransportConfig::default()
        };
        let config = ServerConfig::with_identity(&identity).expect("own certificate");
        let config = config.alpn(["bench"]).transport_config(transport);
        let server = Endpoint::server(config, loopback()).expect("a port");
        let address = server.local_addr().expect("bound");
        tokio::spawn(serve(server));
        let mut client = Endpoint::client(loopback()).expect("a port");
        let config = ClientConfig::with_roots([identity.certificate()]).expect("own certificate");
        client.set_default_client_config(config.alpn(["bench"]));
        Self {
            client,
            server: address,
        }
    }

    pub async fn connect(&self) -> Connection {
        let connecting = self.client.connect(self.server, "localhost");
        let connecting = connecting.expect("the configuration is right");
        connecting.await.expect("the server accepts")
    }
}

/// Sends `upload` bytes on a new stream and asks for `download` bytes, which arrive.
#[allow(dead_code, reason = "not every bench exchanges data")]
pub async fn exchange(connection: &Connection, upload: usize, download: usize) {
    let (mut send, mut receive) = connection.open_bi().await.expect("the server allows it");
    let length = u32::try_from(download).expect("below 4 GB").to_be_bytes();
    send.write_all(&length).await.expect("connected");
    send_zeros(&mut send, upload).await;
    assert_eq!(receive_all(&mut receive).await.len, download);
}

async fn serve(endpoint: Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let connection = incoming.await.expect("the client is honest");
            while let Ok((send, receive)) = connection.accept_bi().await {
                tokio::spawn(answer(send, receive));
            }
        });
    }
}

async fn answer(mut send: SendStream, mut receive: RecvStream) {
    let received = receive_all(&mut receive).await;
    send_zeros(&mut send, u32::from_be_bytes(received.first) as usize).await;
}

/// Sends so many zeros and the end.
async fn send_zeros(send: &mut SendStream, len: usize) {
    let mut left = len;
    while left > 0 {
        let chunk = Bytes::from_static(&ZEROS[..left.min(ZEROS.len())]);
        left -= chunk.len();
        send.write_chunk(chunk).await.expect("connected");
    }
    send.finish().expect("the stream is open");
}

/// The bytes of a stream.
struct Received {
    first: [u8; 4],
    len: usize,
}

async fn receive_all(receive: &mut RecvStream) -> Received {
    let (mut first, mut len) = ([0; 4], 0);
    while let Some(chunk) = receive.read_chunk(usize::MAX).await.expect("connected") {
        for (place, byte) in first.iter_mut().skip(len).zip(&chunk) {
            *place = *byte;
        }
        len += chunk.len();
    }
    Received { first, len }
}

fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
/// Streams that a client may have open: as many as a bench opens at once.
const MAX_STREAMS: u64 = 10_000;
