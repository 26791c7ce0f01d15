//! IP tunnels, on a network in memory.

mod addresses;
mod hostile;
mod packets;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use courser_masque::ip::{Header, icmp};
use courser_masque_tokio::{IpClient, IpClientBuilder, IpProxy, IpRequest, IpTunnel, Prefix};
use courser_tls as _;

use super::*;

/// The device of the doc tests.
mod echo {
    mod courser {
        pub(crate) use courser_masque_tokio as masque;
    }
    include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/echo.rs"));
}
use echo::Echo;

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn prefix(text: &str) -> Prefix {
    text.parse().expect("a prefix")
}

fn pool() -> [Prefix; 2] {
    [prefix("10.89.0.0/24"), prefix("fd00:89::/64")]
}

/// A policy for addresses for documentation, which are hosts of the network.
fn policy() -> Policy {
    Policy::nothing()
        .allow(prefix("192.0.2.0/24"), 0..=65_535)
        .allow(prefix("2001:db8::/32"), 0..=65_535)
}

fn ip_proxy(device: &Echo) -> IpProxy {
    IpProxy::new(pool(), policy(), device.clone()).open_to_all()
}

async fn start_ip(proxy: IpProxy) -> Started {
    let route = "/.well-known/masque/ip/{target}/{ipproto}/";
    super::start_at(route, proxy).await
}

/// Starts a proxy whose connections have these parameters.
async fn start_ip_with(proxy: IpProxy, transport: TransportConfig) -> Started {
    let route = "/.well-known/masque/ip/{target}/{ipproto}/";
    super::start_with(route, proxy, Some(transport)).await
}

impl Started {
    fn ip_builder(&self, carrier: Carrier) -> IpClientBuilder {
        let template = format!(
            "https://localhost:{}/.well-known/masque/ip/{{target}}/{{ipproto}}/",
            self.address.port()
        );
        let builder = IpClient::builder(&template).expect("valid");
        builder
            .roots([self.identity.certificate()])
            .address(self.address)
            .carrier(carrier)
    }

    async fn ip_client(&self, carrier: Carrier) -> IpClient {
        within(self.ip_builder(carrier).connect())
            .await
            .expect("connected")
    }

    async fn ip(&self, carrier: Carrier, request: IpRequest) -> IpTunnel {
        let client = self.ip_client(carrier).await;
        let tunnel = within(client.open(request)).await.expect("accepted");
        within(tunnel.configured()).await.expect("open");
        tunnel
    }
}

/// Returns the address of a tunnel of a version.
fn own(tunnel: &IpTunnel, is_ipv4: bool) -> IpAddr {
    let assigned = tunnel.assigned().get();
    let mut of_version = assigned.iter().filter(|prefix| prefix.is_ipv4() == is_ipv4);
    of_version.next().expect("assigned").first()
}

fn ping(source: IpAddr, destination: IpAddr, len: usize) -> Bytes {
    let packet = icmp::echo_request(source, destination, &vec![7; len]);
    packet.expect("one version").into()
}

async fn receive(tunnel: &IpTunnel) -> Bytes {
    let mut packets = Vec::new();
    within(tunnel.recv_many(&mut packets, 1))
        .await
        .expect("open");
    packets.remove(0)
}

fn header(packet: &[u8]) -> Header {
    Header::parse(packet).expect("a packet")
}

/// Type and code of an ICMP message.
fn icmp_kind(packet: &[u8]) -> [u8; 2] {
    let at = header(packet).payload;
    [packet[at], packet[at + 1]]
}
