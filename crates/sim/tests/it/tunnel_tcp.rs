//! TCP of another implementation (smoltcp) through a tunnel for IP packets, with a host behind the proxy: `tunnel-tcp`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use courser::masque::{self, Device, IpClient, IpProxy, IpRequest, IpTemplate, IpTunnel, Policy};
use courser::{ClientConfig, Endpoint, ServerConfig, Side, TransportConfig, h3, runtime};
use courser_sim::World;
use courser_sim::identity::identity;
use courser_sim::replay::for_each_seed;
use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr, IpEndpoint};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const SECOND: Duration = Duration::from_secs(1);
const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The smallest MTU of IPv6, which every tunnel carries.
const MTU: usize = 1280;
/// Ports of the host that receive and that send.
const SINK: u16 = 1;
const SOURCE: u16 = 2;
/// Four seconds of the link.
const BYTES: usize = 10_000_000;
const BUFFER: usize = 512 * 1024;

/// Packets between a stack and what carries them.
#[derive(Default)]
struct Wire {
    received: VecDeque<Bytes>,
    sent: Vec<Bytes>,
}

struct Arrived(Bytes);

impl phy::RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

struct Leaving<'a>(&'a mut Vec<Bytes>);

impl phy::TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut packet = vec![0; len];
        let result = write(&mut packet);
        self.0.push(packet.into());
        result
    }
}

impl phy::Device for Wire {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leaving<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived, Leaving<'_>)> {
        let packet = self.received.pop_front()?;
        Some((Arrived(packet), Leaving(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaving<'_>> {
        Some(Leaving(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities
    }
}

/// What an end does with its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Sends(usize),
    Receives(usize),
    Done,
}

/// One end of TCP.
struct Stack {
    wire: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
    ends: Vec<(SocketHandle, Role)>,
    begun: std::time::Instant,
}

impl Stack {
    fn new(address: Ipv4Addr) -> Self {
        let mut wire = Wire::default();
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = u64::from(address.to_bits());
        let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            let own = IpCidr::new(address.into(), 32);
            addresses.push(own).expect("the first address");
        });
        let routes = interface.routes_mut();
        routes
            .add_default_ipv4_route(address)
            .expect("the first route");
        Self {
            wire,
            interface,
            sockets: SocketSet::new(Vec::new()),
            ends: Vec::new(),
            begun: runtime::now(),
        }
    }

    fn socket() -> tcp::Socket<'static> {
        let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        socket.set_congestion_control(tcp::CongestionControl::Cubic);
        socket
    }

    fn listen(&mut self, port: u16, role: Role) {
        let mut socket = Self::socket();
        socket.listen(port).expect("a port");
        self.ends.push((self.sockets.add(socket), role));
    }

    fn connect(&mut self, port: u16, role: Role) {
        let handle = self.sockets.add(Self::socket());
        let to = IpEndpoint::new(HOST.into(), port);
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(handle);
        let context = self.interface.context();
        socket.connect(context, to, 50_000).expect("a route");
        self.ends.push((handle, role));
    }

    fn now(&self) -> Instant {
        let micros = (runtime::now() - self.begun).as_micros();
        Instant::from_micros(i64::try_from(micros).expect("a short test"))
    }

    /// Processes what has arrived, and writes and reads as much as possible.
    fn run(&mut self) {
        let now = self.now();
        loop {
            let polled = self.interface.poll(now, &mut self.wire, &mut self.sockets);
            for (handle, role) in &mut self.ends {
                let socket = self.sockets.get_mut::<tcp::Socket<'_>>(*handle);
                *role = proceed(socket, *role);
            }
            if polled == PollResult::None {
                // What was written since leaves too.
                self.interface.poll(now, &mut self.wire, &mut self.sockets);
                return;
            }
        }
    }

    /// Returns the time until the next timeout.
    fn delay(&mut self) -> Duration {
        let now = self.now();
        let delay = self.interface.poll_delay(now, &self.sockets);
        delay.map_or(SECOND, |it| {
            Duration::from_micros(it.total_micros().max(100))
        })
    }

    fn is_done(&self) -> bool {
        self.ends.iter().all(|(_, role)| *role == Role::Done)
    }
}

/// Sends or receives a pattern.
fn proceed(socket: &mut tcp::Socket<'_>, role: Role) -> Role {
    match role {
        Role::Sends(mut sent) => {
            while socket.can_send() && sent < BYTES {
                let chunk: Vec<u8> = (sent..BYTES.min(sent + 4096)).map(pattern).collect();
                sent += socket.send_slice(&chunk).expect("open");
            }
            if sent == BYTES {
                socket.close();
                // Until the peer has everything.
                return match socket.state() {
                    tcp::State::FinWait2 | tcp::State::TimeWait | tcp::State::Closed => Role::Done,
                    _ => Role::Sends(sent),
                };
            }
            Role::Sends(sent)
        }
        Role::Receives(mut received) => {
            let mut chunk = [0; 4096];
            while socket.can_recv() {
                let len = socket.recv_slice(&mut chunk).expect("open");
                for byte in &chunk[..len] {
                    assert_eq!(*byte, pattern(received), "at {received}");
                    received += 1;
                }
            }
            if received == BYTES && !socket.may_recv() {
                socket.close();
                return Role::Done;
            }
            Role::Receives(received)
        }
        Role::Done => Role::Done,
    }
}

fn pattern(at: usize) -> u8 {
    (at % 251) as u8
}

/// The host behind the proxy, as its network.
#[derive(Clone)]
struct Host(Arc<Mutex<Inner>>);

struct Inner {
    stack: Stack,
    waker: Option<Waker>,
    timer: Option<Pin<Box<runtime::Sleep>>>,
}

impl Host {
    fn new() -> Self {
        let mut stack = Stack::new(HOST);
        stack.listen(SINK, Role::Receives(0));
        stack.listen(SOURCE, Role::Sends(0));
        Self(Arc::new(Mutex::new(Inner {
            stack,
            waker: None,
            timer: None,
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device for Host {
    fn send_many(&self, packets: &mut Vec<Bytes>) -> io::Result<usize> {
        let mut inner = self.inner();
        let count = packets.len();
        inner.stack.wire.received.extend(packets.drain(..));
        inner.stack.run();
        if let Some(waker) = inner.waker.take() {
            waker.wake();
        }
        Ok(count)
    }

    fn poll_receive_many(
        &self,
        cx: &mut Context<'_>,
        packets: &mut Vec<Bytes>,
        limit: usize,
    ) -> Poll<io::Result<usize>> {
        let mut inner = self.inner();
        let Inner {
            stack,
            waker,
            timer,
        } = &mut *inner;
        loop {
            if stack.wire.sent.is_empty() {
                stack.run();
            }
            let count = stack.wire.sent.len().min(limit);
            if count > 0 {
                packets.extend(stack.wire.sent.drain(..count));
                return Poll::Ready(Ok(count));
            }
            let timer = timer.insert(Box::pin(runtime::sleep(stack.delay())));
            if timer.as_mut().poll(cx).is_pending() {
                *waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
    }

    fn mtu(&self) -> usize {
        MTU
    }
}

async fn proxy() -> Result {
    let config = ServerConfig::with_identity(&identity())?.alpn([h3::ALPN]);
    let config = config.transport_config(masque::transport_config(TransportConfig::default()));
    let endpoint = Endpoint::server(config, "10.0.0.2:443".parse()?)?;
    let policy = Policy::nothing().allow("192.0.2.0/24".parse()?, 0..=65_535);
    let pool = ["10.89.0.0/24".parse::<masque::Prefix>()?];
    let proxy = IpProxy::new(pool, policy, Host::new()).open_to_all();
    while let Some(incoming) = endpoint.accept().await {
        let mut settings = h3::Config::new(Side::Server);
        masque::enable(&mut settings, Side::Server);
        let proxy = proxy.clone();
        let service = tower::service_fn(move |request| {
            let mut proxy = proxy.clone();
            async move {
                let answer = tower::Service::call(&mut proxy, request);
                Ok::<_, Infallible>(answer.await.unwrap_or_else(|error| match error {}))
            }
        });
        runtime::spawn(async move {
            let serving = h3::serve(incoming.await?, service).config(settings);
            serving.await?;
            Result::Ok(())
        });
    }
    Ok(())
}

async fn tunnel() -> Result<IpTunnel> {
    let endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn([h3::ALPN]);
    let config = config.transport_config(masque::transport_config(TransportConfig::default()));
    let connecting = endpoint.connect_with(config, "10.0.0.2:443".parse()?, "localhost")?;
    let mut settings = h3::Config::new(Side::Client);
    masque::enable(&mut settings, Side::Client);
    let client = h3::Client::with_config(connecting.await?, settings);
    let template = format!("https://localhost{}", IpTemplate::WELL_KNOWN);
    let tunnel = IpClient::over(client, template.parse()?)
        .open(IpRequest::default())
        .await?;
    tunnel.configured().await?;
    Ok(tunnel)
}

/// Transfers with the host, and returns the time.
async fn transfer(port: u16, role: Role) -> Result<Duration> {
    let tunnel = tunnel().await?;
    let assigned = tunnel.assigned().get();
    let Some(IpAddr::V4(own)) = assigned.first().map(masque::Prefix::first) else {
        return Err("no address".into());
    };
    let begun = runtime::now();
    let mut stack = Stack::new(own);
    stack.connect(port, role);
    let mut packets = Vec::new();
    loop {
        stack.run();
        tunnel.send_many(&mut stack.wire.sent)?;
        stack.wire.sent.clear();
        if stack.is_done() {
            return Ok(runtime::now() - begun);
        }
        let timer = runtime::sleep(stack.delay());
        tokio::select! {
            received = tunnel.recv_many(&mut packets, 64) => drop(received?),
            () = timer => {}
        }
        stack.wire.received.extend(packets.drain(..));
    }
}

fn run(seed: u64, link: &str, port: u16, role: Role) -> f64 {
    let mut world = World::new(seed);
    let near = world.machine("client", [10, 0, 0, 1]);
    let far = world.machine("proxy", [10, 0, 0, 2]);
    world.join_machines(&near, &far, &link.parse().expect("a link"));
    far.spawn(proxy());
    let done = near.spawn(transfer(port, role));
    let done = world.run_until_done(done).expect("it ends");
    let took = done.expect("the client succeeds");
    (BYTES * 8) as f64 / 1e6 / took.as_secs_f64()
}

/// TCP uses its path through a tunnel, as far as the loss recovery of this implementation permits.
#[test]
fn tcp_fills_a_path_through_a_tunnel() {
    for_each_seed(1, |seed| {
        let goodput = run(seed, "20mbit,rtt=20ms,queue=1bdp", SINK, Role::Sends(0));
        assert!(goodput > 10.0, "{goodput}");
    });
}

/// What the link loses arrives all the same, unchanged: TCP repeats it, and the tunnel does not.
#[test]
fn tcp_survives_loss_inside_of_a_tunnel() {
    for link in [
        "20mbit,rtt=20ms,0.5%",
        "20mbit,rtt=20ms,reorder=1%:5ms",
        "20mbit,rtt=20ms,mtu=1500,mtu@1s=1400",
    ] {
        for_each_seed(1, |seed| {
            let goodput = run(seed, link, SINK, Role::Sends(0));
            assert!(goodput > 1.0, "{link}: {goodput}");
        });
    }
}
