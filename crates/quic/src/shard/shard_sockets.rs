//! The sockets with which an endpoint starts or which replace all of its sockets.

use std::net::SocketAddr;

use courser_transport::EndpointConfig;
use courser_udp::{SocketGroup, Steering};

use crate::runtime::{Current, Socket};

/// The sockets of an endpoint, one for each shard.
#[derive(Debug)]
pub(crate) struct ShardSockets {
    pub(crate) each: Vec<Socket>,
    pub(crate) rule: Option<Steering>,
    pub(crate) note: Option<String>,
}

impl ShardSockets {
    /// Creates the sockets of an endpoint with one shard. `reason` is the reason why there cannot be more.
    pub(crate) fn one(socket: Socket, requested: usize, reason: &str) -> Self {
        let note = format!("the endpoint has one shard instead of {requested}: {reason}");
        Self {
            each: vec![socket],
            rule: None,
            note: (requested > 1).then_some(note),
        }
    }

    /// Takes over the sockets of the shards of another process, in their order.
    pub(crate) fn inherit(
        runtime: &Current,
        address: SocketAddr,
        sockets: Vec<std::net::UdpSocket>,
        rule: Option<Steering>,
    ) -> std::io::Result<Self> {
        let group = SocketGroup::inherit(address, sockets, rule)?;
        let is_shared = group.sockets.len() > 1;
        let note = group
            .unsteered
            .map(|error| unsteered(&format!("the system refuses the filter: {error}")));
        let each = group.sockets.into_iter().map(|it| runtime.adopt_udp(it));
        Ok(Self {
            each: each.collect::<std::io::Result<_>>()?,
            rule: rule.filter(|_| is_shared),
            note,
        })
    }

    /// Binds a socket for each of `count` shards.
    pub(crate) fn bind(
        runtime: &Current,
        address: SocketAddr,
        count: usize,
        rule: Option<Steering>,
    ) -> std::io::Result<Self> {
        if count == 1 {
            return runtime.bind(address).map(|socket| Self::one(socket, 1, ""));
        }
        let Some(mut group) = runtime.bind_group(address, count, rule)? else {
            let reason = "the runtime has sockets of its own";
            return runtime
                .bind(address)
                .map(|socket| Self::one(socket, count, reason));
        };
        if group.sockets.len() == 1
            && let Some(socket) = group.sockets.pop()
        {
            let refused = group
                .unshared
                .map_or_else(String::new, |it| format!(": {it}"));
            let reason = format!("the system does not let sockets share a port{refused}");
            return Ok(Self::one(runtime.adopt_udp(socket)?, count, &reason));
        }
        let each = group.sockets.into_iter().map(|it| runtime.adopt_udp(it));
        let cause = match (rule, group.unsteered) {
            (None, _) => Some("connection IDs have no place for the shard".to_owned()),
            (Some(_), Some(error)) => Some(format!("the system refuses the filter: {error}")),
            (Some(_), None) => None,
        };
        let note = cause.map(|cause| unsteered(&cause));
        Ok(Self {
            each: each.collect::<std::io::Result<_>>()?,
            rule,
            note,
        })
    }
}

/// Returns the note for shards that the system does not choose by connection IDs.
fn unsteered(cause: &str) -> String {
    format!("datagrams of clients that have moved are handed on between shards ({cause})")
}

/// Returns the rule for the connection IDs of an endpoint, if they have a place for the shard.
pub(crate) fn rule_of(config: &EndpointConfig) -> Option<Steering> {
    let (id_len, offset) = config.shard_place()?;
    Some(Steering {
        id_len: u8::try_from(id_len).ok()?,
        offset: u8::try_from(offset).ok()?,
    })
}
