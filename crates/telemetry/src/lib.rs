//! Typed records of what happened on a connection.
//!
//! The protocol core hands records to a [`Sink`] and formats nothing. Without a sink the cost
//! is one branch, because records are built inside a closure that then never runs.

mod records;
mod sink;

pub use records::{
    KeyUpdated, MetricsUpdated, PacketDropped, PacketLost, PacketReceived, PacketSent, Reason,
    Record, StateChanged,
};
pub use sink::{NoSink, Sink, Tap, Tee};
