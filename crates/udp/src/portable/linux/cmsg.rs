//! Control messages in the layout of the kernel. A `cmsghdr` is length, level and type, followed by
//! the data. Everything starts at a multiple of the machine word.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use courser_base::{Ecn, Unreachable};
use libc::c_int;

/// A buffer for control messages.
///
/// With our options the kernel writes at most a TOS or traffic class, an IPv6 packet info and a
/// segment size: 88 bytes. The rest of the buffer is for options that were set on a socket before
/// it was passed to us.
#[derive(Clone)]
#[repr(align(8))]
pub(super) struct ControlBuffer {
    bytes: [u8; ROOM],
    filled: usize,
}

impl ControlBuffer {
    pub(super) fn new() -> Self {
        Self {
            bytes: [0; ROOM],
            filled: 0,
        }
    }

    pub(super) fn filled(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Returns the whole buffer, for the kernel to fill.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    pub(super) fn set_filled(&mut self, len: usize) {
        self.filled = len.min(ROOM);
    }

    /// Appends the size of the datagrams in the batch. The kernel's field has 16 bits; a larger
    /// size means a single datagram anyway, because no batch is longer than 65,507 bytes.
    pub(super) fn push_segment_size(&mut self, size: Option<usize>) {
        if let Some(size) = size.and_then(|size| u16::try_from(size).ok()) {
            self.push(libc::SOL_UDP, libc::UDP_SEGMENT, &size.to_ne_bytes());
        }
    }

    pub(super) fn push_mark(&mut self, mark: Ecn, is_ipv4: bool) {
        let bits = c_int::from(mark.to_bits()).to_ne_bytes();
        if is_ipv4 {
            self.push(libc::SOL_IP, libc::IP_TOS, &bits);
        } else {
            self.push(libc::SOL_IPV6, libc::IPV6_TCLASS, &bits);
        }
    }

    /// Appends the source address of the batch. The route selects the interface.
    pub(super) fn push_source(&mut self, source: IpAddr) {
        match source {
            IpAddr::V4(ip) => {
                let mut info = [0; IN_PKTINFO_LEN];
                info[SPEC_DST..SPEC_DST + 4].copy_from_slice(&ip.octets());
                self.push(libc::SOL_IP, libc::IP_PKTINFO, &info);
            }
            IpAddr::V6(ip) => {
                let mut info = [0; IN6_PKTINFO_LEN];
                info[..16].copy_from_slice(&ip.octets());
                self.push(libc::SOL_IPV6, libc::IPV6_PKTINFO, &info);
            }
        }
    }

    fn push(&mut self, level: c_int, kind: c_int, data: &[u8]) {
        let room = &mut self.bytes[self.filled..];
        let len = HEADER_LEN + data.len();
        room[..WORD].copy_from_slice(&len.to_ne_bytes());
        room[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
        room[WORD + 4..HEADER_LEN].copy_from_slice(&kind.to_ne_bytes());
        room[HEADER_LEN..len].copy_from_slice(data);
        self.filled += len.next_multiple_of(WORD);
    }
}

/// The kernel's information about received datagrams. Unknown messages are skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Control {
    pub(super) segment_size: Option<usize>,
    pub(super) ecn: Ecn,
    pub(super) local: Option<IpAddr>,
    pub(super) error: Option<ExtendedError>,
}

impl Control {
    pub(super) fn decode(bytes: &[u8]) -> Self {
        let mut control = Self::default();
        for (level, kind, data) in (Messages { rest: bytes }) {
            match (level, kind) {
                (libc::SOL_UDP, libc::UDP_GRO) => control.segment_size = integer(data),
                (libc::SOL_IP, libc::IP_TOS) | (libc::SOL_IPV6, libc::IPV6_TCLASS) => {
                    control.ecn = mark(data);
                }
                (libc::SOL_IP, libc::IP_PKTINFO) => {
                    control.local = array(data, SPEC_DST).map(|ip| Ipv4Addr::from(ip).into());
                }
                (libc::SOL_IPV6, libc::IPV6_PKTINFO) => {
                    let ip = array(data, 0).map(|ip| IpAddr::V6(Ipv6Addr::from(ip)));
                    control.local = ip.map(|ip| ip.to_canonical());
                }
                (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR) => {
                    control.error = extended_error(data);
                }
                _ => {}
            }
        }
        control
    }
}

/// One message of the error queue; the kernel calls it `sock_extended_err`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ExtendedError {
    pub(super) errno: u32,
    pub(super) origin: u8,
    pub(super) info: u32,
}

impl ExtendedError {
    /// Returns true if the message came from a router or a host instead of the local kernel.
    pub(super) fn is_icmp(self) -> bool {
        matches!(
            self.origin,
            libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6
        )
    }

    pub(super) fn is_too_big(self) -> bool {
        self.is_icmp() && self.errno == libc::EMSGSIZE.cast_unsigned()
    }

    /// Returns the reason for which the destination cannot be reached, if the message says that.
    /// The kernel converts the codes of ICMP to error codes.
    pub(super) fn unreachable(self) -> Option<Unreachable> {
        match self.errno.cast_signed() {
            _ if !self.is_icmp() => None,
            libc::ECONNREFUSED | libc::ENOPROTOOPT => Some(Unreachable::Port),
            // EACCES stands for a filter, over IPv6 only.
            libc::EHOSTUNREACH | libc::EHOSTDOWN | libc::EACCES => Some(Unreachable::Host),
            libc::ENETUNREACH => Some(Unreachable::Network),
            _ => None,
        }
    }
}

/// An iterator over the messages. Ends at the first one that does not fit.
struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Messages<'a> {
    type Item = (c_int, c_int, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let len = usize::from_ne_bytes(array(self.rest, 0)?);
        let level = c_int::from_ne_bytes(array(self.rest, WORD)?);
        let kind = c_int::from_ne_bytes(array(self.rest, WORD + 4)?);
        let data = self.rest.get(HEADER_LEN..len)?;
        // The last message may come without its padding.
        self.rest = self
            .rest
            .get(len.next_multiple_of(WORD)..)
            .unwrap_or_default();
        Some((level, kind, data))
    }
}

/// Decodes `sock_extended_err`: errno, then origin, type, code and padding in a byte each, then
/// info and data. The address of the ICMP message's sender follows. It is ignored, because anyone
/// can forge it.
fn extended_error(data: &[u8]) -> Option<ExtendedError> {
    Some(ExtendedError {
        errno: u32::from_ne_bytes(array(data, 0)?),
        origin: *data.get(4)?,
        info: u32::from_ne_bytes(array(data, 8)?),
    })
}

/// Decodes an ECN mark. IP_TOS is a byte, IPV6_TCLASS an integer.
fn mark(data: &[u8]) -> Ecn {
    let bits = match array(data, 0) {
        Some(integer) => c_int::from_ne_bytes(integer).to_le_bytes()[0],
        None => data.first().copied().unwrap_or(0),
    };
    Ecn::from_bits(bits)
}

fn integer(data: &[u8]) -> Option<usize> {
    let value = c_int::from_ne_bytes(array(data, 0)?);
    usize::try_from(value).ok().filter(|size| *size > 0)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

const ROOM: usize = 256;
const WORD: usize = size_of::<usize>();
const HEADER_LEN: usize = WORD + 2 * size_of::<c_int>();

/// Length of `in_pktinfo`: the interface, the local address, and the destination address in the
/// packet header. The two addresses differ only for multicast and broadcast datagrams; replies use
/// the local one.
const IN_PKTINFO_LEN: usize = 12;
const SPEC_DST: usize = 4;
/// Length of `in6_pktinfo`: address, interface.
const IN6_PKTINFO_LEN: usize = 20;

#[cfg(test)]
mod tests;
