//! Several sockets of one address and port, among which the system distributes datagrams.

use std::io;
use std::net::SocketAddr;

use courser_base::with_port;

use crate::portable::{share_port, steer};
use crate::socket::{UdpSocket, bind_alone, bind_beside_connected, unbound};
use crate::steering::Steering;

/// The sockets of one address and port; see [`SocketGroup::bind`].
#[derive(Debug)]
pub struct SocketGroup {
    /// The sockets in the order of their numbers: as many as requested, or one.
    pub sockets: Vec<UdpSocket>,
    /// The reason why there is only one socket, although more were requested.
    pub unshared: Option<io::Error>,
    /// The reason why the addresses of a datagram decide which socket it arrives at, although a rule was
    /// given.
    pub unsteered: Option<io::Error>,
}

/// Maximum number of sockets in a group, which one byte can number (limit K221).
pub const MAX_GROUP: u16 = 256;

impl SocketGroup {
    /// Binds `count` sockets to one address, to which no other socket may be bound. Port 0 lets the system
    /// choose one port for all.
    ///
    /// Without a rule, or if the system refuses it, datagrams are distributed by a hash of their
    /// addresses. So far only Linux can share a port in this way; elsewhere there is one socket. Needs no
    /// privilege.
    ///
    /// The numbers of the sockets follow from the order in which they were bound. They change when a
    /// socket is closed, so all must be kept as long as one is used. Later sockets of the same user that
    /// set `SO_REUSEPORT` can join the group; the rule sends no datagram to them.
    ///
    /// # Errors
    /// Returns the error of the system if the address cannot be bound, and `InvalidInput` if `count` is
    /// not 1 to [`MAX_GROUP`], or the rule is not within its ranges.
    pub fn bind(address: SocketAddr, count: u16, rule: Option<Steering>) -> io::Result<Self> {
        let is_valid = |rule: Steering| rule.offset < rule.id_len && rule.id_len <= 20;
        if !(1..=MAX_GROUP).contains(&count) || !rule.is_none_or(is_valid) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // Bound before it shares its port, so that an address in use is an error.
        let (first, is_beside) = bind_alone(address)?;
        let shared = match count {
            1 => Ok(()),
            _ => share_port(&first),
        };
        let is_shared = count > 1 && shared.is_ok();
        let first = UdpSocket::own(first, address, is_shared)?;
        let mut group = Self {
            sockets: vec![first],
            unshared: shared.err(),
            unsteered: None,
        };
        if count == 1 || group.unshared.is_some() {
            return Ok(group);
        }
        let local = with_port(address, group.sockets[0].local_addr()?.port());
        let another = || {
            let socket = unbound(local)?;
            share_port(&socket)?;
            match is_beside {
                true => bind_beside_connected(&socket, local)?,
                false => socket.bind(&local.into())?,
            }
            io::Result::Ok(socket)
        };
        for _ in 1..count {
            let socket = another()?;
            group.sockets.push(UdpSocket::own(socket, local, true)?);
        }
        if is_beside {
            // Linux looks for sockets that are connected to a peer only if the group of the address has had one.
            another()?.connect(&local.into())?;
        }
        group.steer(rule);
        Ok(group)
    }

    /// Combines sockets that another process has bound to `address`, in the order in which it bound them.
    ///
    /// # Errors
    /// Like [`UdpSocket::inherit`].
    pub fn inherit(
        address: SocketAddr,
        sockets: Vec<std::net::UdpSocket>,
        rule: Option<Steering>,
    ) -> io::Result<Self> {
        let is_shared = sockets.len() > 1;
        let sockets = sockets
            .into_iter()
            .map(|socket| UdpSocket::inherit(socket, address, is_shared));
        let mut group = Self {
            sockets: sockets.collect::<io::Result<_>>()?,
            unshared: None,
            unsteered: None,
        };
        if is_shared {
            group.steer(rule);
        }
        Ok(group)
    }

    /// Makes the system follow the rule.
    fn steer(&mut self, rule: Option<Steering>) {
        let count = u16::try_from(self.sockets.len()).unwrap_or(MAX_GROUP);
        if let (Some(rule), Some(first)) = (rule, self.sockets.first()) {
            self.unsteered = steer(first, rule, count).err();
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
