//! Several clients and one server behind one bottleneck.

use std::net::SocketAddr;

use courser_recovery::Algorithm;
use courser_sim::World;
use courser_sim::apps::{Amount, Bulk, Serve, TransferDirection};
use courser_sim::host::{ETHERNET_PAYLOAD, Host, HostSpec};
use courser_sim::world::{LinkPair, NodeId};
use courser_transport::TransportConfig;

use super::SERVER;

/// Flows that share a link, each with its own client.
pub struct SharedBottleneck {
    pub world: World,
    pub clients: Vec<NodeId>,
    pub server: NodeId,
    pub link: LinkPair,
}

impl SharedBottleneck {
    /// Creates an endless flow up for each controller.
    pub fn new(seed: u64, link: &str, controllers: &[Algorithm]) -> Self {
        let endless = || Bulk::new(SERVER, TransferDirection::Up, Amount::Endless);
        let flows = controllers.iter().map(|it| (transport(*it), endless()));
        Self::of(seed, link, flows.collect())
    }

    /// Creates a client for each transfer.
    pub fn of(seed: u64, link: &str, flows: Vec<(TransportConfig, Bulk)>) -> Self {
        let mut world = World::new(seed);
        let mut clients = Vec::new();
        for (number, (transport, app)) in flows.into_iter().enumerate() {
            let name = format!("client {number}");
            let host = u8::try_from(number + 10).expect("at most 245 clients");
            let address = SocketAddr::from(([10, 0, 1, host], 50_000));
            let spec = HostSpec::client(address, world.seed_for(&name)).with_transport(transport);
            clients.push(world.add(&name, address.ip(), Host::new(spec, app)));
        }
        let spec = HostSpec::server(SERVER, world.seed_for("server"));
        let server = world.add("server", SERVER.ip(), Host::new(spec, Serve::new()));
        let link = link.parse().expect("the link specification is valid");
        let link = world.bottleneck(&clients, &[server], &link);
        Self {
            world,
            clients,
            server,
            link,
        }
    }

    /// Returns the acknowledged bytes of each flow so far.
    pub fn acked(&self) -> Vec<u64> {
        let clients = self.clients.iter();
        clients
            .map(|id| {
                let host: &Host = self.world.node(*id).expect("the node is a host");
                let handle = host.connections()[0];
                host.stats(handle)
                    .expect("the connection has counters")
                    .data_acked
            })
            .collect()
    }

    /// Returns the packets that the client with this number has lost so far.
    pub fn lost(&self, number: usize) -> u64 {
        let host: &Host = self
            .world
            .node(self.clients[number])
            .expect("the node is a host");
        let handle = host.connections()[0];
        host.stats(handle)
            .expect("the connection has counters")
            .packets_lost
    }

    /// Asserts that the server received correct bytes only, and no connection has failed.
    pub fn assert_clean(&self) {
        for id in self.clients.iter().chain([&self.server]) {
            let host: &Host = self.world.node(*id).expect("the node is a host");
            let counters = host.counters().expect("the application has counters");
            assert_eq!(counters.mismatch, None);
            assert_eq!(counters.failures, [""; 0]);
        }
    }
}

/// Returns the settings of a host on an Ethernet with this controller.
pub fn transport(congestion: Algorithm) -> TransportConfig {
    TransportConfig {
        congestion,
        mtu_max: ETHERNET_PAYLOAD,
        ..TransportConfig::default()
    }
}

/// Returns Jain's index: 1 if all shares are equal, `1 / n` if one has everything.
pub fn fairness(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|it| *it as f64).sum();
    let squares: f64 = shares.iter().map(|it| (*it as f64).powi(2)).sum();
    sum * sum / (shares.len() as f64 * squares)
}
