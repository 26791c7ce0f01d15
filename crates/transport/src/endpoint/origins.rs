//! The resources that new connections get from their endpoint.

use courser_base::Time;
use courser_wire::ConnectionId;

use super::shards::ShardId;
use super::shared::Shared;
use crate::build::transmit::SocketId;
use crate::cid::ConnectionIdRotation;
use crate::config::EndpointConfig;
use crate::connection::{Fallbacks, Origin};
use crate::flow::WindowBudget;
use crate::path::Place;
use crate::recovery::features::Experience;
use crate::rng::Rng;
use crate::stream::ChunkPool;

/// The resources that all connections of a shard get when they start: buffers, the budget of windows, and
/// the features that failed on the network of earlier connections.
#[derive(Debug)]
pub struct Origins {
    /// The socket of new connections.
    socket: SocketId,
    pool: ChunkPool,
    windows: WindowBudget,
    experience: Experience,
    id_rotation: ConnectionIdRotation,
}

impl Origins {
    /// Creates the resources for connections of a shard, without the experience of earlier ones.
    pub fn new(shard: ShardId, shared: &Shared, id_rotation: ConnectionIdRotation) -> Self {
        let kept_chunks = (KEPT_CHUNKS / usize::from(shard.count)).max(MIN_KEPT_CHUNKS);
        Self {
            socket: SocketId::default(),
            pool: ChunkPool::new(kept_chunks),
            windows: shared.windows.clone(),
            experience: Experience::default(),
            id_rotation,
        }
    }

    /// Returns the origin of a connection on this path, with a generator of random numbers of its own.
    pub fn origin(
        &self,
        config: &EndpointConfig,
        now: Time,
        place: Place,
        local_source: ConnectionId,
        rng: &mut Rng,
    ) -> Origin {
        Origin {
            now,
            place,
            local_source,
            pool: self.pool.clone(),
            budget: self.windows.clone(),
            experience: self.experience.clone(),
            rng: rng.fork(),
            max_udp_payload_size: config.max_udp_payload_size,
            grease: config.grease,
            grease_quic_bit: config.grease_quic_bit,
            id_rotation: self.id_rotation,
        }
    }

    /// Sets the socket of new connections. Another socket may be on another network, so experience is
    /// discarded.
    pub fn set_socket(&mut self, socket: SocketId) {
        if self.socket != socket {
            self.experience.restart();
        }
        self.socket = socket;
    }

    /// Returns the socket of new connections.
    pub fn socket(&self) -> SocketId {
        self.socket
    }

    /// Returns the features that new connections do not use because of the network.
    pub fn fallbacks(&self) -> Fallbacks {
        self.experience.fallbacks()
    }
}

/// Buffers of 64 KiB that an endpoint keeps for reuse.
const KEPT_CHUNKS: usize = 128;
/// The minimum number of buffers that a shard keeps.
const MIN_KEPT_CHUNKS: usize = 8;
