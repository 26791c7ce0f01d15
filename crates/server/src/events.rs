//! Events of a server.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use courser_quic::{ConfigError, SocketEvent};

use crate::peer::Protocol;

/// An event of the server, or a failure of its service. The library writes no logs;
/// [`Server::on_event`](super::Server::on_event) reports events.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// New handshakes use another certificate.
    CertificateReplaced,
    /// A new certificate cannot be used. The server keeps the previous one.
    CertificateKept(ConfigError),
    /// A certificate in use expires soon, or has expired. Each is reported once a day from 14 days before its end, or
    /// in the last fifth of a shorter validity, and within a minute after its end.
    CertificateExpires {
        /// The names for which it is valid.
        names: Vec<String>,
        /// The end of its validity.
        not_after: SystemTime,
    },
    /// New handshakes use a certificate from ACME (`Certificates::acme`, feature `acme`).
    CertificateObtained {
        /// The names for which it is valid.
        names: Vec<String>,
        /// The end of its validity.
        not_after: SystemTime,
        /// The time at which it will be renewed. The ACME server may change it.
        renewal: SystemTime,
        /// False if an earlier process has obtained and stored it.
        is_new: bool,
    },
    /// An attempt to obtain a certificate from an ACME server has failed.
    CertificateNotObtained {
        /// The requested names.
        names: Vec<String>,
        /// The reason, and what an operator can do about it.
        reason: String,
        /// The time of the next attempt.
        next_attempt: SystemTime,
        /// The end of the validity of the certificate in use. `None` if there is none, so that all clients are
        /// refused.
        not_after: Option<SystemTime>,
    },
    /// An ACME client could not read or write a file, or remove a DNS record.
    AcmeNotice(String),
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
    /// The server cannot leave its UDP sockets to the next process, although they stay open
    /// ([`ListeningSockets::stay_open`](super::ListeningSockets::stay_open)), for this reason. It refuses new QUIC
    /// clients while it drains.
    ClientsRefused(std::io::Error),
    /// The service, or the content of one of its responses, has panicked. Only that request fails; the connection
    /// continues where its protocol allows that. Rust prints the message with its place too, unless the program has
    /// another panic hook.
    HandlerPanicked {
        /// The address of the client.
        client: SocketAddr,
        /// The protocol of the request.
        protocol: Protocol,
        /// Method and path without the query, at most 63 bytes before bytes other than printable ASCII are escaped (limit
        /// K551).
        request: String,
        /// The message of the panic, at most 512 bytes, escaped likewise.
        reason: String,
        /// True if the client got `500 Internal Server Error`. False if its response had begun and was aborted.
        is_answered: bool,
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
            Self::CertificateExpires { names, not_after } => {
                let state = validity(*not_after);
                write!(f, "the certificate for {} {state}", names.join(", "))
            }
            Self::CertificateObtained {
                names,
                not_after,
                renewal,
                is_new,
            } => {
                let how = if *is_new { "obtained" } else { "found" };
                write!(
                    f,
                    "the certificate for {} is {how}: it is valid for {}, and renewed in {}",
                    names.join(", "),
                    from_now(*not_after),
                    from_now(*renewal)
                )
            }
            Self::CertificateNotObtained {
                names,
                reason,
                next_attempt,
                not_after,
            } => {
                let (names, next) = (names.join(", "), from_now(*next_attempt));
                write!(
                    f,
                    "no certificate for {names}: {reason}; next attempt in {next}, "
                )?;
                match not_after {
                    Some(end) => write!(f, "the present one is valid for {}", from_now(*end)),
                    None => f.write_str("until then all clients are refused"),
                }
            }
            Self::AcmeNotice(text) => write!(f, "ACME: {text}"),
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
            Self::ClientsRefused(error) => write!(
                f,
                "new clients of HTTP/3 are refused until this process has ended, because its own ones cannot be \
                 separated from them: {error}"
            ),
            Self::HandlerPanicked { .. } => self.fmt_panic(f),
            Self::Draining => f.write_str("draining"),
        }
    }
}

impl Event {
    /// Describes a panic of the service.
    fn fmt_panic(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::HandlerPanicked {
            client,
            protocol,
            request,
            reason,
            is_answered,
        } = self
        else {
            return Ok(());
        };
        let effect = match is_answered {
            true => "it was answered with 500",
            false => "its response was aborted",
        };
        write!(
            f,
            "the service panicked during {request} from {client} over {protocol}, and {effect}: {reason}"
        )
    }
}

/// Describes a certificate that expires soon or has expired.
fn validity(not_after: SystemTime) -> Cow<'static, str> {
    match not_after > SystemTime::now() {
        true => format!("expires in {}, and was not renewed", from_now(not_after)).into(),
        false => "has expired, and clients refuse it".into(),
    }
}

/// Returns the time until `at`, in the largest unit of which it has two.
fn from_now(at: SystemTime) -> String {
    let seconds = at
        .duration_since(SystemTime::now())
        .unwrap_or_default()
        .as_secs_f64();
    // A step of the agent takes a moment, and "59 s" would be read as something else than a minute.
    let (length, unit) = [(86_400.0, "days"), (3600.0, "h"), (60.0, "min")]
        .into_iter()
        .find(|(length, _)| seconds >= 2.0 * length - 1.0)
        .unwrap_or((1.0, "s"));
    format!("{:.0} {unit}", seconds / length)
}

/// Returns the message of a panic.
#[cold]
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
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
