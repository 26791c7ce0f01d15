//! The place of a stream in the order of sending.

/// The place of a stream in the order of sending, in the order in which its parts are compared.
///
/// The class of a session decides for all streams of the session, whatever class they have themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Share {
    /// Streams and sessions of a higher class are first.
    pub(crate) class: i8,
    /// Sessions of a class take turns; 0 is for the streams without a session, which take turns as one.
    pub(crate) session: u32,
    /// Streams of a session with a higher priority are first.
    pub(crate) priority: i32,
    /// Groups of a session take turns; 0 is for the streams without a group, which take turns as one.
    pub(crate) group: u32,
    /// Streams of a group with a higher order are first. Streams of one order take turns.
    pub(crate) order: i64,
}

/// The level of a stream without a session among all streams of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Level {
    /// Streams and sessions of a higher class are first. Sessions of one class, and the streams of that class
    /// without a session, take turns.
    pub class: i8,
    /// Streams of a class with a higher priority are first.
    pub priority: i32,
}
