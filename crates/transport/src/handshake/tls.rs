//! The TLS session of a connection, and its work outside of the connection.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use courser_base::foreign::Foreign;
use courser_crypto::{EncryptionLevel, TlsError, TlsSession};

use crate::error::PanicPayload;

/// A TLS session. Its drop may run code of the application: resolvers and verifiers.
pub(crate) type Session = Foreign<Box<dyn TlsSession>, true>;

/// The TLS session of a connection.
///
/// ```text
///            ┌── Asked ◄─┐
///            ▼           │
///          Listed      Here ──► Gone
///            │           ▲
///            └─► Away ───┘
/// ```
/// All states lead to `Gone` when the connection is over. A connection whose TLS work is not
/// offloaded has only the two states on the right.
pub(crate) enum Tls {
    /// The connection owns the session.
    Here(Session),
    /// In a task that the endpoint has not listed yet.
    Asked(TlsTask),
    /// In a task in the endpoint's list.
    Listed(TlsTask),
    /// In a task that was handed out.
    Away,
    /// The handshake needs no session any more, or the connection is over.
    Gone,
}

impl Tls {
    /// Returns the session, if the connection owns it.
    pub(crate) fn here(&self) -> Option<&dyn TlsSession> {
        match self {
            Self::Here(session) => Some(&***session),
            _ => None,
        }
    }

    /// Returns the session, if the connection owns it.
    pub(crate) fn here_mut(&mut self) -> Option<&mut (dyn TlsSession + 'static)> {
        match self {
            Self::Here(session) => Some(&mut ***session),
            _ => None,
        }
    }

    /// Returns true if the session has ended.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }

    /// Returns true while a task has the session.
    pub(crate) fn is_in_task(&self) -> bool {
        matches!(self, Self::Asked(_) | Self::Listed(_) | Self::Away)
    }

    /// Moves the session into a task that reads `bytes`. The connection must own the session.
    pub(crate) fn begin_task(&mut self, level: EncryptionLevel, bytes: Vec<u8>) {
        *self = match std::mem::replace(self, Self::Gone) {
            Self::Here(session) => Self::Asked(TlsTask {
                session,
                level,
                bytes,
            }),
            other => other,
        };
    }

    /// Returns true once for each task: the endpoint has to list it.
    pub(crate) fn list(&mut self) -> bool {
        if !matches!(self, Self::Asked(_)) {
            return false;
        }
        if let Self::Asked(task) = std::mem::replace(self, Self::Gone) {
            *self = Self::Listed(task);
        }
        true
    }

    /// Removes and returns the listed task.
    pub(crate) fn take_listed(&mut self) -> Option<TlsTask> {
        if !matches!(self, Self::Listed(_)) {
            return None;
        }
        match std::mem::replace(self, Self::Away) {
            Self::Listed(task) => Some(task),
            _ => None,
        }
    }
}

/// TLS work of one connection: handshake bytes that have to be read.
///
/// It may run on any thread and take any time, because it calls resolvers, verifiers and signers of the
/// application. See
/// [`Endpoint::poll_tls_task`](crate::Endpoint::poll_tls_task).
#[must_use = "without its result the handshake does not continue"]
pub struct TlsTask {
    session: Session,
    level: EncryptionLevel,
    /// At most as many as limit K01 allows.
    bytes: Vec<u8>,
}

impl TlsTask {
    /// Does the work. A panic in it is caught and ends the connection.
    pub fn run(self) -> TlsResult {
        let Self {
            mut session,
            level,
            bytes,
        } = self;
        // After a panic the session is dropped and not used again.
        let work = AssertUnwindSafe(move || {
            let read = session.read(level, &bytes);
            Finished { session, read }
        });
        TlsResult(catch_unwind(work))
    }
}

impl fmt::Debug for TlsTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsTask")
            .field("level", &self.level)
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

/// The result of a [`TlsTask`], for
/// [`Endpoint::finish_tls_task`](crate::Endpoint::finish_tls_task).
#[must_use = "the connection waits for it"]
pub struct TlsResult(pub(crate) Result<Finished, PanicPayload>);

impl fmt::Debug for TlsResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsResult")
            .field("has_panicked", &self.0.is_err())
            .finish_non_exhaustive()
    }
}

/// The result of a task that did not panic.
pub(crate) struct Finished {
    pub(crate) session: Session,
    pub(crate) read: Result<(), TlsError>,
}
