//! The things that new connections get from their endpoint.

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

/// The things that all connections of a shard get when they start: buffers, the budget of windows, and
/// what earlier connections have learned about the network.
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
    /// Creates the things for connections of a shard, which have not learned anything.
    pub fn new(shard: ShardId, shared: &Shared, id_rotation: ConnectionIdRotation) -> Self {
        let kept_chunks = (KEPT_CHUNKS / usize::from(shard.count)).max(LEAST_KEPT_CHUNKS);
        Self {
            socket: SocketId::default(),
            pool: ChunkPool::new(kept_chunks),
            windows: shared.windows.clone(),
            experience: Experience::default(),
            id_rotation,
        }
    }

    /// Returns the origin of a connection at this place. It has a generator of its own.
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

    /// Sets the socket of new connections. Another socket may have another network behind it.
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

    /// Returns the features that connections do without because of their network.
    pub fn fallbacks(&self) -> Fallbacks {
        self.experience.fallbacks()
    }
}

/// 64 KiB buffers kept for reuse by all connections together.
const KEPT_CHUNKS: usize = 128;
/// The buffers that a shard keeps, even if its part of those of the endpoint is less.
const LEAST_KEPT_CHUNKS: usize = 8;
