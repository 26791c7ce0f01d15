//! The secret keys of the tables of an endpoint.

use crate::rng::Rng;

/// The keys of the tables of one shard, and its generator of random numbers.
///
/// Each shard draws all keys, also those of tables that all shards share. So an endpoint with one shard
/// draws the same numbers as the first of several.
#[derive(Debug)]
pub struct Secrets {
    /// Generates IDs, challenges and the random data of packets.
    pub rng: Rng,
    pub routes: [u8; 16],
    /// The key of the routes of all shards.
    pub common_routes: [u8; 16],
    pub waiting_clients: [u8; 16],
    pub queue: [u8; 16],
    pub handshakes: [u8; 16],
    pub creation: [u8; 16],
    pub backlog: [u8; 16],
    pub resets: [u8; 16],
    pub replies: [u8; 16],
}

impl Secrets {
    /// Derives the keys and the generator from a random seed.
    pub fn new(seed: [u8; 32]) -> Self {
        // The keys of later tables come from a second generator, so that a new table does not change the
        // numbers that connections draw. The keys are listed in the order in which they are drawn.
        let mut keys = Rng::new(seed.map(|byte| !byte));
        let mut rng = Rng::new(seed);
        let (routes, waiting_clients) = (rng.array(), rng.array());
        let (resets, replies) = (rng.array(), rng.array());
        Self {
            rng,
            routes,
            waiting_clients,
            resets,
            replies,
            queue: keys.array(),
            handshakes: keys.array(),
            creation: keys.array(),
            backlog: keys.array(),
            common_routes: keys.array(),
        }
    }
}
