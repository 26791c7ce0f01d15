//! QUIC without a socket: both ends of a tunnel in one process, which adds a header to each packet.
//! `cargo run -p courser --example custom_transport`.

use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::task::{Context, Poll, ready};

use courser::runtime::{Ecn, Received, Transmit, UdpSocket};
use courser::{ClientConfig, Endpoint, Identity, ServerConfig};
use tokio::sync::mpsc;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The header that a relay or a tunnel adds to each datagram.
const HEADER: &[u8] = b"TUNNEL";

/// One end of the tunnel. The addresses are names; nothing is bound to them.
#[derive(Debug)]
struct Tunnel {
    here: SocketAddr,
    there: SocketAddr,
    outgoing: mpsc::Sender<Vec<u8>>,
    incoming: Mutex<mpsc::Receiver<Vec<u8>>>,
}

impl UdpSocket for Tunnel {
    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Received>> {
        let mut incoming = self.incoming.lock().expect("no panic");
        let packet = ready!(incoming.poll_recv(cx)).ok_or(io::ErrorKind::BrokenPipe)?;
        let datagram = packet.strip_prefix(HEADER).unwrap_or_default();
        buffer[..datagram.len()].copy_from_slice(datagram);
        Poll::Ready(Ok(Received {
            len: datagram.len(),
            segment_size: datagram.len().max(1),
            peer: self.there,
            local: None,
            ecn: Ecn::NotEct,
            truncated: false,
        }))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<usize> {
        // By default a batch is one datagram. A full tunnel drops it, like a router.
        let _ = self.outgoing.try_send([HEADER, transmit.contents].concat());
        Ok(transmit.contents.len())
    }

    fn poll_writable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.here)
    }
}

#[tokio::main]
async fn main() -> Result {
    let (a, b): (SocketAddr, SocketAddr) = ("192.0.2.1:1".parse()?, "192.0.2.2:2".parse()?);
    let ((to_b, at_b), (to_a, at_a)) = (mpsc::channel(1000), mpsc::channel(1000));
    let end = |here, there, outgoing, incoming| Tunnel {
        here,
        there,
        outgoing,
        incoming,
    };
    let (near, far) = (end(a, b, to_b, at_a.into()), end(b, a, to_a, at_b.into()));

    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn(["tunnel"]);
    let server = Endpoint::builder().server(config).transport(far)?;
    let client = Endpoint::builder().transport(near)?;
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn(["tunnel"]);
    let connecting = client.connect_with(config, b, "localhost")?;
    let accepting = async { server.accept().await.expect("open").await };
    let (client, server) = tokio::try_join!(connecting, accepting)?;

    let mut send = client.open_uni().await?;
    send.write_all(b"through the tunnel").await?;
    send.finish()?;
    let received = server.accept_uni().await?.read_to_end(100).await?;
    println!("{}", String::from_utf8_lossy(&received));
    Ok(())
}
