//! Connection IDs that carry the number of a server, for load balancers.

use std::fmt;

use courser_wire::ConnectionId;

use super::generator::{ConnectionIdGenerator, ConnectionIdRotation};
use crate::rng::Rng;

/// Makes IDs that carry the ID of their server in clear, so that a load balancer, or another shard
/// of the same server, can steer a datagram without any state (draft-ietf-quic-load-balancers-21
/// §5.2).
///
/// | bytes | content |
/// |---|---|
/// | 1 | the configuration in the upper 3 bits, and 5 random bits |
/// | 1 to 15 | the ID of the server |
/// | 4 to 18 | random bytes, the nonce |
///
/// Datagrams for another server, or of another configuration, fail
/// [`ConnectionIdGenerator::is_valid`]. Servers whose server IDs differ can therefore share the key
/// of their stateless resets. An observer can see which connections belong to one server, and
/// which of its IDs, but not which of them belong to one connection.
///
/// ```
/// use std::sync::Arc;
/// # use courser_transport as courser;
/// use courser::{ConnectionIdGenerator, EndpointConfig, ServerIdGenerator};
///
/// // The third of several shards behind one address, with a nonce of 6 bytes.
/// let generator = ServerIdGenerator::new(0, &[3], 6)?;
/// assert_eq!(generator.length(), 8);
///
/// // A program that receives the datagrams of all shards finds the server ID in the first bytes of
/// // each connection ID.
/// let mut rng = courser::Rng::new([7; 32]);
/// let id = generator.generate(&mut rng);
/// assert_eq!(ServerIdGenerator::server_id_of(&id, 0, 1), Some(&[3][..]));
/// assert!(generator.is_valid(&id));
///
/// let mut config = EndpointConfig::from_seed([7; 32]);
/// config.connection_ids = Some(Arc::new(generator));
/// # Ok::<(), courser::ServerIdError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerIdGenerator {
    configuration: u8,
    /// The server ID as the beginning of a longer array, so that no allocation is needed.
    server_id: ConnectionId,
    nonce_length: usize,
    rotation: ConnectionIdRotation,
}

impl ServerIdGenerator {
    /// Creates a generator for one server.
    ///
    /// `configuration` is 0 to 6, the number of the set of server IDs, `server_id` has 1 to 15 bytes
    /// and the nonce 4 to 18. Both together have at most 19 bytes.
    ///
    /// # Errors
    ///
    /// [`ServerIdError`] contains the value that is out of its range.
    pub fn new(
        configuration: u8,
        server_id: &[u8],
        nonce_length: usize,
    ) -> Result<Self, ServerIdError> {
        let length = server_id.len();
        if configuration > MAX_CONFIGURATION {
            return Err(ServerIdError::Configuration(configuration));
        }
        if !(1..=MAX_SERVER_ID).contains(&length) {
            return Err(ServerIdError::ServerId(length));
        }
        if nonce_length < MIN_NONCE || length + nonce_length >= ConnectionId::MAX_LEN {
            return Err(ServerIdError::Nonce(nonce_length));
        }
        Ok(Self {
            configuration,
            server_id: ConnectionId::new(server_id).expect("15 bytes are fewer than 20"),
            nonce_length,
            rotation: ConnectionIdRotation::default(),
        })
    }

    /// Sets when the endpoint replaces the IDs of a connection. By default it never does.
    #[must_use]
    pub fn rotate(mut self, rotation: ConnectionIdRotation) -> Self {
        self.rotation = rotation;
        self
    }

    /// Returns the server ID of `length` bytes in a connection ID, which may have more bytes after
    /// it. Returns `None` if the ID is too short or is not of this configuration, as the first ID
    /// of a new client may be.
    pub fn server_id_of(id: &[u8], configuration: u8, length: usize) -> Option<&[u8]> {
        let (first, rest) = id.split_first()?;
        let is_known = first >> UNUSED_BITS == configuration;
        rest.get(..length).filter(|_| is_known)
    }
}

impl ConnectionIdGenerator for ServerIdGenerator {
    fn length(&self) -> usize {
        1 + self.server_id.len() + self.nonce_length
    }

    fn generate(&self, rng: &mut Rng) -> ConnectionId {
        let mut bytes = [0; ConnectionId::MAX_LEN];
        let id = &mut bytes[..self.length()];
        rng.fill(id);
        id[0] = self.configuration << UNUSED_BITS | id[0] & !(0xff << UNUSED_BITS);
        id[1..=self.server_id.len()].copy_from_slice(&self.server_id);
        ConnectionId::new(id).expect("the length was checked at construction")
    }

    fn is_valid(&self, id: &ConnectionId) -> bool {
        let found = Self::server_id_of(id, self.configuration, self.server_id.len());
        found == Some(&*self.server_id)
    }

    fn rotation(&self) -> ConnectionIdRotation {
        self.rotation
    }
}

/// A value outside the range that [`ServerIdGenerator::new`] accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ServerIdError {
    /// The configuration, which is 0 to 6: 7 marks IDs without a server ID.
    Configuration(u8),
    /// The length of the server ID, which is 1 to 15 bytes.
    ServerId(usize),
    /// The length of the nonce, which is 4 to 18 bytes, and at most 19 together with the server ID.
    Nonce(usize),
}

impl fmt::Display for ServerIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration(value) => {
                write!(
                    f,
                    "configuration is {value}, allowed is 0 to {MAX_CONFIGURATION}"
                )
            }
            Self::ServerId(length) => write!(
                f,
                "the server id has {length} bytes, allowed is 1 to {MAX_SERVER_ID}"
            ),
            Self::Nonce(length) => write!(
                f,
                "the nonce has {length} bytes, allowed is {MIN_NONCE} and more, and 19 together \
                 with the server id"
            ),
        }
    }
}

impl std::error::Error for ServerIdError {}

/// The largest number of a configuration (draft-ietf-quic-load-balancers-21 §3.1).
const MAX_CONFIGURATION: u8 = 6;
/// Bits of the first byte below the configuration.
const UNUSED_BITS: u32 = 5;
/// The longest server ID in bytes, and the shortest nonce (draft-ietf-quic-load-balancers-21 §5.1).
const MAX_SERVER_ID: usize = 15;
const MIN_NONCE: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn generator() -> ServerIdGenerator {
        ServerIdGenerator::new(5, &[0xab, 0xcd], 5).expect("within the ranges")
    }

    #[test]
    fn ids_carry_configuration_server_and_nonce() {
        let (generator, mut rng) = (generator(), Rng::new([7; 32]));
        let (one, two) = (generator.generate(&mut rng), generator.generate(&mut rng));
        assert_eq!((one.len(), generator.length()), (8, 8));
        for id in [one, two] {
            assert_eq!(id[0] >> 5, 5);
            assert_eq!(id[1..3], [0xab, 0xcd]);
            assert_eq!(
                ServerIdGenerator::server_id_of(&id, 5, 2),
                Some(&[0xab, 0xcd][..])
            );
            assert!(generator.is_valid(&id));
        }
        assert_ne!(one[3..], two[3..], "the nonces differ");
        let first: std::collections::HashSet<_> =
            (0..200).map(|_| generator.generate(&mut rng)[0]).collect();
        assert_eq!(first.len(), 32, "the unused bits are random");
    }

    #[test]
    fn ids_of_other_servers_and_configurations_are_not_accepted() {
        let (generator, mut rng) = (generator(), Rng::new([7; 32]));
        let others = [
            ServerIdGenerator::new(4, &[0xab, 0xcd], 5),
            ServerIdGenerator::new(5, &[0xab, 0xce], 5),
        ];
        for other in others {
            let id = other.expect("within the ranges").generate(&mut rng);
            assert!(!generator.is_valid(&id), "{id}");
        }
        let id = generator.generate(&mut rng);
        for length in 0..3 {
            let short = ConnectionId::new(&id[..length]).expect("short");
            assert!(!generator.is_valid(&short), "{length} bytes");
        }
    }

    #[test]
    fn ranges_are_checked_at_both_ends() {
        let made = |configuration, server: usize, nonce| {
            ServerIdGenerator::new(configuration, &[1; 20][..server], nonce)
        };
        assert!(made(0, 1, 4).is_ok() && made(6, 1, 18).is_ok() && made(6, 15, 4).is_ok());
        assert_eq!(made(7, 1, 4), Err(ServerIdError::Configuration(7)));
        assert_eq!(made(0, 0, 4), Err(ServerIdError::ServerId(0)));
        assert_eq!(made(0, 16, 4), Err(ServerIdError::ServerId(16)));
        assert_eq!(made(0, 1, 3), Err(ServerIdError::Nonce(3)));
        assert_eq!(made(0, 1, 19), Err(ServerIdError::Nonce(19)));
        assert_eq!(made(0, 15, 5), Err(ServerIdError::Nonce(5)));
        let text = ServerIdError::ServerId(16).to_string();
        assert_eq!(text, "the server id has 16 bytes, allowed is 1 to 15");
    }
}
