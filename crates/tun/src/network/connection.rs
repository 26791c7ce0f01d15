//! The socket to the kernel, and the messages that answer each other.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// A socket of rtnetlink, which numbers its messages.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Socket,
    sequence: u32,
}

impl Connection {
    pub(super) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Sends a message, and returns the replies to it.
    pub(super) fn call(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut replies = Vec::new();
        loop {
            let (received, _) = self.socket.recv_from_full()?;
            if self.collect(&received, flags, &mut replies)? {
                return Ok(replies);
            }
        }
    }

    /// Reads the messages of a datagram. Returns true after the last one.
    fn collect(
        &self,
        mut received: &[u8],
        flags: u16,
        replies: &mut Vec<RouteNetlinkMessage>,
    ) -> io::Result<bool> {
        while !received.is_empty() {
            let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(received);
            let message = message.map_err(io::Error::other)?;
            let length = (message.header.length as usize).next_multiple_of(4);
            received = received.get(length.max(4)..).unwrap_or_default();
            if message.header.sequence_number != self.sequence {
                continue;
            }
            match message.payload {
                NetlinkPayload::Done(_) => return Ok(true),
                NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                NetlinkPayload::Error(_) => return Ok(true),
                NetlinkPayload::InnerMessage(reply) => {
                    replies.push(reply);
                    // A single object, which no end follows.
                    if flags & (NLM_F_DUMP | NLM_F_ACK) == 0 {
                        return Ok(true);
                    }
                }
                _ => {}
            }
        }
        Ok(false)
    }
}
