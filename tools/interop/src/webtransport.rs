//! The cases of WebTransport: sessions in which one end requests files and the other sends them.
//!
//! A request is `GET NAME`. On a bidirectional stream the answer is the file; on a unidirectional stream or in a
//! datagram it is `PUSH NAME`, a line feed and the file. The first segment of a path is an endpoint: the path of a session,
//! and the folder of its files.

mod client;
mod files;
mod receive;
mod send;
mod server;

pub use self::client::{SessionClientPlan, run_client};
pub use self::server::{SessionServerPlan, run_server};

/// A test of WebTransport, as `TESTCASE` names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SessionTest {
    /// A session with an application protocol.
    Handshake,
    /// This end sends the files that the other one requests.
    Transfer,
    /// This end requests files in this way, which is the same for `receive` (as a client) and `send` (as a server).
    Request(Way),
}

/// The way in which files are requested and sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Way {
    /// Unidirectional streams in both directions.
    Unidirectional,
    /// A bidirectional stream for each file.
    Bidirectional,
    /// Datagrams, one for each request and each file.
    Datagrams,
}

impl SessionTest {
    /// Returns the test with this name. The cases of QUIC share the names `handshake` and `transfer`, so that those are meant
    /// only if `has_protocols` is true: the runner sets `PROTOCOLS` for the cases of WebTransport.
    pub fn from_name(name: &str, is_server: bool, has_protocols: bool) -> Option<Self> {
        let (way, suffix) = match name {
            "handshake" if has_protocols => return Some(Self::Handshake),
            "transfer" if has_protocols => return Some(Self::Transfer),
            _ => name.strip_prefix("transfer-")?.split_once('-')?,
        };
        let way = match way {
            "unidirectional" => Way::Unidirectional,
            "bidirectional" => Way::Bidirectional,
            "datagram" => Way::Datagrams,
            _ => return None,
        };
        let expected = if is_server { "send" } else { "receive" };
        (suffix == expected).then_some(Self::Request(way))
    }
}

#[cfg(test)]
mod tests;
