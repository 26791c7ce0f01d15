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

mod changes;
mod connection;
mod destination;
mod error;
mod interface;
mod route;
mod rule;

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{RouteAttribute, RouteMessage};
use netlink_packet_route::rule::RuleMessage;

use self::connection::Connection;
use self::destination::{family, unspecified};
use self::error::failed;
use self::interface::{address_message, link};

pub use self::changes::Changes;
pub use self::destination::Destination;
pub use self::error::NetworkError;
pub use self::interface::Interface;
pub use self::route::{LOCAL, MAIN, Route};
pub use self::rule::{Action, Rule};

/// A connection to the kernel, for the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Network {
    connection: Connection,
}

impl Network {
    /// Opens a connection.
    ///
    /// # Errors
    /// Returns an error if the system refuses a socket.
    pub fn open() -> Result<Self, NetworkError> {
        let connection = Connection::open();
        Ok(Self {
            connection: connection.map_err(|error| failed("open a socket of netlink", error))?,
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
        let replies = self
            .connection
            .call(RouteNetlinkMessage::GetLink(message), 0);
        let replies = replies.map_err(|error| failed(action(), error))?;
        let found = replies.into_iter().find_map(|reply| match reply {
            RouteNetlinkMessage::NewLink(link) => Some(link),
            _ => None,
        });
        let link = found.ok_or_else(|| failed(action(), io::ErrorKind::NotFound.into()))?;
        Ok(Interface::of(&link))
    }

    /// Sets the largest packet of an interface in bytes.
    ///
    /// # Errors
    /// Returns an error if the interface does not exist or the size is out of its range.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> Result<(), NetworkError> {
        let mut message = link(index);
        message.attributes.push(LinkAttribute::Mtu(mtu));
        let action = || format!("set the MTU of interface {index} to {mtu}");
        self.change(RouteNetlinkMessage::SetLink(message), 0, action)
    }

    /// Lets an interface carry packets.
    ///
    /// # Errors
    /// Returns an error if the interface does not exist.
    pub fn set_up(&mut self, index: u32) -> Result<(), NetworkError> {
        let mut message = link(index);
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
        let replies = self
            .connection
            .call(RouteNetlinkMessage::GetRoute(message), 0);
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
        let replies = self
            .connection
            .call(RouteNetlinkMessage::GetRoute(message), NLM_F_DUMP);
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
        let replies = self
            .connection
            .call(RouteNetlinkMessage::GetRule(message), NLM_F_DUMP);
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
        match self
            .connection
            .call(RouteNetlinkMessage::GetLink(link(index)), 0)
        {
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
        match self.connection.call(message, flags | NLM_F_ACK) {
            Ok(_) => Ok(()),
            Err(error) => Err(failed(action(), error)),
        }
    }
}
