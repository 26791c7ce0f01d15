//! Connection IDs that carry the number of a server, for load balancers.

mod cipher;
mod nonces;

use std::fmt;
use std::sync::Arc;

use courser_crypto::BlockKey;
use courser_wire::ConnectionId;

use self::nonces::Nonces;
use super::generator::{ConnectionIdGenerator, ConnectionIdRotation};
use crate::rng::Rng;

/// Makes IDs that carry the ID of their server, so that a load balancer, or another shard of the same
/// server, can steer a datagram without any state (draft-ietf-quic-load-balancers-21 §5.2).
///
/// | bytes | content |
/// |---|---|
/// | 1 | the configuration in the upper 3 bits, and 5 random bits |
/// | 1 to 15 | the ID of the server |
/// | 4 to 18 | the nonce: random bytes, or with a key a number that is used once |
///
/// Datagrams for another server, or of another configuration, fail
/// [`ConnectionIdGenerator::is_valid`]. Servers whose server IDs differ can therefore share the key
/// of their stateless resets. Without a key an observer can see which connections belong to one
/// server, and which of its IDs, but not which of them belong to one connection. With
/// [`encrypt`](Self::encrypt), only holders of the key can see it.
///
/// In an endpoint with several shards the last byte of a nonce in clear names the shard. Encrypted IDs
/// have no byte for it, so a shard forwards datagrams that belong to another one.
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
#[derive(Clone, Debug)]
pub struct ServerIdGenerator {
    configuration: u8,
    /// The server ID as the beginning of a longer array, so that no allocation is needed.
    server_id: ConnectionId,
    nonce_length: usize,
    rotation: ConnectionIdRotation,
    /// The key and nonces that encrypt all bytes except the first one; `None` leaves them in clear.
    encryption: Option<Encryption>,
    has_length: bool,
}

#[derive(Clone, Debug)]
struct Encryption {
    key: BlockKey,
    /// The nonces of all copies of the generator, so that none is used twice.
    nonces: Arc<Nonces>,
}

impl PartialEq for ServerIdGenerator {
    /// Compares the settings, which include the key.
    fn eq(&self, other: &Self) -> bool {
        let settings = |it: &Self| {
            (
                it.configuration,
                it.nonce_length,
                it.rotation,
                it.has_length,
            )
        };
        let key = |it: &Self| it.encryption.as_ref().map(|it| it.key.clone());
        settings(self) == settings(other)
            && self.server_id == other.server_id
            && key(self) == key(other)
    }
}

impl Eq for ServerIdGenerator {}

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
            encryption: None,
            has_length: false,
        })
    }

    /// Sets when the endpoint replaces the IDs of a connection. By default it never does.
    #[must_use]
    pub fn rotate(mut self, rotation: ConnectionIdRotation) -> Self {
        self.rotation = rotation;
        self
    }

    /// Encrypts the server ID and the nonce with AES-128, in one pass if they have 16 bytes together and in
    /// four passes otherwise (draft-ietf-quic-load-balancers-21 §5.4).
    ///
    /// All servers and load balancers of the configuration have the same random key. Nonces count up from a
    /// random number. Replace the key before a server has made 2^(8 · nonce length) IDs: they repeat
    /// then.
    ///
    /// ```
    /// # use courser_transport as courser;
    /// use courser::{ConnectionIdGenerator, ServerIdGenerator};
    ///
    /// let generator = ServerIdGenerator::new(2, &[3, 7], 6)?.encrypt(&[0x51; 16]);
    /// let id = generator.generate(&mut courser::Rng::new([7; 32]));
    ///
    /// // A load balancer has the configuration, any server ID of the same length, and the key.
    /// let balancer = ServerIdGenerator::new(2, &[0, 0], 6)?.encrypt(&[0x51; 16]);
    /// let mut bytes = id.to_vec();
    /// assert_eq!(balancer.open(&mut bytes), Some(&[3, 7][..]));
    /// # Ok::<(), courser::ServerIdError>(())
    /// ```
    #[must_use]
    pub fn encrypt(mut self, key: &[u8; 16]) -> Self {
        self.encryption = Some(Encryption {
            key: BlockKey::new(key),
            nonces: Arc::default(),
        });
        self
    }

    /// Writes the number of bytes after the first into the lower bits of the first byte, for hardware
    /// that finds keys by connection ID (draft-ietf-quic-load-balancers-21 §3.3). By default these bits
    /// are random.
    #[must_use]
    pub fn describe_length(mut self) -> Self {
        self.has_length = true;
        self
    }

    /// Returns the server ID in a connection ID, which may have more bytes after it, and decrypts the ID in
    /// place. Returns `None` if the ID is too short or not of this configuration, as the first ID of a new
    /// client may be. The ID of any server of the configuration is returned.
    pub fn open<'a>(&self, id: &'a mut [u8]) -> Option<&'a [u8]> {
        if let Some(encryption) = &self.encryption {
            let (first, rest) = id.split_first_mut()?;
            let sealed = rest.get_mut(..self.length() - 1)?;
            if *first >> UNUSED_BITS == self.configuration {
                cipher::decrypt(&encryption.key, sealed);
            }
        }
        Self::server_id_of(id, self.configuration, self.server_id.len())
    }

    /// Returns the server ID of `length` bytes in a connection ID without encryption, which may have more bytes after
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
        if self.has_length {
            let rest = u8::try_from(self.length() - 1).expect("at most 19");
            id[0] = self.configuration << UNUSED_BITS | rest;
        }
        let (server_id, nonce) = id[1..].split_at_mut(self.server_id.len());
        server_id.copy_from_slice(&self.server_id);
        if let Some(encryption) = &self.encryption {
            encryption.nonces.next(rng, nonce);
            cipher::encrypt(&encryption.key, &mut id[1..]);
        }
        ConnectionId::new(id).expect("the length was checked at construction")
    }

    fn is_valid(&self, id: &ConnectionId) -> bool {
        let mut bytes = [0; ConnectionId::MAX_LEN];
        let bytes = &mut bytes[..id.len()];
        bytes.copy_from_slice(id);
        self.open(bytes) == Some(&*self.server_id)
    }

    /// Returns the offset of the last byte of the nonce, unless it is encrypted.
    fn shard_offset(&self) -> Option<usize> {
        let is_clear = self.encryption.is_none();
        is_clear.then(|| self.length() - 1)
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

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = (0..hex.len()).step_by(2);
        digits
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal"))
            .collect()
    }

    const KEY: u128 = 0x8f95_f092_4576_5f80_2569_34e5_0c66_207f;

    /// Uses the test vectors of draft-ietf-quic-load-balancers-21 §B.2.
    #[test]
    fn encrypted_ids_match_the_vectors_of_the_draft() {
        for (configuration, server_id, nonce, id) in [
            (0, "ed793a", "ee080dbf", "0720b1d07b359d3c"),
            (
                1,
                "ed793a51d49b8f5fab65",
                "ee080dbf48",
                "2fcc381bc74cb4fbad2823a3d1f8fed2",
            ),
            (
                2,
                "ed793a51d49b8f5f",
                "ee080dbf48c0d1e5",
                "504dd2d05a7b0de9b2b9907afb5ecf8cc3",
            ),
            (
                3,
                "ed793a51d49b8f5fab",
                "ee080dbf48c0d1e55d",
                "125779c9cc86beb3a3a4a3ca96fce4bfe0cdbc",
            ),
        ] {
            let (server_id, nonce, mut id) = (bytes(server_id), bytes(nonce), bytes(id));
            // The ID of one vector names the configuration of another vector, in its first byte only.
            let written = id[0] >> 5;
            assert!(written == configuration || configuration == 3, "{id:?}");
            let generator = ServerIdGenerator::new(written, &server_id, nonce.len());
            let generator = generator
                .expect("within the ranges")
                .encrypt(&KEY.to_be_bytes())
                .describe_length();
            let nonces = &generator.encryption.as_ref().expect("a key").nonces;
            nonces.start_with(&nonce);
            let made = generator.generate(&mut Rng::new([7; 32]));
            assert_eq!(made[..], id, "configuration {configuration}");
            assert!(generator.is_valid(&made));
            assert_eq!(generator.open(&mut id), Some(&server_id[..]));
        }
    }

    /// draft-ietf-quic-load-balancers-21 §B.1.
    #[test]
    fn only_ids_in_clear_have_a_place_for_the_shard() {
        assert_eq!(generator().shard_offset(), Some(7));
        assert_eq!(generator().encrypt(&[1; 16]).shard_offset(), None);
    }

    #[test]
    fn ids_in_clear_describe_their_length() {
        let generator = ServerIdGenerator::new(0, &[0xc4, 0x60, 0x5e], 4).expect("in the ranges");
        let generator = generator.describe_length();
        let id = generator.generate(&mut Rng::new([7; 32]));
        assert_eq!(id[..4], bytes("07c4605e"));
        let mut vector = bytes("07c4605e4504cc4f");
        assert_eq!(generator.open(&mut vector), Some(&[0xc4, 0x60, 0x5e][..]));
    }

    #[test]
    fn encrypted_ids_never_repeat_and_are_valid_only_with_their_key() {
        let keyed = |key: u8, server_id: &[u8], nonce| {
            let generator = ServerIdGenerator::new(5, server_id, nonce).expect("in the ranges");
            generator.encrypt(&[key; 16])
        };
        let mut rng = Rng::new([7; 32]);
        for (server_id, nonce) in [(&[0xab, 0xcd][..], 4), (&[0xab; 8], 8), (&[0xab; 9], 5)] {
            let (generator, copy) = (keyed(1, server_id, nonce), keyed(1, server_id, nonce));
            assert_eq!(generator, copy);
            let shared = generator.clone();
            let mut made = std::collections::HashSet::new();
            for _ in 0..500 {
                for generator in [&generator, &shared] {
                    let id = generator.generate(&mut rng);
                    assert!(copy.is_valid(&id), "any nonce is valid");
                    assert!(made.insert(id[1..].to_vec()), "an ID is repeated");
                }
            }
            // A short server ID can match by chance.
            let id = |index: usize| made.iter().nth(index).expect("1000 IDs");
            for other in [keyed(2, server_id, nonce), keyed(1, &[1; 3], 8)] {
                assert_ne!(generator, other);
                let fits = |index| {
                    let full = [&[5 << 5], &id(index)[..]].concat();
                    other.is_valid(&ConnectionId::new(&full).expect("at most 20 bytes"))
                };
                let count = (0..200).filter(|index| fits(*index)).count();
                assert!(count < 5, "{count} of 200");
            }
        }
    }

    #[test]
    fn short_and_foreign_ids_are_not_opened() {
        let generator = generator().encrypt(&[1; 16]);
        let id = generator.generate(&mut Rng::new([7; 32]));
        for length in 0..id.len() {
            let mut short = id[..length].to_vec();
            assert_eq!(generator.open(&mut short), None, "{length} bytes");
        }
        let mut longer = [&id[..], &[1, 2]].concat();
        assert_eq!(generator.open(&mut longer), Some(&[0xab, 0xcd][..]));
        assert_eq!(longer[8..], [1, 2], "the rest stays");
        let mut foreign = id.to_vec();
        foreign[0] ^= 1 << 5;
        assert_eq!(generator.open(&mut foreign), None);
        assert_eq!(
            foreign[1..],
            id[1..],
            "an ID that is not opened is unchanged"
        );
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
