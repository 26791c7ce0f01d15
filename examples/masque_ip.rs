//! An IP proxy (MASQUE, RFC 9484), the server of a VPN, and its client. The network behind the proxy is one in memory, whose
//! hosts answer pings; a TUN device takes its place in a real one.
//! `cargo run -p courser --features masque --example masque_ip`.

use std::io;
use std::sync::Mutex;
use std::task::{Context, Poll};

use bytes::Bytes;
use courser::masque::{self, Device, Header, IpClient, IpProxy, IpRequest, Policy, icmp};
use courser::{Identity, Side, h3};
use tokio::sync::mpsc;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A network whose hosts answer pings.
struct Hosts {
    answers: mpsc::Sender<Bytes>,
    waiting: Mutex<mpsc::Receiver<Bytes>>,
}

impl Device for Hosts {
    fn send_many(&self, packets: &mut Vec<Bytes>) -> io::Result<usize> {
        let answers = packets.drain(..).filter_map(|packet| {
            let host = Header::parse(&packet).ok()?.destination;
            icmp::echo_reply(&packet, host)
        });
        Ok(answers
            .filter_map(|answer| self.answers.try_send(answer.into()).ok())
            .count())
    }

    fn poll_receive_many(
        &self,
        cx: &mut Context<'_>,
        packets: &mut Vec<Bytes>,
        limit: usize,
    ) -> Poll<io::Result<usize>> {
        let mut waiting = self.waiting.lock().expect("no panic");
        waiting.poll_recv_many(cx, packets, limit).map(Ok)
    }

    fn mtu(&self) -> usize {
        1500
    }
}

#[tokio::main]
async fn main() -> Result {
    let (answers, waiting) = mpsc::channel(1024);
    let network = Hosts {
        answers,
        waiting: Mutex::new(waiting),
    };
    let pool = ["10.89.0.0/16".parse()?, "fd00:89::/64".parse()?];
    // A real one has `authenticate`.
    let proxy = IpProxy::new(pool, Policy::public_only(), network).open_to_all();
    let mut settings = h3::Config::new(Side::Server);
    masque::enable(&mut settings, Side::Server);
    let identity = Identity::dev()?;
    let server = courser::serve("127.0.0.1:0", identity.clone())
        .config(settings)
        .bind()?;
    let address = server.local_addr();
    tokio::spawn(server.service(proxy).into_future());

    let builder = IpClient::of_proxy(&format!("localhost:{}", address.port()))?;
    let client = builder
        .roots([identity.certificate()])
        .address(address)
        .connect()
        .await?;
    let tunnel = client.open(IpRequest::default()).await?;
    tunnel.configured().await?;
    let own = tunnel.assigned().get()[0].first();
    println!("{own} may send to {}", tunnel.routes().get()[0]);
    for host in ["9.9.9.9", "192.168.1.1"] {
        let ping = icmp::echo_request(own, host.parse()?, b"ping").ok_or("two versions of IP")?;
        tunnel.send(ping.into())?;
        let mut packets = Vec::new();
        tunnel.recv_many(&mut packets, 64).await?;
        println!("{host}: ICMP type {}", packets[0][20]);
    }
    Ok(())
}
