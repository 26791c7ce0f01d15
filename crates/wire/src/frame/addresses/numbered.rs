//! The fields that the frames with an address share: a number, the address, the port.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::error::DecodeError;
use crate::frame::FrameType;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// The types of a frame for each family of addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Types {
    pub(super) ipv4: FrameType,
    pub(super) ipv6: FrameType,
}

impl Types {
    pub(super) fn of(self, address: SocketAddr) -> FrameType {
        match address.ip().to_canonical() {
            IpAddr::V4(_) => self.ipv4,
            IpAddr::V6(_) => self.ipv6,
        }
    }
}

pub(super) fn encoded_len(types: Types, number: u64, address: SocketAddr) -> usize {
    let of_ip = match address.ip().to_canonical() {
        IpAddr::V4(_) => 4,
        IpAddr::V6(_) => 16,
    };
    varint_len(types.of(address).0) + varint_len(number) + of_ip + 2
}

pub(super) fn encode(writer: &mut Writer<'_>, types: Types, number: u64, address: SocketAddr) {
    types.of(address).encode(writer);
    writer.varint(number);
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => writer.bytes(&ip.octets()),
        IpAddr::V6(ip) => writer.bytes(&ip.octets()),
    }
    writer.u16(address.port());
}

/// Reads the fields behind the type. An IPv4-mapped IPv6 address is returned as the IPv4 address.
pub(super) fn decode(
    reader: &mut Reader<'_>,
    is_ipv6: bool,
) -> Result<(u64, SocketAddr), DecodeError> {
    let number = reader.varint()?;
    let ip = match is_ipv6 {
        false => IpAddr::V4(Ipv4Addr::from(reader.array::<4>()?)),
        true => IpAddr::V6(Ipv6Addr::from(reader.array::<16>()?)).to_canonical(),
    };
    Ok((number, SocketAddr::from((ip, reader.u16()?))))
}
