//! Capture of traffic secrets from the key log of rustls.
//!
//! rustls logs a secret while it processes the bytes of a session, on the calling thread. A session
//! therefore lends its [`Secrets`] to the thread while rustls works. The [`Tap`], which replaces the key
//! log of the user, stores the secrets there.

use std::cell::RefCell;
use std::mem;
use std::net::IpAddr;
use std::sync::Arc;

use courser_base::Side;
use courser_crypto::{CipherSuite, Exporter, Secret, SecretPair};
use rustls::KeyLog;
use zeroize::Zeroizing;

use crate::early_data::EarlyLimits;

/// The secrets of one session that rustls has logged and the session has not taken.
#[derive(Default)]
pub(crate) struct Secrets {
    client_early: LoggedSecret,
    client_handshake: LoggedSecret,
    server_handshake: LoggedSecret,
    client_traffic: LoggedSecret,
    server_traffic: LoggedSecret,
    exporter: LoggedSecret,
    /// The limits that a server grants on this connection, for the store of its sessions.
    limits: Option<EarlyLimits>,
    /// The address of the client of a server, for the store of its sessions.
    client: Option<IpAddr>,
    /// The OCSP response that a server has stapled to its certificate (limit K187).
    ocsp_response: Option<Box<[u8]>>,
    /// The algorithm of the certificate that a client has decompressed.
    certificate_compression: Option<&'static str>,
}

impl Secrets {
    /// Returns the empty secrets of a server that grants `limits` and accepts early data.
    pub(crate) fn with_limits(limits: Option<EarlyLimits>) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Sets the address of the client of a server.
    pub(crate) const fn set_client(&mut self, client: IpAddr) {
        self.client = Some(client);
    }

    /// Runs `work` and captures the secrets that rustls logs in it.
    ///
    /// If `work` runs another session on the same thread, for example in a certificate verifier,
    /// that session lends its own secrets and restores these afterwards.
    pub(crate) fn capture<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let loan = Loan::new(self);
        let result = work();
        drop(loan);
        result
    }

    /// Takes the secret of 0-RTT packets.
    pub(crate) fn take_early(&mut self, suite: CipherSuite) -> Option<Secret> {
        secret(&self.client_early.take()?, suite)
    }

    /// Takes the secrets of the Handshake level.
    pub(crate) fn take_handshake(&mut self, suite: CipherSuite, side: Side) -> Option<SecretPair> {
        pair(
            &mut self.client_handshake,
            &mut self.server_handshake,
            suite,
            side,
        )
    }

    /// Takes the secrets of the 1-RTT level.
    pub(crate) fn take_one_rtt(&mut self, suite: CipherSuite, side: Side) -> Option<SecretPair> {
        pair(
            &mut self.client_traffic,
            &mut self.server_traffic,
            suite,
            side,
        )
    }

    /// Returns an exporter. The secret is kept for further calls.
    pub(crate) fn exporter(&self, suite: CipherSuite) -> Option<Exporter> {
        secret(self.exporter.as_ref()?, suite).map(Exporter::new)
    }

    /// Returns the OCSP response that the server has stapled, if any.
    pub(crate) fn ocsp_response(&self) -> Option<&[u8]> {
        self.ocsp_response.as_deref()
    }

    /// Returns the algorithm with which the server has compressed its certificate, if any.
    pub(crate) const fn certificate_compression(&self) -> Option<&'static str> {
        self.certificate_compression
    }

    /// Returns the field for the secret that the key log names `label`.
    fn secret_mut(&mut self, label: &str) -> Option<&mut LoggedSecret> {
        match label {
            "CLIENT_EARLY_TRAFFIC_SECRET" => Some(&mut self.client_early),
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Some(&mut self.client_handshake),
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => Some(&mut self.server_handshake),
            "CLIENT_TRAFFIC_SECRET_0" => Some(&mut self.client_traffic),
            "SERVER_TRAFFIC_SECRET_0" => Some(&mut self.server_traffic),
            "EXPORTER_SECRET" => Some(&mut self.exporter),
            _ => None,
        }
    }
}

/// A key log that passes secrets to the session that is being processed, and then to the user's key
/// log.
#[derive(Debug)]
pub(crate) struct Tap {
    user: Arc<dyn KeyLog>,
}

impl Tap {
    /// Wraps the user's key log.
    pub(crate) fn new(user: Arc<dyn KeyLog>) -> Arc<Self> {
        Arc::new(Self { user })
    }
}

impl KeyLog for Tap {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        CURRENT.with_borrow_mut(|secrets| {
            if let Some(logged) = secrets.secret_mut(label) {
                *logged = Some(Zeroizing::new(secret.to_vec()));
            }
        });
        if self.user.will_log(label) {
            self.user.log(label, client_random, secret);
        }
    }
}

/// Returns the limits of the session that rustls is processing on this thread.
pub(crate) fn current_limits() -> Option<EarlyLimits> {
    CURRENT.with_borrow(|secrets| secrets.limits)
}

/// Returns the address of the client whose session rustls is processing on this thread.
pub(crate) fn current_client() -> Option<IpAddr> {
    CURRENT.with_borrow(|secrets| secrets.client)
}

/// Records the OCSP response of the server for the session that rustls is processing on this thread, if it has
/// at most 16 KiB.
pub(crate) fn on_ocsp_response(response: &[u8]) {
    if response.len() <= MAX_OCSP_RESPONSE {
        CURRENT.with_borrow_mut(|secrets| secrets.ocsp_response = Some(response.into()));
    }
}

/// Records the algorithm of a certificate that was decompressed for the session that rustls is processing on
/// this thread.
pub(crate) fn on_certificate_decompressed(algorithm: &'static str) {
    CURRENT.with_borrow_mut(|secrets| secrets.certificate_compression = Some(algorithm));
}

/// Maximum length of an OCSP response that a client keeps (limit K187). Usual ones have 500 to 2500
/// bytes.
const MAX_OCSP_RESPONSE: usize = 16 * 1024;

/// Secrets lent to the thread. Dropping the loan returns them, also during a panic.
struct Loan<'a> {
    owner: &'a mut Secrets,
}

impl<'a> Loan<'a> {
    fn new(owner: &'a mut Secrets) -> Self {
        CURRENT.with_borrow_mut(|current| mem::swap(current, owner));
        Self { owner }
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| mem::swap(current, self.owner));
    }
}

type LoggedSecret = Option<Zeroizing<Vec<u8>>>;

thread_local! {
    /// The secrets of the session that rustls is processing.
    static CURRENT: RefCell<Secrets> = RefCell::default();
}

fn pair(
    client: &mut LoggedSecret,
    server: &mut LoggedSecret,
    suite: CipherSuite,
    side: Side,
) -> Option<SecretPair> {
    let client = secret(&client.take()?, suite)?;
    let server = secret(&server.take()?, suite)?;
    Some(match side {
        Side::Client => SecretPair {
            local: client,
            peer: server,
        },
        Side::Server => SecretPair {
            local: server,
            peer: client,
        },
    })
}

fn secret(bytes: &[u8], suite: CipherSuite) -> Option<Secret> {
    (bytes.len() == suite.hash().output_len()).then(|| Secret::new(suite, bytes))
}
