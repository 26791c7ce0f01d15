//! The content of address validation tokens, and their checks (RFC 9000 §8.1).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use courser_base::{ScopedIp, canonical};
use courser_crypto::token_seal::{NONCE_LEN, TokenKey, sealed_len};
use courser_wire::{ConnectionId, Reader, Version, Writer};

use super::token_filter::TokenFilter;
use super::validation_token::Nonce;
pub use super::validation_token::{CLOCK_SKEW, SystemSeconds, ValidationToken};
use crate::config::TokenLog;
#[cfg(test)]
use crate::config::{RETRY_LIFETIME, VALIDATION_LIFETIME};
use crate::rng::Rng;

/// The times for which tokens are valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifetimes {
    pub retry: Duration,
    pub validation: Duration,
}

/// The properties of a first Initial against which its token is checked.
#[derive(Clone, Copy, Debug)]
pub struct Presented<'a> {
    /// The token, possibly empty.
    pub token: &'a [u8],
    /// The source address of the datagram.
    pub peer: SocketAddr,
    /// The Destination Connection ID.
    pub destination: ConnectionId,
    /// The version of QUIC.
    pub version: Version,
    /// The time of arrival.
    pub now: SystemSeconds,
    /// The times for which tokens are valid.
    pub lifetimes: Lifetimes,
}

/// The result of checking the token of a first Initial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressProof {
    /// There is no valid token. Proceed as without one (RFC 9000 §8.1.3).
    None,
    /// The client answers our Retry. The fields are part of our transport parameters.
    Retry(RetryToken),
    /// The client has connected from the same address before. The token is valid once
    /// ([`AddressProof::claim`]).
    Validation(ValidationToken),
    /// The client answers a Retry with an invalid token, and accepts no other Retry. Close with
    /// INVALID_TOKEN (RFC 9000 §8.1.2).
    InvalidRetry,
}

impl AddressProof {
    /// Uses up a token from NEW_TOKEN. Returns `None` if it was used before.
    ///
    /// Call this after the packet with the token was opened, because attackers on the path can copy the
    /// token into a packet that does not open.
    pub fn claim(self, filter: &mut TokenFilter, now: SystemSeconds) -> Self {
        match self {
            Self::Validation(token) if !filter.use_once(&token, now) => Self::None,
            proof => proof,
        }
    }

    /// Uses up a token from NEW_TOKEN like [`AddressProof::claim`], in the log of the program.
    pub fn claim_in(self, log: &dyn TokenLog, lifetime: Duration) -> Self {
        let Self::Validation(token) = self else {
            return self;
        };
        let nonce = u128::from_be_bytes(token.nonce);
        let issued = Duration::from_secs(token.issued.0);
        let first = || log.use_once(nonce, issued, lifetime);
        match catch_unwind(AssertUnwindSafe(first)) {
            Ok(true) => self,
            Ok(false) | Err(_) => Self::None,
        }
    }
}

impl Presented<'_> {
    /// Checks the token. One from NEW_TOKEN stays unused until [`AddressProof::claim`].
    ///
    /// Opens at most [`RetryToken::LEN`] bytes; a token of an unexpected length costs nothing.
    pub fn judge(&self, key: &TokenKey, filter: &TokenFilter) -> AddressProof {
        match (self.token.first(), self.token.len()) {
            (Some(&first), RetryToken::LEN) if version_of(RETRY, first).is_some() => {
                RetryToken::open(key, self.token)
                    .filter(|token| token.is_valid_for(self))
                    .map_or(AddressProof::InvalidRetry, AddressProof::Retry)
            }
            (Some(&first), ValidationToken::LEN) if version_of(VALIDATION, first).is_some() => {
                ValidationToken::open(key, self.token)
                    .filter(|token| token.is_valid_for(self) && filter.is_unused(token))
                    .map_or(AddressProof::None, AddressProof::Validation)
            }
            _ => AddressProof::None,
        }
    }
}

/// The content of the token in a Retry packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetryToken {
    /// The address of the client.
    pub address: SocketAddr,
    /// The Destination Connection ID of the client's first Initial.
    pub original_destination: ConnectionId,
    /// The Source Connection ID of the Retry packet, to which the client must address its next
    /// Initial.
    pub retry_source: ConnectionId,
    /// The version of QUIC of the Retry packet, which the client must not change (RFC 9369 §4.1).
    pub version: Version,
    /// The time of issue.
    pub issued: SystemSeconds,
}

impl RetryToken {
    /// Length of every sealed token in bytes. It is constant, so that it reveals nothing.
    pub const LEN: usize = 1 + sealed_len(Self::CONTENT_LEN);
    const CONTENT_LEN: usize = IP_LEN + 2 + 2 * (1 + ConnectionId::MAX_LEN) + 8;

    /// Seals the token, which makes it unreadable and unforgeable.
    pub fn seal(&self, key: &TokenKey, rng: &mut Rng) -> Vec<u8> {
        let mut content = [0; Self::CONTENT_LEN];
        let mut writer = Writer::new(&mut content);
        write_ip(&mut writer, ScopedIp::of(self.address));
        writer.u16(self.address.port());
        write_id(&mut writer, &self.original_destination);
        write_id(&mut writer, &self.retry_source);
        writer.u64(self.issued.0);
        seal(first_byte(RETRY, self.version), &content, key, rng)
    }

    /// Opens a token. Returns `None` if it was not sealed with `key`.
    pub fn open(key: &TokenKey, token: &[u8]) -> Option<Self> {
        let (version, content) = open(RETRY, Self::LEN, key, token)?;
        let mut reader = Reader::new(&content);
        let ip = read_ip(&mut reader)?;
        let port = reader.u16().ok()?;
        let original_destination = read_id(&mut reader)?;
        let retry_source = read_id(&mut reader)?;
        let issued = SystemSeconds(reader.u64().ok()?);
        Some(Self {
            address: ip.with_port(port),
            original_destination,
            retry_source,
            version,
            issued,
        })
    }

    fn is_valid_for(&self, presented: &Presented<'_>) -> bool {
        self.address == canonical(presented.peer)
            && self.retry_source == presented.destination
            && self.version == presented.version
            && is_fresh(self.issued, presented.now, presented.lifetimes.retry)
    }
}

impl ValidationToken {
    /// Length of every sealed token in bytes. It is constant, so that it reveals nothing.
    pub const LEN: usize = 1 + sealed_len(Self::CONTENT_LEN);
    const CONTENT_LEN: usize = IP_LEN + 8 + size_of::<Nonce>();

    /// Creates a unique token for the client at `ip`, on a connection of `version`.
    pub fn new(ip: ScopedIp, version: Version, now: SystemSeconds, rng: &mut Rng) -> Self {
        Self {
            ip,
            version,
            issued: now,
            nonce: rng.array(),
        }
    }

    /// Seals the token, which makes it unreadable and unforgeable.
    pub fn seal(&self, key: &TokenKey, rng: &mut Rng) -> Vec<u8> {
        let mut content = [0; Self::CONTENT_LEN];
        let mut writer = Writer::new(&mut content);
        write_ip(&mut writer, self.ip);
        writer.u64(self.issued.0);
        writer.bytes(&self.nonce);
        seal(first_byte(VALIDATION, self.version), &content, key, rng)
    }

    /// Opens a token. Returns `None` if it was not sealed with `key`.
    pub fn open(key: &TokenKey, token: &[u8]) -> Option<Self> {
        let (version, content) = open(VALIDATION, Self::LEN, key, token)?;
        let mut reader = Reader::new(&content);
        let ip = read_ip(&mut reader)?;
        let issued = SystemSeconds(reader.u64().ok()?);
        Some(Self {
            ip,
            version,
            issued,
            nonce: reader.array().ok()?,
        })
    }

    fn is_valid_for(&self, presented: &Presented<'_>) -> bool {
        self.ip == ScopedIp::of(presented.peer)
            && self.version == presented.version
            && is_fresh(self.issued, presented.now, presented.lifetimes.validation)
    }
}

fn is_fresh(issued: SystemSeconds, now: SystemSeconds, lifetime: Duration) -> bool {
    issued <= now + CLOCK_SKEW && now.saturating_since(issued) <= lifetime
}

/// The first byte of a token, unencrypted and authenticated. The kinds must be distinguishable
/// even if a token does not open, because an invalid one from a Retry ends the attempt and one
/// from NEW_TOKEN does not (RFC 9000 §8.1.1). Each version of QUIC has its own, because a token
/// is invalid in another one (RFC 9369 §5).
const RETRY: u8 = 0xa5;
const VALIDATION: u8 = 0x5a;

/// Returns the first byte of one kind of token in a version. Version 1 has the kind itself.
fn first_byte(kind: u8, version: Version) -> u8 {
    match version {
        Version::V1 => kind,
        _ => kind ^ LATER_VERSION,
    }
}

const LATER_VERSION: u8 = 0x03;

/// Returns the version of a token of this kind with this first byte.
fn version_of(kind: u8, first: u8) -> Option<Version> {
    let is_same = |&version: &Version| first_byte(kind, version) == first;
    Version::ALL.into_iter().find(is_same)
}

fn seal(kind: u8, content: &[u8], key: &TokenKey, rng: &mut Rng) -> Vec<u8> {
    let mut token = Vec::with_capacity(1 + sealed_len(content.len()));
    token.push(kind);
    key.seal(rng.array::<NONCE_LEN>(), content, &[kind], &mut token);
    token
}

fn open(kind: u8, len: usize, key: &TokenKey, token: &[u8]) -> Option<(Version, Vec<u8>)> {
    let (&first, sealed) = token.split_first()?;
    if token.len() != len {
        return None;
    }
    let version = version_of(kind, first)?;
    let content = key.open(sealed, &[first])?;
    Some((version, content))
}

/// Writes the same bytes for an IPv4 address and for the IPv6 address that represents it on a
/// dual-stack socket. The zone is included, because a link-local address belongs to another host on
/// another link.
fn write_ip(writer: &mut Writer<'_>, ip: ScopedIp) {
    let bytes = match ip.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    writer.bytes(&bytes.octets());
    writer.u32(ip.scope_id());
}

fn read_ip(reader: &mut Reader<'_>) -> Option<ScopedIp> {
    let ip = Ipv6Addr::from(reader.array::<16>().ok()?);
    Some(ScopedIp::new(ip, reader.u32().ok()?))
}

/// Bytes of an address with its zone.
const IP_LEN: usize = 16 + 4;

fn write_id(writer: &mut Writer<'_>, id: &ConnectionId) {
    writer.u8(u8::try_from(id.len()).expect("at most MAX_LEN"));
    writer.bytes(id);
    writer.zeros(ConnectionId::MAX_LEN - id.len());
}

fn read_id(reader: &mut Reader<'_>) -> Option<ConnectionId> {
    let len = usize::from(reader.u8().ok()?);
    let bytes: [u8; ConnectionId::MAX_LEN] = reader.array().ok()?;
    ConnectionId::new(bytes.get(..len)?)
}

#[cfg(test)]
mod tests;
