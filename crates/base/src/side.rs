//! Which end of a connection.

/// The client opens the connection, the server accepts it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The end that sent the first Initial packet.
    Client,
    /// The end that answered it.
    Server,
}

impl Side {
    /// True for [`Side::Client`].
    pub const fn is_client(self) -> bool {
        matches!(self, Self::Client)
    }

    /// True for [`Side::Server`].
    pub const fn is_server(self) -> bool {
        matches!(self, Self::Server)
    }

    /// The other end.
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}
