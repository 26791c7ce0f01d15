//! Honest clients of what lies above requests: sessions of WebTransport, UDP tunnels and IP tunnels.

use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use courser::masque::{self, IpClient, IpRequest, IpTemplate, Template, UdpClient};
use courser::webtransport::{self, SessionRequest};
use courser::{Connection, Endpoint, Side, h3};

use super::Service;
use crate::clients::client;

/// A kind of client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Storey {
    Sessions,
    /// Tunnels to a host that answers each packet with its content.
    Udp(SocketAddr),
    Ip,
}

/// Clients that exchange messages on a thread of their own.
pub(crate) struct Clients(JoinHandle<Service>);

impl Clients {
    /// Starts the clients, each with a connection of its own.
    pub(crate) fn start(storey: Storey, server: SocketAddr, time: Duration) -> Self {
        Self(std::thread::spawn(move || run(storey, server, time)))
    }

    /// Waits for the end. Clients that failed have succeeded in nothing.
    pub(crate) fn finish(self) -> Service {
        self.0.join().unwrap_or_default()
    }
}

fn run(storey: Storey, server: SocketAddr, time: Duration) -> Service {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return Service::default();
    };
    let end = Instant::now() + time;
    let clients = (0..CLIENTS).map(|_| async move {
        let mut client = Client::default();
        while Instant::now() < end {
            // A connection that fails is replaced.
            if client.live(storey, server, end).await.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
        }
        client
    });
    let clients = runtime.block_on(futures_util::future::join_all(clients));
    let mut times: Vec<f64> = clients.iter().flat_map(|it| it.times.clone()).collect();
    times.sort_by(f64::total_cmp);
    Service {
        succeeded: times.len() as u64,
        p99: times.get(times.len() * 99 / 100).copied().unwrap_or(0.0),
        datagrams: clients.iter().map(|it| it.datagrams).sum(),
    }
}

/// The results of one client.
#[derive(Default)]
struct Client {
    /// The time of each exchange in seconds.
    times: Vec<f64>,
    /// Datagrams sent to the server.
    datagrams: u64,
}

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

impl Client {
    /// Exchanges messages on one connection until `end`.
    async fn live(&mut self, storey: Storey, server: SocketAddr, end: Instant) -> Result {
        let endpoint = client::endpoint(&client::config()?)?;
        let connection = connect(&endpoint, server).await?;
        let result = self.exchange(storey, &connection, end).await;
        self.datagrams += connection.stats().udp_sent.datagrams;
        connection.close(0_u32.into(), b"");
        result
    }

    async fn exchange(&mut self, storey: Storey, quic: &Connection, end: Instant) -> Result {
        let mut settings = h3::Config::new(Side::Client);
        match storey {
            Storey::Sessions => {
                let config = webtransport::Config::new();
                webtransport::enable(&mut settings, Side::Client, config)?;
            }
            Storey::Udp(_) | Storey::Ip => masque::enable(&mut settings, Side::Client),
        }
        let client = h3::Client::with_config(quic.clone(), settings);
        let open = Exchange::open(storey, client);
        let mut exchange = tokio::time::timeout(LONGEST, open).await??;
        while Instant::now() < end {
            let begun = Instant::now();
            tokio::time::timeout(LONGEST, exchange.once()).await??;
            self.times.push(begun.elapsed().as_secs_f64());
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}

async fn connect(endpoint: &Endpoint, server: SocketAddr) -> Result<Connection> {
    let connecting = endpoint.connect(server, "localhost")?;
    Ok(tokio::time::timeout(LONGEST, connecting).await??)
}

/// What a client has opened.
enum Exchange {
    Session(webtransport::Session),
    Socket(masque::Socket),
    Tunnel(masque::IpTunnel),
}

impl Exchange {
    async fn open(storey: Storey, client: h3::Client) -> Result<Self> {
        Ok(match storey {
            Storey::Sessions => {
                let url = format!("https://localhost{}", courser_adversary::sessions::SESSION);
                let request = SessionRequest::new(url.parse()?);
                Self::Session(webtransport::connect(&client, request).await?)
            }
            Storey::Udp(target) => {
                let template = format!("https://localhost{}", Template::WELL_KNOWN);
                let proxy = UdpClient::over(client, template.parse()?);
                Self::Socket(proxy.open(&target.to_string()).await?)
            }
            Storey::Ip => {
                let template = format!("https://localhost{}", IpTemplate::WELL_KNOWN);
                let proxy = IpClient::over(client, template.parse()?);
                let tunnel = proxy.open(IpRequest::default()).await?;
                tunnel.configured().await?;
                Self::Tunnel(tunnel)
            }
        })
    }

    /// Sends one message, and waits for it to return. A lost packet is repeated, as programs do that use one.
    async fn once(&mut self) -> Result {
        match self {
            Self::Session(session) => {
                let (mut send, mut receive) = session.open_bi().await?;
                send.write_all(MESSAGE).await?;
                send.finish()?;
                let answer = receive.read_to_end(MESSAGE.len()).await?;
                same(&answer)
            }
            Self::Socket(socket) => loop {
                socket.send(MESSAGE)?;
                if let Ok(answer) = tokio::time::timeout(REPEAT, socket.recv()).await {
                    return same(&answer?);
                }
            },
            Self::Tunnel(tunnel) => loop {
                let packet = packet_from(tunnel).ok_or("no address")?;
                tunnel.send(packet)?;
                let mut packets = Vec::new();
                let received = tunnel.recv_many(&mut packets, 1);
                if let Ok(received) = tokio::time::timeout(REPEAT, received).await {
                    received?;
                    let content = packets.first().and_then(|packet| packet.get(20..));
                    return same(content.unwrap_or_default());
                }
            },
        }
    }
}

fn same(answer: &[u8]) -> Result {
    match answer == MESSAGE {
        true => Ok(()),
        false => Err("another answer".into()),
    }
}

/// Returns a packet from the tunnel to a host of the network.
fn packet_from(tunnel: &masque::IpTunnel) -> Option<Bytes> {
    let assigned = tunnel.assigned().get();
    let source = assigned.iter().find_map(|prefix| match prefix.first() {
        std::net::IpAddr::V4(address) => Some(address.octets()),
        std::net::IpAddr::V6(_) => None,
    })?;
    let packet = courser_adversary::sessions::ipv4(source, [192, 0, 2, 1], 64, 17, MESSAGE);
    Some(packet.into())
}

/// The content of each exchange: the header of UDP is part of it inside of IP.
const MESSAGE: &[u8] = &[0x30; 100];
const CLIENTS: usize = 4;
/// Time between two exchanges of a client.
const PAUSE: Duration = Duration::from_millis(10);
/// Time after which a packet counts as lost.
const REPEAT: Duration = Duration::from_millis(100);
/// Time limit of an exchange.
const LONGEST: Duration = Duration::from_secs(2);
