//! Version Negotiation in response to packets of unsupported versions (RFC 9000 §6.1).

use courser_wire::packet::{invariants, version_negotiation};
use courser_wire::version::{self, Version, Versions};
use courser_wire::{MIN_INITIAL_DATAGRAM, Writer};

use crate::rng::Rng;

/// Returns the Version Negotiation packet by which a server with these versions answers a datagram,
/// if one is due.
///
/// None is due for datagrams below 1200 bytes, with which no client starts a connection and which
/// would allow amplification (RFC 9000 §5.2.2), for Version Negotiation packets themselves (RFC
/// 9000 §6.1), for short headers, and for a supported version. Connection IDs of any length are
/// echoed (RFC 8999 §6).
///
/// The list ends in a reserved version, so that clients stay used to unknown ones (RFC 9000 §15).
/// The caller limits the rate: see [`super::reply_limiter::ReplyLimiter`].
pub fn answer(datagram: &[u8], supported: Versions, rng: &mut Rng) -> Option<Vec<u8>> {
    if datagram.len() < MIN_INITIAL_DATAGRAM || datagram[0] & LONG_HEADER == 0 {
        return None;
    }
    let header = invariants::decode(datagram, 0).ok()?;
    let is_supported =
        Version::from_value(header.version).is_some_and(|version| supported.contains(version));
    if header.version == version::NEGOTIATION || is_supported {
        return None;
    }
    // All offered versions (RFC 9368 §2.1).
    let mut versions: Vec<_> = supported.iter().map(Version::value).collect();
    versions.push(reserved_version(header.version, rng));
    let (destination, source) = (&datagram[header.source], &datagram[header.destination]);
    let mut answer = vec![0; version_negotiation::encoded_len(destination, source, &versions)];
    let [first_byte] = rng.array();
    let mut writer = Writer::new(&mut answer);
    version_negotiation::encode(&mut writer, first_byte, destination, source, &versions);
    Some(answer)
}

/// Returns a reserved version other than the one in the datagram: a client has to ignore the answer
/// if its own version is listed (RFC 9000 §6.2).
fn reserved_version(offered: u32, rng: &mut Rng) -> u32 {
    let reserved = version::reserved(u32::from_be_bytes(rng.array()));
    if reserved == offered {
        reserved ^ 0x1000_0000
    } else {
        reserved
    }
}

/// The bit of the first byte that marks a long header (RFC 8999 §5.1).
const LONG_HEADER: u8 = 0x80;

#[cfg(test)]
mod tests;
