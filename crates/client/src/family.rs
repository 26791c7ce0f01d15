//! Families of IP addresses.

use std::net::IpAddr;

/// A family of IP addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4 addresses only.
    V4,
    /// IPv6 addresses only.
    V6,
}

impl Family {
    pub(super) const fn has(self, address: IpAddr) -> bool {
        address.is_ipv6() == matches!(self, Self::V6)
    }
}
