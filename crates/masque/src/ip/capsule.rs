//! Capsules that assign addresses and advertise routes (RFC 9484 §4.7).

use std::net::IpAddr;

use courser_http3::Code;
use courser_wire::Reader;

use super::limits::{ADDRESSES, RANGES, REQUESTS};
use super::range::{AddressRange, InvalidRange, Routes};
use crate::prefix::Prefix;

/// The type of ADDRESS_ASSIGN.
pub const ADDRESS_ASSIGN: u64 = 0x01;
/// The type of ADDRESS_REQUEST.
pub const ADDRESS_REQUEST: u64 = 0x02;
/// The type of ROUTE_ADVERTISEMENT.
pub const ROUTE_ADVERTISEMENT: u64 = 0x03;

/// The types of capsules, with the longest values that can be valid within the limits of an end, in bytes.
pub const KINDS: [(u64, usize); 3] = [
    (ADDRESS_ASSIGN, ADDRESSES * LONGEST_ADDRESS),
    (ADDRESS_REQUEST, REQUESTS * LONGEST_ADDRESS),
    (ROUTE_ADVERTISEMENT, RANGES * LONGEST_RANGE),
];

/// A capsule of IP proxies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Capsule {
    /// All addresses that the sender has assigned to the receiver.
    AddressAssign(Vec<AssignedAddress>),
    /// Addresses that the sender wants.
    AddressRequest(Vec<RequestedAddress>),
    /// All ranges to which the sender forwards packets.
    RouteAdvertisement(Routes),
}

/// An entry of an ADDRESS_ASSIGN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AssignedAddress {
    /// The request that this answers, or 0.
    pub request: u64,
    /// The addresses. [`Prefix::NEW_IPV4`] or [`Prefix::NEW_IPV6`] with a request means that it was refused.
    pub prefix: Prefix,
}

/// An entry of an ADDRESS_REQUEST.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestedAddress {
    /// The ID of the request, which is not 0.
    pub request: u64,
    /// The addresses. An unspecified first address asks for any prefix of this length.
    pub prefix: Prefix,
}

/// The reason why a capsule resets the stream of its tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CapsuleError {
    /// The capsule ends inside of an entry.
    #[error("it ends inside of an entry")]
    Truncated,
    /// The version of an entry is neither 4 nor 6.
    #[error("IP version {0}, allowed are 4 and 6")]
    Version(u8),
    /// The length of a prefix exceeds that of its address.
    #[error("a prefix of {0} bits, longer than its address {1}")]
    PrefixLength(u8, IpAddr),
    /// An address has bits behind its prefix.
    #[error("the address {1} has bits behind its prefix of {0} bits")]
    HostBits(u8, IpAddr),
    /// An ADDRESS_REQUEST without an entry.
    #[error("an ADDRESS_REQUEST without an address")]
    NoRequest,
    /// A request ID is 0.
    #[error("a request ID of 0")]
    ZeroRequest,
    /// A request ID was used before.
    #[error("request ID {0} was used before")]
    UsedRequest(u64),
    /// Ranges are not ordered, or overlap.
    #[error("{0}")]
    Range(InvalidRange),
    /// There are more entries than this end accepts, or more requests in the life of a tunnel.
    #[error("{0} entries or requests, more than this end accepts")]
    TooMany(usize),
}

impl CapsuleError {
    /// Returns the code with which a stream of HTTP/3 is reset.
    pub const fn code(self) -> Code {
        match self {
            Self::TooMany(_) | Self::Range(InvalidRange::TooMany(_)) => Code::EXCESSIVE_LOAD,
            _ => Code::MESSAGE_ERROR,
        }
    }
}

impl From<InvalidRange> for CapsuleError {
    fn from(error: InvalidRange) -> Self {
        Self::Range(error)
    }
}

impl Capsule {
    /// Returns the type.
    pub const fn kind(&self) -> u64 {
        match self {
            Self::AddressAssign(_) => ADDRESS_ASSIGN,
            Self::AddressRequest(_) => ADDRESS_REQUEST,
            Self::RouteAdvertisement(_) => ROUTE_ADVERTISEMENT,
        }
    }

    /// Reads the value of a capsule of a type in [`KINDS`]. Others are read as ROUTE_ADVERTISEMENT.
    ///
    /// # Errors
    /// Returns an error if the capsule is malformed, or has more entries than this end accepts.
    pub fn decode(kind: u64, value: &[u8]) -> Result<Self, CapsuleError> {
        let mut reader = Reader::new(value);
        match kind {
            ADDRESS_ASSIGN => {
                let entries = addresses(&mut reader, ADDRESSES)?;
                let entry = |(request, prefix)| AssignedAddress { request, prefix };
                Ok(Self::AddressAssign(
                    entries.into_iter().map(entry).collect(),
                ))
            }
            ADDRESS_REQUEST => {
                let entries = addresses(&mut reader, REQUESTS)?;
                if entries.is_empty() {
                    return Err(CapsuleError::NoRequest);
                }
                if entries.iter().any(|(request, _)| *request == 0) {
                    return Err(CapsuleError::ZeroRequest);
                }
                let entry = |(request, prefix)| RequestedAddress { request, prefix };
                Ok(Self::AddressRequest(
                    entries.into_iter().map(entry).collect(),
                ))
            }
            _ => {
                let mut ranges = Vec::new();
                while !reader.is_empty() {
                    if ranges.len() >= RANGES {
                        return Err(InvalidRange::TooMany(ranges.len() + 1).into());
                    }
                    ranges.push(range(&mut reader)?);
                }
                Ok(Self::RouteAdvertisement(Routes::of_ordered(ranges)?))
            }
        }
    }

    /// Appends the value of the capsule.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::AddressAssign(entries) => entries
                .iter()
                .for_each(|entry| put_address(out, entry.request, entry.prefix)),
            Self::AddressRequest(entries) => entries
                .iter()
                .for_each(|entry| put_address(out, entry.request, entry.prefix)),
            Self::RouteAdvertisement(routes) => {
                for range in routes.ranges() {
                    out.push(version(range.start()));
                    put_octets(out, range.start());
                    put_octets(out, range.end());
                    out.push(range.protocol().unwrap_or(0));
                }
            }
        }
    }
}

fn addresses(reader: &mut Reader<'_>, most: usize) -> Result<Vec<(u64, Prefix)>, CapsuleError> {
    let mut entries = Vec::new();
    while !reader.is_empty() {
        if entries.len() >= most {
            return Err(CapsuleError::TooMany(entries.len() + 1));
        }
        let request = reader.varint().map_err(|_| CapsuleError::Truncated)?;
        let version = byte(reader)?;
        let address = address(reader, version)?;
        let bits = byte(reader)?;
        let prefix = Prefix::new(address, bits).map_err(|_| {
            match bits > Prefix::single(address).bits() {
                true => CapsuleError::PrefixLength(bits, address),
                false => CapsuleError::HostBits(bits, address),
            }
        })?;
        entries.push((request, prefix));
    }
    Ok(entries)
}

fn range(reader: &mut Reader<'_>) -> Result<AddressRange, CapsuleError> {
    let version = byte(reader)?;
    let (start, end) = (address(reader, version)?, address(reader, version)?);
    let protocol = byte(reader)?;
    Ok(AddressRange::new(start, end, Some(protocol))?)
}

fn byte(reader: &mut Reader<'_>) -> Result<u8, CapsuleError> {
    reader.u8().map_err(|_| CapsuleError::Truncated)
}

fn address(reader: &mut Reader<'_>, version: u8) -> Result<IpAddr, CapsuleError> {
    let octets = match version {
        4 => reader.array::<4>().map(IpAddr::from),
        6 => reader.array::<16>().map(IpAddr::from),
        version => return Err(CapsuleError::Version(version)),
    };
    octets.map_err(|_| CapsuleError::Truncated)
}

fn put_address(out: &mut Vec<u8>, request: u64, prefix: Prefix) {
    put_varint(out, request);
    out.push(version(prefix.first()));
    put_octets(out, prefix.first());
    out.push(prefix.bits());
}

/// Appends a variable-length integer (RFC 9000 §16) in its longest form, which all values below 2^62 have.
fn put_varint(out: &mut Vec<u8>, value: u64) {
    match u8::try_from(value) {
        Ok(small @ 0..=0x3f) => out.push(small),
        _ => out.extend((value | 0b11 << 62).to_be_bytes()),
    }
}

fn put_octets(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => out.extend(v4.octets()),
        IpAddr::V6(v6) => out.extend(v6.octets()),
    }
}

const fn version(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 4,
        IpAddr::V6(_) => 6,
    }
}

/// Bytes of the longest entry with an address: request ID, version, IPv6 address, length.
const LONGEST_ADDRESS: usize = 8 + 1 + 16 + 1;

/// Bytes of the longest range: version, two IPv6 addresses, protocol.
const LONGEST_RANGE: usize = 1 + 16 + 16 + 1;

#[cfg(test)]
mod tests;
