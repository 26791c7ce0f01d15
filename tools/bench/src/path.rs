//! The paths that have a budget.

/// A path of the core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    /// Packets with stream data, at their sender.
    Send,
    /// Packets with stream data, at their receiver.
    Receive,
    /// Acknowledgments of these packets, at the end that sends them.
    AckSend,
    /// Acknowledgments of these packets, at the end that receives them.
    AckReceive,
    /// Requests on streams, at the client.
    RequestClient,
    /// Requests on streams, at the server.
    RequestServer,
    /// HTTP/3 requests, at the client.
    GetClient,
    /// HTTP/3 requests, at the server.
    GetServer,
    /// Handshakes, at the client.
    HandshakeClient,
    /// Handshakes, at the server.
    HandshakeServer,
}

impl Path {
    /// All paths, in the order of their declaration.
    pub const ALL: [Self; 10] = [
        Self::Send,
        Self::Receive,
        Self::AckSend,
        Self::AckReceive,
        Self::RequestClient,
        Self::RequestServer,
        Self::GetClient,
        Self::GetServer,
        Self::HandshakeClient,
        Self::HandshakeServer,
    ];

    /// Returns the name of the path.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Receive => "receive",
            Self::AckSend => "ack-send",
            Self::AckReceive => "ack-receive",
            Self::RequestClient => "request-client",
            Self::RequestServer => "request-server",
            Self::GetClient => "get-client",
            Self::GetServer => "get-server",
            Self::HandshakeClient => "handshake-client",
            Self::HandshakeServer => "handshake-server",
        }
    }

    /// Returns the thing that is counted, such as a packet.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Send | Self::Receive => "packet",
            Self::AckSend | Self::AckReceive => "acknowledgment",
            Self::RequestClient | Self::RequestServer | Self::GetClient | Self::GetServer => {
                "request"
            }
            Self::HandshakeClient | Self::HandshakeServer => "handshake",
        }
    }

    /// Returns the work for one unit.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Send => "a packet of 1200 bytes of one stream is written, built and sealed",
            Self::Receive => "such a packet is opened, and its data are read",
            Self::AckSend => "an acknowledgment of 57 such packets is built",
            Self::AckReceive => "such an acknowledgment is processed by the sender of the data",
            Self::RequestClient => "100 bytes on a new stream and 100 bytes back, at the client",
            Self::RequestServer => "100 bytes on a new stream and 100 bytes back, at the server",
            Self::GetClient => "HTTP/3 GET with a response of 1000 bytes, at the client",
            Self::GetServer => "HTTP/3 GET with a response of 1000 bytes, at the server",
            Self::HandshakeClient => {
                "from the call to a confirmed connection, without TLS, at the client"
            }
            Self::HandshakeServer => {
                "from the first datagram to a confirmed connection, without TLS, at the server"
            }
        }
    }
}
