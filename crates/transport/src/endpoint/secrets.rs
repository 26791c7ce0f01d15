//! The secret keys of the tables of an endpoint.

use crate::rng::Rng;

/// The random numbers of one shard: the keys of its tables, and the generator of all others.
///
/// Each shard draws all keys, also those of tables that all shards share. So an endpoint with one shard
/// draws the same numbers as the first of several.
#[derive(Debug)]
pub struct Secrets {
    /// For IDs, challenges and the data of packets.
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
    /// Draws the numbers from a random seed.
    pub fn new(seed: [u8; 32]) -> Self {
        // The keys of later tables come from a second generator, so that connections draw the same
        // numbers whatever tables there are. Each key stands in the order in which it is drawn.
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
