//! Addresses, routes and rules of the system, over rtnetlink.
//!
//! All calls are answered by the kernel at once, so that they may be made on any thread. Routes through a device and
//! its addresses end with it; rules do not, so that whoever adds one has to remove it.
//!
//! ```no_run
//! use courser_tun::Device;
//! use courser_tun::network::{Destination, Network, Route};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::builder().name("courser0").open()?;
//! let mut network = Network::open()?;
//! let index = network.interface(device.name())?.index;
//! network.add_address(index, "192.0.2.2".parse()?, 32)?;
//! network.set_mtu(index, 1350)?;
//! network.set_up(index)?;
//! let destination = Destination::new("198.51.100.0".parse()?, 24);
//! network.add_route(&Route::through(index, destination))?;
//! # Ok(()) }
//! ```

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// A connection to the kernel, for the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Network {
    socket: Socket,
    sequence: u32,
}

/// A refusal of the kernel.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}: {source}")]
pub struct NetworkError {
    action: String,
    source: io::Error,
}

/// A network, of which a single address is the smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The first address.
    pub address: IpAddr,
    /// Bits that all addresses share, 0 to 32 or 128.
    pub length: u8,
}

/// An interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The number of the interface, which is never given twice.
    pub index: u32,
    /// The largest packet in bytes.
    pub mtu: u32,
    /// The interface carries packets.
    pub is_up: bool,
}

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

/// A rule that chooses a table of routes for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Rules are tried in ascending order. Those of the system have 0, 32766 and 32767.
    pub priority: u32,
    /// The destinations it is for; those of length 0 are all of a family.
    pub to: Destination,
    /// What happens to them.
    pub action: Action,
}

/// What a [`Rule`] does with its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Looks for a route in a table. The next rule decides if there is none.
    Lookup(u32),
    /// Looks for a route in a table, and passes over those whose prefixes have at most this many bits.
    LookupLonger {
        /// The number of the table.
        table: u32,
        /// Bits of the longest prefix that is passed over.
        suppress: u8,
    },
    /// Refuses the packets: their destination is unreachable.
    Unreachable,
}

impl Network {
    /// Opens a connection.
    ///
    /// # Errors
    /// Returns an error if the system refuses a socket.
    pub fn open() -> Result<Self, NetworkError> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        Ok(Self {
            socket: open().map_err(|error| failed("open a socket of netlink", error))?,
            sequence: 0,
        })
    }

    /// Returns an interface.
    ///
    /// # Errors
    /// Returns an error if there is none of this name.
    pub fn interface(&mut self, name: &str) -> Result<Interface, NetworkError> {
        let mut message = LinkMessage::default();
        let attribute = LinkAttribute::IfName(name.to_owned());
        message.attributes.push(attribute);
        let action = || format!("find the interface {name}");
        let replies = self.call(RouteNetlinkMessage::GetLink(message), 0);
        let replies = replies.map_err(|error| failed(action(), error))?;
        let found = replies.into_iter().find_map(|reply| match reply {
            RouteNetlinkMessage::NewLink(link) => Some(link),
            _ => None,
        });
        let link = found.ok_or_else(|| failed(action(), io::ErrorKind::NotFound.into()))?;
        let mtu = link
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                LinkAttribute::Mtu(mtu) => Some(*mtu),
                _ => None,
            });
        Ok(Interface {
            index: link.header.index,
            mtu: mtu.unwrap_or_default(),
            is_up: link.header.flags.contains(LinkFlags::Up),
        })
    }

    /// Sets the largest packet of an interface in bytes.
    ///
    /// # Errors
    /// Returns an error if the interface does not exist or the size is out of its range.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> Result<(), NetworkError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes.push(LinkAttribute::Mtu(mtu));
        let action = || format!("set the MTU of interface {index} to {mtu}");
        self.change(RouteNetlinkMessage::SetLink(message), 0, action)
    }

    /// Lets an interface carry packets.
    ///
    /// # Errors
    /// Returns an error if the interface does not exist.
    pub fn set_up(&mut self, index: u32) -> Result<(), NetworkError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        let action = || format!("activate interface {index}");
        self.change(RouteNetlinkMessage::SetLink(message), 0, action)
    }

    /// Adds an address to an interface. The system adds a route to the other addresses of its prefix.
    ///
    /// # Errors
    /// Returns an error if the interface has the address or does not exist, or IPv6 is disabled.
    pub fn add_address(
        &mut self,
        index: u32,
        address: IpAddr,
        length: u8,
    ) -> Result<(), NetworkError> {
        let action = || format!("add the address {address}/{length} to interface {index}");
        let message = RouteNetlinkMessage::NewAddress(address_message(index, address, length));
        self.change(message, NLM_F_CREATE | NLM_F_EXCL, action)
    }

    /// Removes an address.
    ///
    /// # Errors
    /// Returns an error if the interface does not have it.
    pub fn remove_address(
        &mut self,
        index: u32,
        address: IpAddr,
        length: u8,
    ) -> Result<(), NetworkError> {
        let action = || format!("remove the address {address}/{length} of interface {index}");
        let message = RouteNetlinkMessage::DelAddress(address_message(index, address, length));
        self.change(message, 0, action)
    }

    /// Adds a route.
    ///
    /// # Errors
    /// Returns an error if the table has a route to this destination with the same metric, or the interface is down.
    pub fn add_route(&mut self, route: &Route) -> Result<(), NetworkError> {
        let message = RouteNetlinkMessage::NewRoute(route.message());
        self.change(message, NLM_F_CREATE | NLM_F_EXCL, || {
            format!("add a route to {}", route.destination)
        })
    }

    /// Removes a route.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn remove_route(&mut self, route: &Route) -> Result<(), NetworkError> {
        let message = RouteNetlinkMessage::DelRoute(route.message());
        self.change(message, 0, || {
            format!("remove the route to {}", route.destination)
        })
    }

    /// Returns the route that packets to an address take, as a route to this address alone.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn route_to(&mut self, address: IpAddr) -> Result<Route, NetworkError> {
        let action = || format!("find a route to {address}");
        let destination = Destination::single(address);
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = destination.length;
        let attribute = RouteAttribute::Destination(address.into());
        message.attributes.push(attribute);
        let replies = self.call(RouteNetlinkMessage::GetRoute(message), 0);
        let replies = replies.map_err(|error| failed(action(), error))?;
        let found = replies.into_iter().find_map(|reply| match reply {
            RouteNetlinkMessage::NewRoute(route) => Route::of(&route),
            _ => None,
        });
        let found = found.ok_or_else(|| failed(action(), io::ErrorKind::NotFound.into()))?;
        Ok(Route {
            destination,
            ..found
        })
    }

    /// Returns the routes of a table, of one family.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the list.
    pub fn routes(&mut self, table: u32, is_ipv6: bool) -> Result<Vec<Route>, NetworkError> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(unspecified(is_ipv6));
        let replies = self.call(RouteNetlinkMessage::GetRoute(message), NLM_F_DUMP);
        let replies = replies.map_err(|error| failed("list routes", error))?;
        let routes = replies.iter().filter_map(|reply| match reply {
            RouteNetlinkMessage::NewRoute(route) => Route::of(route),
            _ => None,
        });
        Ok(routes.filter(|route| route.table == table).collect())
    }

    /// Adds a rule, which is marked as one of courser.
    ///
    /// # Errors
    /// Returns an error if there is an equal one, or IPv6 is disabled.
    pub fn add_rule(&mut self, rule: &Rule) -> Result<(), NetworkError> {
        let message = RouteNetlinkMessage::NewRule(rule.message());
        self.change(message, NLM_F_CREATE | NLM_F_EXCL, || {
            format!("add the rule '{rule}'")
        })
    }

    /// Removes a rule.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn remove_rule(&mut self, rule: &Rule) -> Result<(), NetworkError> {
        let message = RouteNetlinkMessage::DelRule(rule.message());
        self.change(message, 0, || format!("remove the rule '{rule}'"))
    }

    /// Returns the rules of a family that courser has added, in this process or another one.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the list.
    pub fn rules(&mut self, is_ipv6: bool) -> Result<Vec<Rule>, NetworkError> {
        let mut message = RuleMessage::default();
        message.header.family = family(unspecified(is_ipv6));
        let replies = self.call(RouteNetlinkMessage::GetRule(message), NLM_F_DUMP);
        let replies = replies.map_err(|error| failed("list rules", error))?;
        Ok(replies
            .iter()
            .filter_map(|reply| match reply {
                RouteNetlinkMessage::NewRule(rule) => Rule::of(rule, is_ipv6),
                _ => None,
            })
            .collect())
    }

    /// Returns true if an interface of this number exists.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the answer.
    pub fn has_interface(&mut self, index: u32) -> Result<bool, NetworkError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        match self.call(RouteNetlinkMessage::GetLink(message), 0) {
            Ok(_) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(false),
            Err(error) => Err(failed(format!("find interface {index}"), error)),
        }
    }

    fn change(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        action: impl FnOnce() -> String,
    ) -> Result<(), NetworkError> {
        match self.call(message, flags | NLM_F_ACK) {
            Ok(_) => Ok(()),
            Err(error) => Err(failed(action(), error)),
        }
    }

    /// Sends a message, and returns the replies to it.
    fn call(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut replies = Vec::new();
        loop {
            let (received, _) = self.socket.recv_from_full()?;
            if self.collect(&received, flags, &mut replies)? {
                return Ok(replies);
            }
        }
    }

    /// Reads the messages of a datagram. Returns true after the last one.
    fn collect(
        &self,
        mut received: &[u8],
        flags: u16,
        replies: &mut Vec<RouteNetlinkMessage>,
    ) -> io::Result<bool> {
        while !received.is_empty() {
            let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(received);
            let message = message.map_err(io::Error::other)?;
            let length = (message.header.length as usize).next_multiple_of(4);
            received = received.get(length.max(4)..).unwrap_or_default();
            if message.header.sequence_number != self.sequence {
                continue;
            }
            match message.payload {
                NetlinkPayload::Done(_) => return Ok(true),
                NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                NetlinkPayload::Error(_) => return Ok(true),
                NetlinkPayload::InnerMessage(reply) => {
                    replies.push(reply);
                    // A single object, which no end follows.
                    if flags & (NLM_F_DUMP | NLM_F_ACK) == 0 {
                        return Ok(true);
                    }
                }
                _ => {}
            }
        }
        Ok(false)
    }
}

impl Destination {
    /// Returns a network. Bits of the address behind the prefix are cleared.
    ///
    /// # Panics
    /// Panics if the length exceeds that of the address.
    pub fn new(address: IpAddr, length: u8) -> Self {
        let width = width(address);
        assert!(length <= width, "{length} bits of {width}");
        let rest = u32::from(width - length);
        let address = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(rest).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(rest).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        };
        Self { address, length }
    }

    /// Returns the network of one address.
    pub const fn single(address: IpAddr) -> Self {
        Self {
            address,
            length: width(address),
        }
    }

    /// Returns the network of all addresses of a family.
    pub const fn all(is_ipv6: bool) -> Self {
        Self {
            address: unspecified(is_ipv6),
            length: 0,
        }
    }

    /// Returns true if an address belongs to the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv6() == self.address.is_ipv6()
            && Self::new(address, self.length).address == self.address
    }
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

    fn message(&self) -> RouteMessage {
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

    fn of(message: &RouteMessage) -> Option<Self> {
        use netlink_packet_route::route::RouteAddress;
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

impl Rule {
    fn message(&self) -> RuleMessage {
        let mut message = RuleMessage::default();
        message.header.family = family(self.to.address);
        message.header.dst_len = self.to.length;
        let (table, suppress) = match self.action {
            Action::Lookup(table) => (Some(table), None),
            Action::LookupLonger { table, suppress } => (Some(table), Some(suppress)),
            Action::Unreachable => (None, None),
        };
        message.header.action = match table {
            Some(_) => RuleAction::ToTable,
            None => RuleAction::Unreachable,
        };
        let attributes = &mut message.attributes;
        if self.to.length > 0 {
            attributes.push(RuleAttribute::Destination(self.to.address));
        }
        attributes.push(RuleAttribute::Priority(self.priority));
        if let Some(table) = table {
            attributes.push(RuleAttribute::Table(table));
        }
        if let Some(length) = suppress {
            attributes.push(RuleAttribute::SuppressPrefixLen(length.into()));
        }
        let protocol = RouteProtocol::Other(PROTOCOL);
        attributes.push(RuleAttribute::Protocol(protocol));
        message
    }

    /// Returns the rule of a message, if it is one of courser.
    fn of(message: &RuleMessage, is_ipv6: bool) -> Option<Self> {
        let mut to = Destination {
            address: unspecified(is_ipv6),
            length: message.header.dst_len,
        };
        let mut priority = 0;
        let mut table = u32::from(message.header.table);
        let mut suppress = None;
        let mut is_own = false;
        for attribute in &message.attributes {
            match attribute {
                RuleAttribute::Destination(address) => to.address = *address,
                RuleAttribute::Priority(number) => priority = *number,
                RuleAttribute::Table(number) => table = *number,
                RuleAttribute::SuppressPrefixLen(length) => suppress = u8::try_from(*length).ok(),
                RuleAttribute::Protocol(protocol) => {
                    is_own = *protocol == RouteProtocol::Other(PROTOCOL);
                }
                _ => {}
            }
        }
        let action = match (message.header.action, suppress) {
            (RuleAction::ToTable, None) => Action::Lookup(table),
            (RuleAction::ToTable, Some(suppress)) => Action::LookupLonger { table, suppress },
            _ => Action::Unreachable,
        };
        is_own.then_some(Self {
            priority,
            to,
            action,
        })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// As `ip rule` prints it.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: to {} ", self.priority, self.to)?;
        match self.action {
            Action::Lookup(table) => write!(f, "lookup {table}"),
            Action::LookupLonger { table, suppress } => {
                write!(f, "lookup {table} suppress_prefixlength {suppress}")
            }
            Action::Unreachable => f.write_str("unreachable"),
        }
    }
}

impl NetworkError {
    /// Returns the error of the system.
    pub const fn io(&self) -> &io::Error {
        &self.source
    }

    /// Returns true if the process lacks CAP_NET_ADMIN.
    pub fn is_permission(&self) -> bool {
        self.source.kind() == io::ErrorKind::PermissionDenied
    }

    /// Returns true if what was to be added is there.
    pub fn is_present(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }
}

fn failed(action: impl Into<String>, source: io::Error) -> NetworkError {
    NetworkError {
        action: action.into(),
        source,
    }
}

fn address_message(index: u32, address: IpAddr, length: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address);
    message.header.prefix_len = length;
    message.header.index = index;
    // No other host is on the interface, and programs may use the address at once.
    message.header.flags = AddressHeaderFlags::Nodad;
    message.attributes = vec![
        AddressAttribute::Local(address),
        AddressAttribute::Address(address),
    ];
    message
}

const fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

const fn unspecified(is_ipv6: bool) -> IpAddr {
    match is_ipv6 {
        true => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        false => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    }
}

const fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The main table of routes.
pub const MAIN: u32 = 254;

/// The mark of routes and rules that courser has added, in the field for the program that did. It is free in
/// `/etc/iproute2/rt_protos`.
const PROTOCOL: u8 = 133;
