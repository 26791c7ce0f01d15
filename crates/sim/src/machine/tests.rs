//! Two machines and a wire with a fixed delay, without a world, to test machines alone.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use courser::{ClientConfig, Connection, Endpoint, ServerConfig};

use super::*;
use crate::identity::{SERVER_NAME, identity};

mod network;
mod schedule;
mod streams;

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
const DELAY: Duration = Duration::from_millis(10);

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A packet as it is sent: time, addresses, mark and length.
type Seen = (u64, SocketAddr, SocketAddr, u8, usize);

/// A client and a server connected by a wire that loses every `loses`th packet.
struct Pair {
    client: Machine,
    server: Machine,
    wire: VecDeque<(Time, Packet)>,
    loses: Option<u64>,
    seen: Vec<Seen>,
    now: Time,
}

impl Pair {
    fn new(seed: u64) -> Self {
        Self {
            client: Machine::new([CLIENT], seed),
            server: Machine::new([SERVER], seed),
            wire: VecDeque::new(),
            loses: None,
            seen: Vec::new(),
            now: Time::ZERO,
        }
    }

    fn losing_every(mut self, nth: u64) -> Self {
        self.loses = Some(nth);
        self
    }

    /// Runs everything that is due now, and returns the time of the next event.
    fn step(&mut self) -> Option<Time> {
        while let Some((due, _)) = self.wire.front()
            && *due <= self.now
        {
            let (_, packet) = self.wire.pop_front().expect("the packet was peeked at");
            let mut to = self.machine_at(packet.destination.ip());
            to.receive(self.now, packet);
        }
        loop {
            let mut has_run = false;
            for mut machine in [self.client.clone(), self.server.clone()] {
                if machine.next_timeout().is_none_or(|at| at > self.now) {
                    continue;
                }
                has_run = true;
                machine.run(self.now);
                while let Some(packet) = machine.transmit(self.now) {
                    self.carry(packet);
                }
            }
            if !has_run {
                break;
            }
        }
        let machines = [self.client.next_timeout(), self.server.next_timeout()];
        let wire = self.wire.front().map(|(due, _)| *due);
        machines.into_iter().flatten().chain(wire).min()
    }

    fn carry(&mut self, packet: Packet) {
        self.seen.push((
            self.now.as_nanos(),
            packet.source,
            packet.destination,
            packet.ecn.to_bits(),
            packet.payload.len(),
        ));
        let is_lost = |nth| (self.seen.len() as u64).is_multiple_of(nth);
        if !self.loses.is_some_and(is_lost) {
            self.wire.push_back((self.now + DELAY, packet));
        }
    }

    fn machine_at(&self, ip: IpAddr) -> Machine {
        let machine = if ip == CLIENT {
            &self.client
        } else {
            &self.server
        };
        machine.clone()
    }

    /// Runs until no event is left, or for an hour.
    fn run(&mut self) {
        let end = Time::ZERO + Duration::from_secs(3600);
        while let Some(next) = self.step()
            && next < end
        {
            self.now = self.now.max(next);
        }
    }

    /// Runs a task of the client to its end.
    fn run_client<T: Send + 'static>(
        &mut self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let mut handle = self.client.spawn(task);
        loop {
            let next = self.step();
            match (result_of(&mut handle), next) {
                (Some(result), _) => return result.expect("the task was not aborted"),
                (None, Some(next)) => self.now = self.now.max(next),
                (None, None) => panic!("the task waits and no event is due"),
            }
        }
    }
}

fn server_address() -> SocketAddr {
    SocketAddr::from((SERVER, 4433))
}

fn server_endpoint() -> Endpoint {
    let config = ServerConfig::with_identity(&identity()).expect("the configuration is valid");
    Endpoint::server(config.alpn(["test"]), server_address()).expect("the port is free")
}

fn client_endpoint() -> Endpoint {
    let mut client = Endpoint::client(SocketAddr::from((CLIENT, 0))).expect("the port is free");
    let config =
        ClientConfig::with_roots([identity().certificate()]).expect("the configuration is valid");
    client.set_default_client_config(config.alpn(["test"]));
    client
}

async fn connect(client: &Endpoint) -> Connection {
    let connecting = client.connect(server_address(), SERVER_NAME);
    connecting
        .expect("the endpoint has a configuration")
        .await
        .expect("the handshake completes")
}

/// Echoes every stream of every connection.
async fn serve_echo() {
    let endpoint = server_endpoint();
    while let Some(incoming) = endpoint.accept().await {
        courser::runtime::spawn(async move {
            let connection = incoming.await.expect("the handshake completes");
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                courser::runtime::spawn(async move {
                    while let Ok(Some(chunk)) = receive.read_chunk(16 * 1024).await {
                        send.write_all(&chunk)
                            .await
                            .expect("the peer reads the stream");
                    }
                    send.finish().expect("the stream is not finished");
                });
            }
        });
    }
}

async fn echo(connection: &Connection, question: &[u8]) -> Vec<u8> {
    let (mut send, mut receive) = connection.open_bi().await.expect("a stream can be opened");
    let write = async {
        send.write_all(question)
            .await
            .expect("the peer reads the stream");
        send.finish().expect("the stream is not finished");
    };
    let (_, answer) = tokio::join!(write, receive.read_to_end(question.len()));
    answer.expect("the answer is read")
}
