//! The settings of TLS.

use courser_tls::rustls;
use courser_tls::{ClientAuthentication, Cryptography};

use super::Server;
#[cfg(doc)]
use crate::certificates::Certificates;
#[cfg(doc)]
use crate::events::Event;

impl Server {
    /// Sets the policy for client certificates for all protocols. None are requested by default.
    ///
    /// [`TlsFacts::client_certificates`](crate::TlsFacts::client_certificates) of each request's
    /// [`Peer`](crate::Peer) contains the chain of the client. If a certificate is required, a client without
    /// one is refused with the alert certificate_required, which [`Event::ClientCertificateRefused`] reports.
    /// Requests in early data are delayed until the handshake completes.
    ///
    /// ```no_run
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
    /// use courser::rustls::RootCertStore;
    /// use courser::{ClientAuthentication, Identity};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut roots = RootCertStore::empty();
    /// roots.add(Identity::from_pem_files("ca.pem", "ca.key")?.certificate())?;
    /// let server = courser::serve("[::]:4433", Identity::dev()?)
    ///     .client_authentication(ClientAuthentication::Required(roots));
    /// # let _ = server;
    /// # Ok(()) }
    /// ```
    pub fn client_authentication(mut self, policy: ClientAuthentication) -> Self {
        self.tls.clients = policy;
        self
    }

    /// Sets cipher suites and key exchange groups for all protocols. See [`Cryptography`] for the default.
    pub fn cryptography(mut self, cryptography: Cryptography) -> Self {
        self.tls.cryptography = cryptography;
        self
    }

    /// Modifies the TLS configurations of QUIC and TCP before they are used, for example to log keys.
    /// Application protocols are set afterwards. With [`Certificates::asynchronous`], the resolver that `change`
    /// sets for TCP is replaced.
    pub fn tls(mut self, change: impl Fn(&mut rustls::ServerConfig) + Send + 'static) -> Self {
        self.tls.hook = Some(Box::new(change));
        self
    }

    /// Runs the TLS work of QUIC on threads that may block, like
    /// [`ServerConfig::offload_tls`](courser_quic::ServerConfig::offload_tls). Off by default.
    ///
    /// Enable it if a [resolver](Certificates::resolver), a signer or a verifier of client certificates may be
    /// slow, because it uses a network, a key store or a disk. Otherwise no QUIC connection of the same address
    /// sends or receives until it returns. Over TCP it runs in the task of its connection: it occupies a thread
    /// of the runtime, and cannot wait for async code with
    /// [`runtime::block_on`](courser_quic::runtime::block_on), which panics there.
    ///
    /// With [`Certificates::asynchronous`] it is always on, and TLS over TCP also runs on threads that may
    /// block.
    pub fn offload_tls(mut self, offloads: bool) -> Self {
        self.quic.offloads_tls = offloads;
        self
    }
}
