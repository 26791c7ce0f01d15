//! Generation of our own connection IDs.

use std::fmt;
use std::time::Duration;

use courser_wire::ConnectionId;

use crate::rng::Rng;

/// Makes the connection IDs by which peers address an endpoint.
///
/// Implement it to carry information in the IDs, for example the number of a server behind a load
/// balancer. [`ServerIdGenerator`](crate::ServerIdGenerator) is such a generator. Pass yours in
/// [`EndpointConfig::connection_ids`](crate::EndpointConfig::connection_ids). Several endpoints may
/// share one.
///
/// The endpoint calls these methods while it holds its lock, so they must return at once. A
/// connection that gets no ID fails with a [`ConnectionIdError`]. A panic of a generator is such an
/// error as well.
///
/// ```
/// # use courser_transport as courser;
/// # use courser_wire::ConnectionId;
/// use std::sync::Arc;
/// # /*
/// use courser::ConnectionId;
/// # */
/// use courser::{ConnectionIdGenerator, EndpointConfig, Rng};
///
/// /// Makes IDs of 12 bytes, of which the first two are the number of a machine.
/// #[derive(Debug)]
/// struct Machine(u16);
///
/// impl ConnectionIdGenerator for Machine {
///     fn length(&self) -> usize {
///         12
///     }
///
///     fn generate(&self, rng: &mut Rng) -> ConnectionId {
///         let mut id: [u8; 12] = rng.array();
///         id[..2].copy_from_slice(&self.0.to_be_bytes());
///         ConnectionId::new(&id).expect("at most 20 bytes")
///     }
///
///     fn is_valid(&self, id: &ConnectionId) -> bool {
///         id.starts_with(&self.0.to_be_bytes())
///     }
/// }
///
/// let mut config = EndpointConfig::from_seed([7; 32]);
/// config.connection_ids = Some(Arc::new(Machine(300)));
/// assert!(config.validate().is_ok());
/// ```
pub trait ConnectionIdGenerator: fmt::Debug + Send + Sync {
    /// Returns the length of every ID in bytes, 0 to 20.
    ///
    /// The endpoint asks once. The length never changes, because a short header does not contain
    /// the length of its ID (RFC 9000 §5.2).
    ///
    /// IDs of 8 bytes and more let an endpoint have any number of connections. With 0 bytes it has
    /// one connection for each pair of addresses, which suits clients.
    fn length(&self) -> usize;

    /// Makes an ID of [`ConnectionIdGenerator::length`] bytes that no observer can correlate with
    /// other IDs of the same connection (RFC 9000 §5.1).
    ///
    /// `rng` is the endpoint's generator of random numbers, of cryptographic quality. The endpoint
    /// calls this method up to 8 times if the IDs are in use already.
    fn generate(&self, rng: &mut Rng) -> ConnectionId;

    /// Returns false for an ID that this generator cannot have made. Default true.
    ///
    /// The endpoint asks for each datagram with an ID other than that of the datagram before, and
    /// then drops it without a search for its connection and without a stateless reset. Initial and
    /// 0-RTT packets are exempt, because clients choose their first IDs themselves. A stateless
    /// reset from the peer still ends its connection.
    ///
    /// Servers with the same [`EndpointConfig::reset_key`](crate::EndpointConfig::reset_key) need a
    /// check that rejects the IDs of the other servers. Otherwise a datagram at the wrong server
    /// would end a connection of the right one (RFC 9000 §21.11). IDs from before a restart must
    /// pass, so that they get a stateless reset.
    fn is_valid(&self, id: &ConnectionId) -> bool {
        let _ = id;
        true
    }

    /// Returns the offset of a byte that an endpoint with several shards may overwrite in each ID, with the
    /// number of the shard in clear. By default there is none.
    ///
    /// The byte lets the system deliver each datagram to its shard. It must not matter to
    /// [`ConnectionIdGenerator::is_valid`] or to a load balancer, so it is not part of what a format
    /// encrypts. A generator with such a format makes IDs that are one byte longer. Without such a
    /// byte, a shard forwards datagrams that belong to another one, which happens after a client has moved.
    fn shard_offset(&self) -> Option<usize> {
        None
    }

    /// Returns when the endpoint replaces the IDs of a connection. By default it never does.
    ///
    /// The endpoint asks once.
    fn rotation(&self) -> ConnectionIdRotation {
        ConnectionIdRotation::default()
    }
}

/// Conditions under which an endpoint gives the peer new connection IDs and asks it to retire all
/// earlier ones (RFC 9000 §5.1.2).
///
/// The endpoint checks them when a datagram arrives, so an idle connection stays idle. It replaces
/// the IDs of a connection at most once per second, and not before the peer has retired those that
/// were replaced before (limit K175).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConnectionIdRotation {
    /// Time for which a set of IDs is used. `None` sets no limit.
    pub lifetime: Option<Duration>,
    /// Datagrams that may arrive for a set of IDs. `None` sets no limit.
    pub datagrams: Option<u64>,
}

/// The reason why a generator returned no usable connection ID.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConnectionIdError {
    /// All IDs that the generator made are in use.
    NoneFree,
    /// The generator made an ID of another length than it announced.
    Length {
        /// Length of the ID in bytes.
        made: usize,
        /// The result of [`ConnectionIdGenerator::length`].
        announced: usize,
    },
    /// The generator does not accept an ID that it made.
    NotAccepted,
    /// The generator panicked; the endpoint caught the panic.
    Panicked,
}

impl fmt::Display for ConnectionIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoneFree => f.write_str("no free connection id"),
            Self::Length { made, announced } => write!(
                f,
                "the generator made a connection id of {made} bytes, and announced {announced}"
            ),
            Self::NotAccepted => f.write_str("the generator rejects its own connection id"),
            Self::Panicked => f.write_str("the generator of connection ids panicked"),
        }
    }
}

impl std::error::Error for ConnectionIdError {}

/// Makes IDs of random bytes only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomIdGenerator {
    length: usize,
    rotation: ConnectionIdRotation,
}

impl RandomIdGenerator {
    /// The length in bytes that [`RandomIdGenerator::default`] uses.
    pub const DEFAULT_LENGTH: usize = 8;

    /// Creates a generator of IDs of `length` bytes, 0 to 20. Returns `None` for more.
    ///
    /// An endpoint can have no more connections than there are IDs, which matters below 4 bytes.
    pub fn new(length: usize) -> Option<Self> {
        (length <= ConnectionId::MAX_LEN).then_some(Self {
            length,
            rotation: ConnectionIdRotation::default(),
        })
    }

    /// Sets when the endpoint replaces the IDs of a connection. By default it never does.
    #[must_use]
    pub fn rotate(mut self, rotation: ConnectionIdRotation) -> Self {
        self.rotation = rotation;
        self
    }
}

impl Default for RandomIdGenerator {
    fn default() -> Self {
        Self {
            length: Self::DEFAULT_LENGTH,
            rotation: ConnectionIdRotation::default(),
        }
    }
}

impl ConnectionIdGenerator for RandomIdGenerator {
    fn length(&self) -> usize {
        self.length
    }

    fn generate(&self, rng: &mut Rng) -> ConnectionId {
        random(self.length, rng)
    }

    fn shard_offset(&self) -> Option<usize> {
        self.length.checked_sub(1)
    }

    fn rotation(&self) -> ConnectionIdRotation {
        self.rotation
    }
}

/// Makes a random ID of `length` bytes, 20 at most.
pub(super) fn random(length: usize, rng: &mut Rng) -> ConnectionId {
    let mut bytes = [0; ConnectionId::MAX_LEN];
    let id = &mut bytes[..length];
    rng.fill(id);
    ConnectionId::new(id).expect("the length was checked at construction")
}

#[cfg(test)]
mod tests;
