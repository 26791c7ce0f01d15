//! Isolation of panics: a panic in the work of one connection ends only that connection.
//!
//! User hooks run inside connections: sinks, congestion controllers, token stores, certificate
//! resolvers and verifiers. A panic in one of them, or in our own code, must not affect the other
//! connections of the endpoint (attack A103, fault F59).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use courser_base::{Time, foreign};
use courser_wire::TransportErrorCode;

use super::admission::incoming::Incoming;
use super::admission::verdict::Verdict;
use super::table::drop_connection;
use super::{ConnectionHandle, Endpoint};
use crate::config::ServerConfig;
use crate::connection::ConnectionError;
use crate::error::{PanicPayload, TransportError};

/// Maximum bytes of a panic's message that are kept in the error.
const MAX_MESSAGE: usize = 200;

impl Endpoint {
    /// Runs `work`. If it panics, drops the connection that was used last and returns `None`.
    ///
    /// A panic before any connection was used is propagated.
    pub(super) fn guard<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> Option<T> {
        match self.catch(work) {
            Ok(value) => Some(value),
            Err(payload) => {
                let Some(handle) = self.table.take_in_use() else {
                    resume_unwind(payload);
                };
                self.drop_faulty(handle, payload);
                None
            }
        }
    }

    fn catch<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> Result<T, PanicPayload> {
        self.table.take_in_use();
        // A panic may leave the connection in use inconsistent, so it is dropped without further
        // use. The endpoint's own tables change only between calls into connections.
        catch_unwind(AssertUnwindSafe(|| work(self)))
    }

    /// Accepts a client like [`Endpoint::accept`]. A panic becomes an error, and the client is
    /// refused with INTERNAL_ERROR.
    ///
    /// # Errors
    ///
    /// The errors of [`Endpoint::accept`], and INTERNAL_ERROR after a panic.
    pub fn accept_guarded(
        &mut self,
        now: Time,
        incoming: Incoming,
        config: Option<Arc<ServerConfig>>,
    ) -> Result<ConnectionHandle, ConnectionError> {
        let client = self.admission.waiting(&incoming).copied();
        let payload = match self.catch(|endpoint| endpoint.accept(now, incoming, config)) {
            Ok(accepted) => return accepted,
            Err(payload) => payload,
        };
        let message = message_of(&*payload);
        if let Some(handle) = self.table.take_in_use() {
            self.drop_faulty(handle, payload);
            // The application never received this connection.
            self.release(handle);
        } else {
            self.stats.faults += 1;
        }
        if let Some(client) = client {
            // The connection failed before a packet was sent.
            let verdict = Verdict::Refuse {
                code: TransportErrorCode::INTERNAL_ERROR,
                reason: "",
            };
            self.answer(now, &client, verdict);
        }
        Err(internal_fault(&message))
    }

    /// Drops a connection whose code has panicked.
    ///
    /// Its state may be too inconsistent to build a CONNECTION_CLOSE. Its routes are removed, so the peer
    /// gets a stateless reset for its next packet (RFC 9000 §10.3). [`Endpoint::next_ready`] and
    /// [`Endpoint::close_error`] report it to the embedder.
    #[cold]
    pub fn drop_faulty(&mut self, handle: ConnectionHandle, payload: PanicPayload) {
        self.stats.faults += 1;
        self.table.take_in_use();
        let message = message_of(&*payload);
        let Some(entry) = self.table.entry_mut(handle) else {
            return;
        };
        let Some(connection) = entry.connection.take() else {
            return;
        };
        // Removing its routes one by one would need the connection's own list of IDs.
        self.router.remove_faulty(handle, &mut entry.routes);
        // A connection that was over before keeps its error.
        let error = connection.close_error().cloned();
        let error = error.unwrap_or_else(|| internal_fault(&message));
        self.table.on_faulty(handle, error);
        // This drops its sinks and other hooks, which may panic again if the embedder holds no lock.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            drop_connection(connection);
            foreign::defer(payload);
        }));
    }

    /// Drops the connection that was used last, after a panic outside the endpoint.
    ///
    /// For embedders whose lock was poisoned by a call of their application.
    pub fn drop_in_use(&mut self) {
        if let Some(handle) = self.table.take_in_use() {
            self.drop_faulty(handle, Box::new("a call of the application panicked"));
        }
    }

    /// Forgets which connection was used last, so that later panics are not attributed to it.
    #[inline]
    pub fn forget_in_use(&mut self) {
        self.table.take_in_use();
    }

    /// Returns the error of a connection that was dropped because of a panic.
    pub fn fault(&self, handle: ConnectionHandle) -> Option<&ConnectionError> {
        self.table.entry(handle)?.fault.as_deref()
    }
}

pub(super) fn internal_fault(message: &str) -> ConnectionError {
    let reason = format!("an internal fault ended the connection: {message}");
    ConnectionError::TransportError(TransportError::new(
        TransportErrorCode::INTERNAL_ERROR,
        reason,
    ))
}

/// Returns the beginning of a panic's message.
pub(super) fn message_of(payload: &(dyn Any + Send)) -> String {
    let message = if let Some(message) = payload.downcast_ref::<String>() {
        message
    } else if let Some(message) = payload.downcast_ref::<&str>() {
        message
    } else {
        "a panic without a message"
    };
    let mut end = message.len().min(MAX_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message[..end].to_owned()
}
