//! A server and a client in one process, on threads of their own.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use courser::{Algorithm, Capabilities};
use courser_measure::target::transport;
use courser_measure::tls::{self, Identity, Trust};
use courser_measure::{CpuClock, allowed_cores, pin_to};
use courser_perf::{Over, PROTOCOL, Remote, Server, ServerOptions};
use tokio::sync::oneshot;

use crate::error::Failure;

/// A server on its own thread, and what a client has to know of it.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) quic: Remote,
    pub(crate) tcp: Remote,
    pub(crate) capabilities: Capabilities,
    /// The cores that server and client run on, if they were told.
    pub(crate) cores: Option<(usize, usize)>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<(), Failure>>,
}

/// What the server's thread tells once it listens.
#[derive(Debug)]
struct Ready {
    quic: SocketAddr,
    tcp: SocketAddr,
    capabilities: Capabilities,
}

/// UDP payload that Ethernet carries over IPv4 and IPv6, tunnels aside.
pub(crate) const MTU: u16 = 1452;

impl Pair {
    /// Starts the server. The calling thread becomes the client's.
    pub(crate) fn start() -> Result<Self, Failure> {
        let identity = Identity::in_memory()?;
        let trust = identity
            .certificate()
            .map_or(Trust::Anybody, Trust::Exactly);
        let cores = two_cores();
        let (ready_sender, ready) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || serve(identity, cores, &ready_sender, stopped))?;
        // The channel ends with the thread: then the thread knows why.
        let Ok(ready) = ready.recv() else {
            return Err(join(thread)
                .err()
                .unwrap_or_else(|| Failure::new("no server")));
        };
        if let Some((_, client)) = cores {
            pin_to(client).map_err(Failure::new)?;
        }
        let tls = Arc::new(tls::client(&trust, PROTOCOL)?);
        let remote = |over, address: SocketAddr| Remote {
            target: address.to_string(),
            address,
            name: "localhost".to_owned(),
            over,
            congestion: Algorithm::Cubic,
            mtu: Some(MTU),
            segmentation_offload: true,
            connect_timeout: Duration::from_secs(5),
            clock: CpuClock::Thread,
            tls: tls.clone(),
            sinks: None,
        };
        Ok(Self {
            quic: remote(Over::Quic, ready.quic),
            tcp: remote(Over::Tcp, ready.tcp),
            capabilities: ready.capabilities,
            cores,
            stop,
            thread,
        })
    }

    /// Stops the server: nothing listens afterwards.
    pub(crate) fn stop(self) -> Result<(), Failure> {
        // Gone already: joining tells why.
        let _ = self.stop.send(());
        join(self.thread)
    }
}

fn join(thread: JoinHandle<Result<(), Failure>>) -> Result<(), Failure> {
    thread
        .join()
        .unwrap_or_else(|_| Err(Failure::new("the server's thread panicked")))
}

fn serve(
    identity: Identity,
    cores: Option<(usize, usize)>,
    ready: &mpsc::Sender<Ready>,
    stopped: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    if let Some((server, _)) = cores {
        pin_to(server).map_err(Failure::new)?;
    }
    crate::process::runtime()?.block_on(async {
        let options = ServerOptions {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            identity,
            transport: transport(Algorithm::Cubic, Some(MTU)),
            tcp: true,
            clock: CpuClock::Thread,
        };
        let server = Server::bind(options, |_| {}).await?;
        let (quic, tcp) = server.addresses()?;
        let tcp = tcp.ok_or_else(|| Failure::new("the server does not serve TCP"))?;
        let capabilities = server.endpoint().capabilities();
        // Nobody waits any more only if the client has failed.
        let _ = ready.send(Ready {
            quic,
            tcp,
            capabilities,
        });
        server.run(async { drop(stopped.await) }).await;
        Ok(())
    })
}

/// A core for each end, so that neither is moved about while it is measured.
fn two_cores() -> Option<(usize, usize)> {
    match allowed_cores()[..] {
        [first, .., last] => Some((first, last)),
        _ => None,
    }
}
