//! Flow control of a stream or a connection, in both directions. RFC 9000 §4.
//!
//! Both levels follow the same rules, so both use the same types: [`SendLimit`] is the credit that
//! the peer grants us, [`ReceiveWindow`] the credit that we grant the peer. [`ConnectionFlow`] owns
//! both for the connection; a stream has one in each of its parts.

mod autotune;
mod connection;
mod receive_window;
mod send_limit;
mod window_budget;

use crate::build::packet_builder::PacketBuilder;

pub(crate) use connection::ConnectionFlow;
pub(crate) use receive_window::ReceiveWindow;
pub(crate) use send_limit::SendLimit;
pub(crate) use window_budget::{Draw, WindowBudget};

/// Returns true if any control frame of streams and flow control fits into a packet.
pub(crate) fn fits_control_frame(packet: &PacketBuilder<'_>) -> bool {
    packet.remaining() >= LARGEST_CONTROL
}

/// Bytes of RESET_STREAM_AT with four fields of the largest size; all other control frames are
/// smaller.
pub(crate) const LARGEST_CONTROL: usize = 1 + 4 * 8;
