//! Why no path can be opened.

/// The reason why no path can be opened now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenPathError {
    /// The peer has not sent initial_max_path_id, or this end has not (RFC 10069 §2.1).
    NotNegotiated,
    /// Only clients open paths (RFC 10069 §3).
    NotClient,
    /// The handshake is not confirmed yet, or the connection is over.
    NotConfirmed,
    /// The server has sent disable_active_migration, and the path would lead to its address of the handshake
    /// (RFC 10069 §2.2).
    Forbidden,
    /// All path IDs that both ends permit are used. The peer may permit more later.
    LimitReached,
    /// As many paths are open as a connection can have.
    TooManyPaths,
    /// One end has not issued a connection ID for the next path yet.
    /// [`Event::MayOpenPath`](crate::Event::MayOpenPath) follows.
    NoConnectionId,
}

impl std::fmt::Display for OpenPathError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotNegotiated => "the ends have not agreed on several paths",
            Self::NotClient => "only clients open paths",
            Self::NotConfirmed => "the handshake is not confirmed",
            Self::Forbidden => "the server has disabled active migration",
            Self::LimitReached => "all path IDs that both ends permit are used",
            Self::TooManyPaths => "a connection has at most 8 paths",
            Self::NoConnectionId => "there is no connection ID for the next path yet",
        })
    }
}

impl std::error::Error for OpenPathError {}
