//! The connections with something to do.

use std::collections::VecDeque;

use super::handle::ConnectionHandle;

/// The queue of connections with something to do, in two sections.
///
/// A connection is touched when something has happened to it. Its events are read first, so that
/// tasks can be woken before anything is sent. A driver that sends later, together with what these
/// tasks write, lets it wait in the second section. A connection is in each section at most once.
#[derive(Debug, Default)]
pub struct Ready {
    /// Connections whose events may be unread.
    pub fresh: VecDeque<ConnectionHandle>,
    /// Connections whose events were read, and that may have something to send.
    pub senders: VecDeque<ConnectionHandle>,
}
