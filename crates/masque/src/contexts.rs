//! Context IDs of a tunnel (RFC 9298 §4).

use courser_base::Side;
use courser_wire::VarInt;

/// The context IDs of one tunnel beside 0, which always carries UDP payloads. Even ones belong to the client, odd ones to
/// the proxy.
///
/// RFC 9298 itself uses no other context, so that the datagrams of others are dropped and counted. Extensions
/// register the contexts that they use.
///
/// ```
/// use courser_base::Side;
/// use courser_masque::Contexts;
/// let mut contexts = Contexts::new(Side::Client);
/// assert!(!contexts.on_datagram(1));
/// assert_eq!(contexts.dropped(), 1);
/// assert_eq!(contexts.allocate()?, 2);
/// contexts.on_registered(1)?;
/// assert!(contexts.on_datagram(1) && contexts.on_datagram(2));
/// # Ok::<(), courser_masque::ContextError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Contexts {
    side: Side,
    next: u64,
    /// Above every ID that the peer has registered.
    next_of_peer: u64,
    open: Vec<u64>,
    dropped: u64,
}

/// The reason why a context is not registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// The ID belongs to this end, or is 0.
    #[error("context {0} belongs to the other end")]
    NotOfPeer(u64),
    /// The ID was used before.
    #[error("context {0} was registered before, and IDs are not used twice")]
    Used(u64),
    /// 16 contexts are open.
    #[error("{MAX_CONTEXTS} contexts are open, the most of a tunnel")]
    TooMany,
}

impl Contexts {
    /// Creates the contexts of one end: the client has even IDs, the proxy odd ones.
    pub const fn new(side: Side) -> Self {
        let (next, next_of_peer) = match side {
            Side::Client => (2, 1),
            Side::Server => (1, 2),
        };
        Self {
            side,
            next,
            next_of_peer,
            open: Vec::new(),
            dropped: 0,
        }
    }

    /// Opens a context of this end, and returns its ID.
    ///
    /// # Errors
    /// Returns an error if 16 contexts are open.
    pub fn allocate(&mut self) -> Result<u64, ContextError> {
        if self.open.len() >= MAX_CONTEXTS || self.next > VarInt::MAX.into_inner() {
            return Err(ContextError::TooMany);
        }
        let id = self.next;
        self.next += 2;
        self.open.push(id);
        Ok(id)
    }

    /// Opens a context that the peer has registered.
    ///
    /// # Errors
    /// Returns an error if the ID is not one of the peer, was registered before, or 16 contexts are open. IDs have
    /// to rise, so that used ones need no memory.
    pub fn on_registered(&mut self, id: u64) -> Result<(), ContextError> {
        let is_of_client = id.is_multiple_of(2);
        if id == 0 || is_of_client == (self.side == Side::Client) {
            return Err(ContextError::NotOfPeer(id));
        }
        if id < self.next_of_peer {
            return Err(ContextError::Used(id));
        }
        if self.open.len() >= MAX_CONTEXTS {
            return Err(ContextError::TooMany);
        }
        self.next_of_peer = id.saturating_add(2);
        self.open.push(id);
        Ok(())
    }

    /// Closes a context. Returns false if it was not open.
    pub fn close(&mut self, id: u64) -> bool {
        let before = self.open.len();
        self.open.retain(|open| *open != id);
        self.open.len() < before
    }

    /// Returns true if a datagram of this context is for an extension. Otherwise it is dropped, and counted.
    pub fn on_datagram(&mut self, id: u64) -> bool {
        let is_open = self.open.contains(&id);
        if !is_open {
            self.dropped = self.dropped.saturating_add(1);
        }
        is_open
    }

    /// Returns the number of datagrams of unknown contexts, which were dropped.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Most open contexts of a tunnel beside 0 (limit K625): an extension needs one or two.
const MAX_CONTEXTS: usize = 16;

#[cfg(test)]
mod tests;
