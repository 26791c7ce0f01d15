//! Events of a server.

use std::fmt;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use courser_quic::{ConfigError, SocketEvent};

/// An event that does not belong to a request. The library writes no logs;
/// [`Server::on_event`](super::Server::on_event) reports events.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// New handshakes use another certificate.
    CertificateReplaced,
    /// A new certificate cannot be used or obtained. The server keeps the previous one.
    CertificateKept(ConfigError),
    /// An OCSP response is not stapled for this reason.
    OcspIgnored(String),
    /// A client was refused because it has no certificate or an unacceptable one. Reported at most once a
    /// minute.
    ClientCertificateRefused {
        /// The client's address, which may be forged over QUIC.
        address: SocketAddr,
        /// The TLS alert or error.
        reason: String,
    },
    /// A UDP socket has failed, was reopened or is closed. Each kind is reported at most once a minute.
    Socket {
        /// The local port of the socket.
        port: u16,
        /// The event of the endpoint.
        event: SocketEvent,
    },
    /// A connection could not be accepted because file descriptors or memory ran out. The server retries.
    AcceptFailed(std::io::Error),
    /// A background task has ended. The server is not [ready](super::ServerHandle::is_ready) until the task runs
    /// again. While the task of QUIC does not run, responses over TCP withdraw `Alt-Svc`.
    TaskEnded {
        /// The name of the task: QUIC or TCP at an address, the certificates, ACME, or one of
        /// [`ServerHandle::keep_running`](super::ServerHandle::keep_running).
        task: String,
        /// The returned error, or the message of the panic.
        reason: String,
        /// The time until the task is restarted. `None` if it depends on other tasks: a shard of an endpoint is
        /// restarted with the endpoint, once that has no connections.
        pause: Option<Duration>,
    },
    /// A background task that had ended runs again.
    TaskResumed {
        /// The name of the task, as in [`TaskEnded`](Self::TaskEnded).
        task: String,
    },
    /// The server drains: it accepts no connections and completes its requests.
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
                    Some(pause) => write!(f, "; it is restarted in {} s", pause.as_secs()),
                    None => Ok(()),
                }
            }
            Self::TaskResumed { task } => write!(f, "{task} runs again"),
            Self::Draining => f.write_str("draining"),
        }
    }
}

/// The listener that receives the events.
#[derive(Clone, Default)]
pub(super) struct Events(Option<Arc<Listener>>);

type Listener = dyn Fn(&Event) + Send + Sync;

impl Events {
    pub(super) fn to(listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Calls the listener. If it panics, the calling task continues.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "an event is created to be reported"
    )]
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
