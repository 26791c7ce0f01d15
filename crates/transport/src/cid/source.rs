//! The endpoint's source of connection IDs, which checks the results of a generator.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use courser_wire::ConnectionId;

use super::generator::{
    ConnectionIdError, ConnectionIdGenerator, ConnectionIdRotation, RandomIdGenerator, random,
};
use crate::config::EndpointConfig;
use crate::rng::Rng;

/// Calls a generator and checks its results, so that a faulty one makes connections fail but never
/// corrupts the tables of the endpoint.
#[derive(Debug)]
pub(crate) struct IdSource {
    generator: Arc<dyn ConnectionIdGenerator>,
    /// Length of every ID in bytes.
    length: usize,
    rotation: ConnectionIdRotation,
    shard: Option<ShardNumber>,
}

/// The number of a shard in the IDs of an endpoint with several shards.
#[derive(Clone, Copy, Debug)]
struct ShardNumber {
    /// Offset of the byte in each ID.
    offset: usize,
    number: u16,
    /// Number of all shards, 256 at most.
    shards: u16,
}

impl IdSource {
    /// Creates the source of an endpoint. A length that the configuration does not allow is
    /// shortened.
    pub(crate) fn new(config: &EndpointConfig) -> Self {
        let generator = config.connection_ids.clone().unwrap_or_else(|| {
            let generator = RandomIdGenerator::new(config.connection_id_len);
            Arc::new(generator.unwrap_or_default())
        });
        Self {
            length: generator.length().min(ConnectionId::MAX_LEN),
            rotation: generator.rotation(),
            generator,
            shard: None,
        }
    }

    /// Puts the number of a shard into each ID. Returns false if the IDs have no byte for it.
    pub(crate) fn join(&mut self, number: u16, shards: u16) -> bool {
        let offset = catch_unwind(AssertUnwindSafe(|| self.generator.shard_offset()));
        let offset = offset.ok().flatten().filter(|offset| *offset < self.length);
        self.shard = offset.map(|offset| ShardNumber {
            offset,
            number,
            shards,
        });
        self.shard.is_some()
    }

    /// Returns the shard that an ID names, if IDs of its length name one.
    pub(crate) fn shard_of(&self, id: &ConnectionId) -> Option<u16> {
        let shard = self.shard.filter(|_| id.len() == self.length)?;
        Some(u16::from(id[shard.offset]) % shard.shards)
    }

    /// Returns the length of every ID in bytes.
    #[inline]
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Returns when the IDs of a connection are replaced.
    pub(crate) fn rotation(&self) -> ConnectionIdRotation {
        self.rotation
    }

    /// Makes an ID that is not taken.
    ///
    /// An empty ID is never taken: such connections are distinguished by address.
    ///
    /// # Errors
    ///
    /// See [`ConnectionIdError`].
    pub(crate) fn generate(
        &self,
        rng: &mut Rng,
        is_taken: impl Fn(&ConnectionId) -> bool,
    ) -> Result<ConnectionId, ConnectionIdError> {
        for _ in 0..MAX_ATTEMPTS {
            let id = catch_unwind(AssertUnwindSafe(|| self.generator.generate(rng)))
                .map_err(|_| ConnectionIdError::Panicked)?;
            if id.len() != self.length {
                let (made, announced) = (id.len(), self.length);
                return Err(ConnectionIdError::Length { made, announced });
            }
            let id = self.shard.map_or(id, |shard| shard.write(&id, rng));
            if !self.is_valid(&id) {
                return Err(ConnectionIdError::NotAccepted);
            }
            if !is_taken(&id) {
                return Ok(id);
            }
        }
        Err(ConnectionIdError::NoneFree)
    }

    /// Makes an ID for a packet that starts no connection. If the generator fails, the ID is random.
    pub(crate) fn generate_unrouted(&self, rng: &mut Rng) -> ConnectionId {
        self.generate(rng, |_| false)
            .unwrap_or_else(|_| random(self.length, rng))
    }

    /// Returns false for an ID that is not ours.
    pub(crate) fn is_valid(&self, id: &ConnectionId) -> bool {
        let is_valid = || catch_unwind(AssertUnwindSafe(|| self.generator.is_valid(id)));
        id.len() == self.length && is_valid().unwrap_or(false)
    }
}

impl ShardNumber {
    /// Replaces the byte with a random one that names the shard.
    fn write(self, id: &ConnectionId, rng: &mut Rng) -> ConnectionId {
        let mut bytes = [0; ConnectionId::MAX_LEN];
        let bytes = &mut bytes[..id.len()];
        bytes.copy_from_slice(id);
        let [random] = rng.array();
        let multiple = u16::from(random) / self.shards * self.shards;
        let value = multiple + self.number;
        // The last multiple plus the number may exceed a byte.
        let value = u8::try_from(value).unwrap_or_else(|_| {
            u8::try_from(value - self.shards).expect("below 256 before the last multiple")
        });
        bytes[self.offset] = value;
        ConnectionId::new(bytes).expect("as long as before")
    }
}

/// Attempts to find an ID that is not taken (limit K176). Random IDs of four bytes and more do not
/// collide that often in a row.
const MAX_ATTEMPTS: usize = 8;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn id(number: u64) -> ConnectionId {
        ConnectionId::new(&number.to_be_bytes()).unwrap()
    }

    fn source(generator: impl ConnectionIdGenerator + 'static) -> IdSource {
        let mut config = EndpointConfig::from_seed([1; 32]);
        config.connection_ids = Some(Arc::new(generator));
        IdSource::new(&config)
    }

    fn rng() -> Rng {
        Rng::new([1; 32])
    }

    /// A generator that repeats each ID a number of times.
    #[derive(Debug)]
    struct Repeating {
        times: usize,
        calls: Arc<AtomicUsize>,
    }

    impl ConnectionIdGenerator for Repeating {
        fn length(&self) -> usize {
            8
        }

        fn generate(&self, _: &mut Rng) -> ConnectionId {
            let calls = self.calls.fetch_add(1, Ordering::Relaxed);
            id((calls / self.times) as u64)
        }
    }

    #[test]
    fn generation_is_repeated_until_an_id_is_free() {
        let calls = Arc::new(AtomicUsize::new(0));
        let times = 2;
        let repeating = source(Repeating { times, calls });
        let made = repeating.generate(&mut rng(), |made| *made == id(0) || *made == id(1));
        assert_eq!(made, Ok(id(2)));
    }

    #[test]
    fn repetition_ends_after_eight_attempts() {
        let calls = Arc::new(AtomicUsize::new(0));
        let repeating = source(Repeating {
            times: usize::MAX,
            calls: Arc::clone(&calls),
        });
        let made = repeating.generate(&mut rng(), |_| true);
        assert_eq!(made, Err(ConnectionIdError::NoneFree));
        assert_eq!(calls.load(Ordering::Relaxed), MAX_ATTEMPTS);
        // The eighth attempt still counts, and a ninth one is not made.
        for (taken, made) in [(7, Ok(id(7))), (8, Err(ConnectionIdError::NoneFree))] {
            let calls = Arc::new(AtomicUsize::new(0));
            let counting = source(Repeating { times: 1, calls });
            let is_taken = |made: &ConnectionId| (0..taken).any(|number| *made == id(number));
            assert_eq!(
                counting.generate(&mut rng(), is_taken),
                made,
                "{taken} taken"
            );
        }
    }

    /// A generator that breaks one promise.
    #[derive(Debug)]
    enum Faulty {
        Length(usize),
        RejectsAll,
        Panics,
        TooLong,
    }

    impl ConnectionIdGenerator for Faulty {
        fn length(&self) -> usize {
            match self {
                Self::TooLong => 21,
                _ => 8,
            }
        }

        fn generate(&self, rng: &mut Rng) -> ConnectionId {
            match self {
                Self::Length(length) => random(*length, rng),
                Self::Panics => panic!("on purpose"),
                _ => random(8, rng),
            }
        }

        fn is_valid(&self, _: &ConnectionId) -> bool {
            match self {
                Self::RejectsAll => false,
                Self::Panics => panic!("on purpose"),
                _ => true,
            }
        }
    }

    #[test]
    fn each_broken_promise_is_reported() {
        let length = |made, announced| ConnectionIdError::Length { made, announced };
        let cases = [
            (Faulty::Length(0), length(0, 8)),
            (Faulty::Length(7), length(7, 8)),
            (Faulty::Length(9), length(9, 8)),
            (Faulty::TooLong, length(8, 20)),
            (Faulty::RejectsAll, ConnectionIdError::NotAccepted),
            (Faulty::Panics, ConnectionIdError::Panicked),
        ];
        for (generator, error) in cases {
            let case = format!("{generator:?}");
            let source = source(generator);
            assert_eq!(source.generate(&mut rng(), |_| false), Err(error), "{case}");
            let unrouted = source.generate_unrouted(&mut rng());
            assert_eq!(unrouted.len(), source.length(), "{case}");
        }
        let text = length(7, 8).to_string();
        assert_eq!(
            text,
            "the generator made a connection id of 7 bytes, and announced 8"
        );
    }

    #[test]
    fn panicking_check_rejects() {
        assert!(!source(Faulty::Panics).is_valid(&id(1)));
        assert!(source(Faulty::Length(8)).is_valid(&id(1)));
        let short = ConnectionId::new(&[1; 7]).unwrap();
        assert!(
            !source(Faulty::Length(8)).is_valid(&short),
            "another length"
        );
    }

    #[test]
    fn without_a_generator_ids_are_random() {
        let mut config = EndpointConfig::from_seed([1; 32]);
        config.connection_id_len = 5;
        let source = IdSource::new(&config);
        assert_eq!(
            (source.length(), source.rotation()),
            (5, Default::default())
        );
        let mut rng = rng();
        let (one, two) = (
            source.generate_unrouted(&mut rng),
            source.generate_unrouted(&mut rng),
        );
        assert!(one.len() == 5 && one != two);
    }
}
