//! Limits on the number of streams, in both directions. RFC 9000 §4.6.

mod local;
mod peer;

pub(super) use self::local::LocalStreams;
pub(super) use self::peer::{PeerStreams, Use};
