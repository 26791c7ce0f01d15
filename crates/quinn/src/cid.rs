//! Generators of connection IDs. RFC 9000 §5.1.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::hmac;
use courser_quic as quic;

use crate::ConnectionId;
use crate::ids::MAX_CONNECTION_ID;

/// Makes the connection IDs of an endpoint.
pub trait ConnectionIdGenerator: Send + Sync {
    /// Makes an ID of [`cid_len`](Self::cid_len) bytes that observers cannot correlate with others.
    fn generate_cid(&mut self) -> ConnectionId;

    /// Checks whether this generator can have made an ID. By default every ID passes.
    ///
    /// # Errors
    /// Returns [`InvalidCid`] if it cannot.
    fn validate(&self, cid: &ConnectionId) -> Result<(), InvalidCid> {
        let _ = cid;
        Ok(())
    }

    /// Returns the length of every ID in bytes, 0 to 20.
    fn cid_len(&self) -> usize;

    /// Returns the time after which the endpoint replaces the IDs of a connection; `None` if it never does.
    fn cid_lifetime(&self) -> Option<Duration>;
}

/// An error for a connection ID that a generator cannot have made.
#[derive(Clone, Copy, Debug)]
pub struct InvalidCid;

/// Makes IDs of random bytes.
#[derive(Clone, Copy, Debug)]
pub struct RandomConnectionIdGenerator {
    len: usize,
    lifetime: Option<Duration>,
}

impl Default for RandomConnectionIdGenerator {
    /// Creates a generator of 8 bytes.
    fn default() -> Self {
        Self::new(8)
    }
}

impl RandomConnectionIdGenerator {
    /// Creates a generator of IDs of this length, at most 20 bytes.
    pub fn new(cid_len: usize) -> Self {
        Self {
            len: cid_len.min(MAX_CONNECTION_ID),
            lifetime: None,
        }
    }

    /// Sets the time after which IDs are replaced.
    pub fn set_lifetime(&mut self, lifetime: Duration) -> &mut Self {
        self.lifetime = Some(lifetime);
        self
    }
}

impl ConnectionIdGenerator for RandomConnectionIdGenerator {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = [0; MAX_CONNECTION_ID];
        fill_random(&mut bytes[..self.len]);
        ConnectionId::new(&bytes[..self.len])
    }

    fn cid_len(&self) -> usize {
        self.len
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        self.lifetime
    }
}

/// Makes IDs of 3 random bytes and 5 bytes that authenticate them, so that most datagrams for other endpoints are
/// recognized. The format differs from that of quinn.
#[derive(Clone, Debug)]
pub struct HashedConnectionIdGenerator {
    key: hmac::Key,
    lifetime: Option<Duration>,
}

const NONCE: usize = 3;
const SIGNED: usize = 8;

impl Default for HashedConnectionIdGenerator {
    fn default() -> Self {
        Self::new()
    }
}

impl HashedConnectionIdGenerator {
    /// Creates a generator with a random key.
    pub fn new() -> Self {
        let mut key = [0; 8];
        fill_random(&mut key);
        Self::from_key(u64::from_be_bytes(key))
    }

    /// Creates a generator whose IDs another one with this key recognizes.
    pub fn from_key(key: u64) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key.to_be_bytes()),
            lifetime: None,
        }
    }

    /// Sets the time after which IDs are replaced.
    pub fn set_lifetime(&mut self, lifetime: Duration) -> &mut Self {
        self.lifetime = Some(lifetime);
        self
    }

    fn sign(&self, id: &mut [u8; SIGNED]) {
        let tag = hmac::sign(&self.key, &id[..NONCE]);
        id[NONCE..].copy_from_slice(&tag.as_ref()[..SIGNED - NONCE]);
    }
}

impl ConnectionIdGenerator for HashedConnectionIdGenerator {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; SIGNED];
        fill_random(&mut id[..NONCE]);
        self.sign(&mut id);
        ConnectionId::new(&id)
    }

    fn validate(&self, cid: &ConnectionId) -> Result<(), InvalidCid> {
        let id: [u8; SIGNED] = cid[..].try_into().map_err(|_| InvalidCid)?;
        let mut expected = id;
        self.sign(&mut expected);
        match expected == id {
            true => Ok(()),
            false => Err(InvalidCid),
        }
    }

    fn cid_len(&self) -> usize {
        SIGNED
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        self.lifetime
    }
}

fn fill_random(bytes: &mut [u8]) {
    // The generator of AWS-LC fails only if the system has no random numbers, and then nothing works.
    aws_lc_rs::rand::fill(bytes).expect("the system has random numbers");
}

/// Returns a generator for courser.
pub(crate) fn adapted(
    generator: Box<dyn ConnectionIdGenerator>,
) -> Arc<dyn quic::ConnectionIdGenerator> {
    Arc::new(Adapted {
        len: generator.cid_len().min(MAX_CONNECTION_ID),
        lifetime: generator.cid_lifetime(),
        generator: Mutex::new(generator),
    })
}

struct Adapted {
    len: usize,
    lifetime: Option<Duration>,
    generator: Mutex<Box<dyn ConnectionIdGenerator>>,
}

impl quic::ConnectionIdGenerator for Adapted {
    fn length(&self) -> usize {
        self.len
    }

    fn generate(&self, _: &mut quic::Rng) -> quic::ConnectionId {
        let mut generator = self
            .generator
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // courser checks the length.
        quic::ConnectionId::new(&generator.generate_cid()).unwrap_or(quic::ConnectionId::EMPTY)
    }

    fn is_valid(&self, id: &quic::ConnectionId) -> bool {
        let generator = self
            .generator
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        generator.validate(&(*id).into()).is_ok()
    }

    fn rotation(&self) -> quic::ConnectionIdRotation {
        quic::ConnectionIdRotation {
            lifetime: self.lifetime,
            datagrams: None,
        }
    }
}

impl fmt::Debug for Adapted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionIdGenerator")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
