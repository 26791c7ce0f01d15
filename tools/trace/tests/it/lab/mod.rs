//! Transfers in the simulator whose cause is known, and their traces.

pub mod apps;
pub mod scenarios;
pub mod table;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use courser_base::Side;
use courser_qlog::{QlogSink, TraceHeader};
use courser_sim::World;
use courser_sim::host::{App, Host, HostSpec};
use courser_telemetry::{Sink, SinkFactory};
use courser_trace::explain::Explanation;
use courser_trace::qlog::Reader;
use courser_transport::TransportConfig;
use courser_wire::ConnectionId;

/// The address of the client.
pub const CLIENT: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(
    std::net::Ipv4Addr::new(10, 1, 0, 1),
    5000,
));
/// The address of the server.
pub const SERVER: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(
    std::net::Ipv4Addr::new(10, 2, 0, 1),
    443,
));

/// The traces of both ends.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    client: Memory,
    server: Memory,
}

/// A file in memory.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .expect("not poisoned")
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SinkFactory for Traces {
    fn sink(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        let file = self.of(side).clone();
        let header = TraceHeader::new(*original_destination, side);
        Some(Box::new(QlogSink::new(file, &header)))
    }
}

impl Traces {
    fn of(&self, side: Side) -> &Memory {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    /// Returns the trace of one end.
    pub fn bytes(&self, side: Side) -> Vec<u8> {
        self.of(side).0.lock().expect("not poisoned").clone()
    }

    /// Explains the trace of one end.
    pub fn explain(&self, side: Side) -> Explanation {
        let bytes = self.bytes(side);
        Explanation::of(Reader::new(&bytes[..]).expect("a trace"))
    }
}

/// A client and a server with a link between them.
pub struct Setup {
    seed: u64,
    link: String,
    client: HostSpec,
    server: HostSpec,
}

impl Setup {
    /// Connects both ends with `link`, in a world with `seed`.
    pub fn on(seed: u64, link: &str) -> Self {
        Self {
            seed,
            link: link.to_owned(),
            client: HostSpec::client(CLIENT, seed + 100),
            server: HostSpec::server(SERVER, seed + 200),
        }
    }

    /// Changes the settings of the client.
    #[must_use]
    pub fn client(mut self, change: impl FnOnce(&mut TransportConfig)) -> Self {
        change(&mut self.client.transport);
        self
    }

    /// Changes the settings of the server.
    #[must_use]
    pub fn server(mut self, change: impl FnOnce(&mut TransportConfig)) -> Self {
        change(&mut self.server.transport);
        self
    }

    /// Changes the settings of both ends.
    #[must_use]
    pub fn both(self, change: impl Fn(&mut TransportConfig)) -> Self {
        self.client(&change).server(&change)
    }

    /// Changes the server.
    #[must_use]
    pub fn host(mut self, change: impl FnOnce(&mut HostSpec)) -> Self {
        change(&mut self.server);
        self
    }

    /// Runs until both ends have nothing more to do, and returns their traces.
    pub fn run(mut self, client: impl App, server: impl App) -> Traces {
        let traces = Traces::default();
        for spec in [&mut self.client, &mut self.server] {
            spec.transport.sinks = Some(Arc::new(traces.clone()));
        }
        let mut world = World::new(self.seed);
        let near = world.add("client", CLIENT.ip(), Host::new(self.client, client));
        let far = world.add("server", SERVER.ip(), Host::new(self.server, server));
        world.connect(near, far, &self.link.parse().expect("a link"));
        let ended = |world: &World| {
            let host = world.node::<Host>(near).expect("a host");
            let mut connections = host.connections().into_iter().peekable();
            connections.peek().is_some()
                && connections.all(|it| host.endpoint().connection(it).is_none())
        };
        world.run_until(LONGEST, ended).expect("no stall");
        drop(world);
        traces
    }
}

/// The longest run.
const LONGEST: Duration = Duration::from_secs(60);
