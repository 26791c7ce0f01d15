//! Interfaces and their addresses.

use std::net::IpAddr;

use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};

use super::destination::family;

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

impl Interface {
    pub(super) fn of(link: &LinkMessage) -> Self {
        let mtu = link
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                LinkAttribute::Mtu(mtu) => Some(*mtu),
                _ => None,
            });
        Self {
            index: link.header.index,
            mtu: mtu.unwrap_or_default(),
            is_up: link.header.flags.contains(LinkFlags::Up),
        }
    }
}

/// Returns a message that names an interface.
pub(super) fn link(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}

/// Returns the address of a host on an interface.
pub(super) fn address_message(index: u32, address: IpAddr, length: u8) -> AddressMessage {
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
