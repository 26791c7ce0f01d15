//! Families of IP addresses.

use std::net::IpAddr;

/// A family of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    pub(super) const fn has(self, address: IpAddr) -> bool {
        address.is_ipv6() == matches!(self, Self::V6)
    }
}
