//! The server under test.

use std::any::Any;
use std::fmt;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use courser_quic::rustls::pki_types::CertificateDer;

/// A server under test.
pub struct Gateway {
    /// Its address, for TCP and UDP.
    pub address: SocketAddr,
    /// Its certificate, for localhost.
    pub certificate: CertificateDer<'static>,
    /// Ends the server when it is dropped.
    _guard: Box<dyn Any + Send>,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Gateway {
    /// Wraps a server that runs until `guard` is dropped.
    pub fn new(
        address: SocketAddr,
        certificate: CertificateDer<'static>,
        guard: impl Any + Send,
    ) -> Self {
        Self {
            address,
            certificate,
            _guard: Box::new(guard),
        }
    }

    /// Starts a server as a process. The command must have `--json`, so that its first line of output contains the address.
    ///
    /// # Panics
    /// Panics if the process does not start, or if its first line is not the event `listening`.
    pub fn process(
        command: &mut Command,
        certificate: impl FnOnce() -> CertificateDer<'static>,
    ) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped"));
        let process = Process(child);
        let mut line = String::new();
        lines.read_line(&mut line).expect("text");
        let event: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(event["event"], "listening", "{event}");
        let address = event["addresses"][0].as_str().expect("an address");
        let address = address.parse().expect("an address");
        // The pipe stays open: a server whose reader is gone warns of it.
        Self::new(address, certificate(), (process, lines))
    }
}

/// A process, killed on drop.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
