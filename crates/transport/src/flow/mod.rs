//! Flow control of a stream or a connection, in both directions. RFC 9000 §4.
//!
//! Both levels follow the same rules, so both use the same types: [`SendLimit`] is the credit that
//! the peer grants us, [`ReceiveWindow`] the credit that we grant the peer.

mod autotune;
mod receive_window;
mod send_limit;
mod window_budget;

pub(crate) use receive_window::ReceiveWindow;
pub(crate) use send_limit::SendLimit;
#[cfg(test)]
pub(crate) use window_budget::Draw;
pub(crate) use window_budget::WindowBudget;
