//! Events of a server.

use std::fmt;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use courser_quic::{ConfigError, SocketEvent};

/// An event that belongs to no request. The library writes no logs;
/// [`Server::on_event`](super::Server::on_event) reports the events.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// New handshakes use another certificate from now on.
    CertificateReplaced,
    /// A new certificate is unusable, or could not be obtained: the old one stays in use.
    CertificateKept(ConfigError),
    /// An OCSP response is not stapled, for this reason.
    OcspIgnored(String),
    /// A client was refused for lack of a certificate, or for its certificate. At most one in a minute is
    /// reported.
    ClientCertificateRefused {
        /// The client's address.
        address: SocketAddr,
        /// The reason.
        reason: String,
    },
    /// A UDP socket has failed, was opened again or is over. Each kind is reported once a minute.
    Socket {
        /// The port of the socket.
        port: u16,
        /// The event of the endpoint.
        event: SocketEvent,
    },
    /// No connection could be accepted, for lack of file descriptors or memory. It is tried again.
    AcceptFailed(std::io::Error),
    /// A background task has ended. The server is not [ready](super::ServerHandle::is_ready) until it runs
    /// again, and if it is QUIC, responses over TCP withdraw `Alt-Svc`.
    TaskEnded {
        /// The task: QUIC or TCP at an address, the certificates, ACME, or one of
        /// [`ServerHandle::keep_running`](super::ServerHandle::keep_running).
        task: String,
        /// The reason.
        reason: String,
        /// The time after which it is begun again. `None` if that depends on others: a shard of an
        /// endpoint is begun again with the endpoint, once that has no connections.
        pause: Option<Duration>,
    },
    /// A background task that had ended runs again.
    TaskResumed {
        /// The task.
        task: String,
    },
    /// The server drains: it accepts no connections and finishes its requests.
    Draining,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CertificateReplaced => f.write_str("the certificate was replaced"),
            Self::CertificateKept(error) => {
                write!(f, "keeping the old certificate: {error}")
            }
            Self::OcspIgnored(reason) => f.write_str(reason),
            Self::ClientCertificateRefused { address, reason } => {
                write!(f, "refused {address} for its client certificate: {reason}")
            }
            Self::Socket { port, event } => write!(f, "UDP port {port}: {event}"),
            Self::AcceptFailed(error) => write!(f, "cannot accept connections: {error}"),
            Self::TaskEnded {
                task,
                reason,
                pause,
            } => {
                write!(f, "{task} has stopped: {reason}")?;
                match pause {
                    Some(pause) => write!(f, "; it is tried again in {} s", pause.as_secs()),
                    None => Ok(()),
                }
            }
            Self::TaskResumed { task } => write!(f, "{task} runs again"),
            Self::Draining => f.write_str("draining"),
        }
    }
}

/// The listener of the events.
#[derive(Clone, Default)]
pub(super) struct Events(Option<Arc<Listener>>);

type Listener = dyn Fn(&Event) + Send + Sync;

impl Events {
    pub(super) fn to(listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Calls the listener. A listener that panics does not end the task that calls it.
    #[expect(clippy::needless_pass_by_value, reason = "made to be told")]
    pub(super) fn report(&self, event: Event) {
        if let Some(listener) = &self.0 {
            let _ = catch_unwind(AssertUnwindSafe(|| listener(&event)));
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}
