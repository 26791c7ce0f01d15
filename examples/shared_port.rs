//! QUIC and STUN on one UDP port, distinguished by the first byte (RFC 9443).
//! `cargo run -p courser --example shared_port`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use courser::runtime::{Ecn, Received, Transmit, UdpSocket};
use courser::{ClientConfig, DatagramProtocol, Endpoint, Identity, ServerConfig};
use tokio::io::ReadBuf;
use tokio::net::UdpSocket as Port;
use tokio::sync::mpsc;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A UDP socket from which QUIC is read. Datagrams of STUN are passed to the agent.
#[derive(Debug)]
struct SharedPort {
    port: Arc<Port>,
    stun: mpsc::Sender<(SocketAddr, Vec<u8>)>,
}

impl UdpSocket for SharedPort {
    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Received>> {
        let mut datagram = ReadBuf::new(buffer);
        let peer = ready!(self.port.poll_recv_from(cx, &mut datagram))?;
        let first = datagram.filled().first().copied().unwrap_or_default();
        let is_quic = match DatagramProtocol::of_first_byte(first) {
            // No TURN server is in use here, so that these are short headers.
            DatagramProtocol::Quic | DatagramProtocol::TurnChannelOrQuic => true,
            DatagramProtocol::Stun => {
                let _ = self.stun.try_send((peer, datagram.filled().to_vec()));
                false
            }
            _ => false,
        };
        let len = datagram.filled().len();
        Poll::Ready(Ok(Received {
            // An empty datagram is dropped.
            len: if is_quic { len } else { 0 },
            segment_size: len.max(1),
            peer,
            local: None,
            ecn: Ecn::NotEct,
            truncated: false,
        }))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<usize> {
        self.port
            .try_send_to(transmit.contents, transmit.destination)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.port.poll_send_ready(cx)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.port.local_addr()
    }
}

#[tokio::main]
async fn main() -> Result {
    let port = Arc::new(Port::bind("127.0.0.1:0").await?);
    let (address, (stun, mut agent)) = (port.local_addr()?, mpsc::channel(100));
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn(["demo"]);
    let shared = SharedPort {
        port: port.clone(),
        stun,
    };
    let server = Endpoint::builder().server(config).transport(shared)?;

    let other = Port::bind("127.0.0.1:0").await?;
    other.send_to(&[0x00, 0x01, 0x00, 0x00], address).await?;
    let (peer, request) = agent.recv().await.ok_or("no request")?;
    println!("STUN: {} bytes from {peer}", request.len());
    port.send_to(&[0x01, 0x01, 0x00, 0x00], peer).await?;

    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn(["demo"]);
    let connecting = client.connect_with(config, address, "localhost")?;
    let accepting = async { server.accept().await.expect("open").await };
    let (connection, _) = tokio::try_join!(connecting, accepting)?;
    println!("QUIC: connected to {}", connection.remote_address());
    Ok(())
}
