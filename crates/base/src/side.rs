//! The two ends of a connection.

/// One end of a connection: the client initiates it, the server accepts it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The end that sent the first Initial packet.
    Client,
    /// The end that answered that packet.
    Server,
}

impl Side {
    /// Returns true for [`Side::Client`].
    pub const fn is_client(self) -> bool {
        matches!(self, Self::Client)
    }

    /// Returns true for [`Side::Server`].
    pub const fn is_server(self) -> bool {
        matches!(self, Self::Server)
    }

    /// Returns the opposite end.
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}
