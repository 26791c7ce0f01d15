//! The part of its life that a connection is in.

/// The part of its life that a record is in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Stage {
    /// No connection uses the record.
    #[default]
    Free,
    /// The connection is open, or its peer does not know of its end yet.
    Busy,
    /// The peer knows of the end. Late packets are still swallowed.
    Quiet,
    /// Nothing leads to the connection any more. It waits for its owner to release it.
    Drained,
}
