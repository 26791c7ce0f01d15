// The beginning of doc tests: a client and a server in one process, and a network without loss or delay.

use std::net::SocketAddr;
use std::sync::Arc;

use courser_base::{Ecn, FourTuple, Time};
use courser_tls::{
    ClientOptions, Identity, ServerOptions, TlsClient, TlsServer, Trust, client_config,
    rustls::{RootCertStore, pki_types::PrivatePkcs8KeyDer},
    server_config,
};
use courser_transport::{
    ClientConfig, Connection, ConnectionHandle, Endpoint, EndpointConfig, Event, ReceiveMeta,
    ServerConfig, TransmitBuffer,
};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Two endpoints, and the events of their connections.
struct Pair {
    now: Time,
    client: Endpoint,
    server: Endpoint,
    config: ClientConfig,
    near: Option<ConnectionHandle>,
    far: Option<ConnectionHandle>,
    events: Vec<Event>,
}

const CLIENT: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::new(192, 0, 2, 1), 1));
const SERVER: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::new(192, 0, 2, 2), 2));

#[allow(dead_code)]
impl Pair {
    /// Returns endpoints without a connection.
    fn new() -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let identity = Identity {
            chain: vec![made.cert.der().clone()],
            key: key.into(),
        };
        let alpn = vec![b"example".to_vec()];
        let tls = TlsServer::new(server_config(ServerOptions::new(identity, alpn.clone()))?)?;
        let server = Arc::new(ServerConfig::new(Arc::new(tls)));
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone())?;
        let options = ClientOptions::new(Trust::Roots(roots), alpn);
        let config = ClientConfig::new(Arc::new(TlsClient::new(client_config(options)?)?));
        Ok(Self {
            now: Time::ZERO,
            client: Endpoint::new(EndpointConfig::from_seed([1; 32]), None, [2; 32]),
            server: Endpoint::new(EndpointConfig::from_seed([3; 32]), Some(server), [4; 32]),
            config,
            near: None,
            far: None,
            events: Vec::new(),
        })
    }

    /// Returns endpoints with a connection whose handshake is complete.
    fn connected() -> Result<Self> {
        let mut pair = Self::new()?;
        pair.near = Some(
            pair.client
                .connect(pair.now, &pair.config, SERVER, "localhost")?,
        );
        pair.run();
        Ok(pair)
    }

    /// Moves datagrams until neither end has any.
    fn run(&mut self) {
        loop {
            let sent = carry(
                self.now,
                (&mut self.client, CLIENT),
                (&mut self.server, SERVER),
                &mut self.events,
            );
            while let Some(incoming) = self.server.poll_incoming() {
                self.far = self.server.accept(self.now, incoming, None).ok();
            }
            let answered = carry(
                self.now,
                (&mut self.server, SERVER),
                (&mut self.client, CLIENT),
                &mut self.events,
            );
            if !sent && !answered {
                return;
            }
        }
    }

    fn near(&mut self) -> &mut Connection {
        let handle = self.near.expect("connected");
        self.client.mark_ready(handle);
        self.client.connection_mut(handle).expect("known")
    }

    fn far(&mut self) -> &mut Connection {
        let handle = self.far.expect("accepted");
        self.server.mark_ready(handle);
        self.server.connection_mut(handle).expect("known")
    }
}

/// Passes the datagrams of one endpoint to the other. Returns false if there were none.
#[allow(dead_code)]
fn carry(
    now: Time,
    (from, address): (&mut Endpoint, SocketAddr),
    (to, destination): (&mut Endpoint, SocketAddr),
    events: &mut Vec<Event>,
) -> bool {
    let mut buffer = TransmitBuffer::new(1);
    let mut has_sent = false;
    while let Some(handle) = from.next_ready() {
        if let Some(connection) = from.connection_mut(handle) {
            events.extend(std::iter::from_fn(|| connection.poll_event()));
        }
        while from.poll_transmit(now, handle, &mut buffer).is_some() {
            let mut datagram = buffer.bytes().to_vec();
            let path = FourTuple {
                local: Some(destination.ip()),
                ..FourTuple::to(address)
            };
            let meta = ReceiveMeta {
                path,
                ecn: Ecn::NotEct,
                segment_size: datagram.len(),
            };
            to.handle_datagrams(now, &mut datagram, &meta);
            has_sent = true;
        }
    }
    has_sent
}
