//! Routes.

use std::net::IpAddr;

use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};

use super::destination::{Destination, family, unspecified};

/// A route through an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where it leads.
    pub destination: Destination,
    /// The number of the interface.
    pub interface: u32,
    /// A router on the interface. `None` for destinations that are on the interface themselves.
    pub gateway: Option<IpAddr>,
    /// The number of the table; [`MAIN`] is the usual one.
    pub table: u32,
}

impl Route {
    /// Returns a route of the main table to destinations that are on an interface.
    pub const fn through(interface: u32, destination: Destination) -> Self {
        Self {
            destination,
            interface,
            gateway: None,
            table: MAIN,
        }
    }

    pub(super) fn message(&self) -> RouteMessage {
        let mut message = RouteMessage::default();
        let header = &mut message.header;
        header.address_family = family(self.destination.address);
        header.destination_prefix_length = self.destination.length;
        header.protocol = RouteProtocol::Other(PROTOCOL);
        header.scope = match (self.gateway, self.destination.address) {
            (None, IpAddr::V4(_)) => RouteScope::Link,
            _ => RouteScope::Universe,
        };
        header.kind = RouteType::Unicast;
        let attributes = &mut message.attributes;
        let destination = self.destination.address.into();
        attributes.push(RouteAttribute::Destination(destination));
        attributes.push(RouteAttribute::Oif(self.interface));
        attributes.push(RouteAttribute::Table(self.table));
        if let Some(gateway) = self.gateway {
            attributes.push(RouteAttribute::Gateway(gateway.into()));
        }
        message
    }

    pub(super) fn of(message: &RouteMessage) -> Option<Self> {
        let is_ipv6 = message.header.address_family == AddressFamily::Inet6;
        let ip = |address: &RouteAddress| match address {
            RouteAddress::Inet(address) => Some(IpAddr::from(*address)),
            RouteAddress::Inet6(address) => Some(IpAddr::from(*address)),
            _ => None,
        };
        let mut route = Self {
            destination: Destination {
                address: unspecified(is_ipv6),
                length: message.header.destination_prefix_length,
            },
            interface: 0,
            gateway: None,
            table: message.header.table.into(),
        };
        for attribute in &message.attributes {
            match attribute {
                RouteAttribute::Destination(address) => route.destination.address = ip(address)?,
                RouteAttribute::Gateway(address) => route.gateway = ip(address),
                RouteAttribute::Oif(index) => route.interface = *index,
                RouteAttribute::Table(table) => route.table = *table,
                _ => {}
            }
        }
        (route.interface != 0).then_some(route)
    }
}

/// The main table of routes.
pub const MAIN: u32 = 254;

/// The table of the addresses of the system.
pub const LOCAL: u32 = 255;

/// The mark of routes and rules that courser has added, in the field for the program that did. It is free in
/// `/etc/iproute2/rt_protos`.
pub(super) const PROTOCOL: u8 = 133;
