//! A server in the same process as its client.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use courser::{Algorithm, Capabilities, QuicVersion};
use courser_measure::target::transport;
use courser_measure::tls::{self, Identity, Trust};
use courser_measure::{CpuClock, Failure, allowed_cores, pin_to};
use tokio::sync::oneshot;

use crate::remote::{Over, Remote};
use crate::server::{Server, ServerOptions};
use crate::wire::PROTOCOL;

/// A server on a thread of this process, for comparisons without a network.
///
/// It listens on 127.0.0.1 for QUIC and for TLS over TCP, with a certificate in memory that only its
/// clients trust.
#[derive(Debug)]
pub struct Loopback {
    /// The server as a target over QUIC.
    pub quic: Remote,
    /// The server as a target over TLS on TCP.
    pub tcp: Remote,
    /// The capabilities of the server's UDP socket.
    pub capabilities: Capabilities,
    /// The cores of server and client, if this machine has two.
    pub cores: Option<(usize, usize)>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<(), Failure>>,
}

/// The sockets of the server.
#[derive(Debug)]
struct Ready {
    quic: SocketAddr,
    tcp: SocketAddr,
    capabilities: Capabilities,
}

impl Loopback {
    /// Starts the server. `mtu` is the UDP payload of full packets.
    ///
    /// With two cores or more, the server's thread and the calling thread are pinned to one core each, so that
    /// the scheduler does not move them during a measurement.
    ///
    /// # Errors
    /// Returns an error if the server cannot be started.
    pub fn start(mtu: u16) -> Result<Self, Failure> {
        let identity = Identity::in_memory()?;
        let trust = identity
            .certificate()
            .map_or(Trust::AnyServer, Trust::Exactly);
        let cores = two_cores();
        let (ready_sender, ready) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let options = ServerOptions {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            identity,
            transport: transport(Algorithm::Cubic, Some(mtu)),
            versions: None,
            early_data: true,
            tcp: true,
            webtransport: false,
            shards: 1,
            clock: CpuClock::Thread,
        };
        let thread = std::thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || serve(options, cores, &ready_sender, stopped))?;
        // A closed channel means that the thread has ended: its result is the reason.
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
            capacity_rise: true,
            versions: vec![QuicVersion::V1],
            mtu: Some(mtu),
            segmentation_offload: true,
            rebind_every: None,
            paths: Vec::new(),
            via: None,
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

    /// Stops the server and closes its sockets.
    ///
    /// # Errors
    /// Returns an error if the server has failed.
    pub fn stop(self) -> Result<(), Failure> {
        // Fails if the server has ended already, which `join` reports.
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
    options: ServerOptions,
    cores: Option<(usize, usize)>,
    ready: &mpsc::Sender<Ready>,
    stopped: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    if let Some((server, _)) = cores {
        pin_to(server).map_err(Failure::new)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let server = Server::bind(options, |_| {}).await?;
        let (quic, tcp) = server.addresses()?;
        let tcp = tcp.ok_or_else(|| Failure::new("the server does not serve TCP"))?;
        let capabilities = server.endpoint().capabilities();
        // Fails if the client has failed and no longer receives.
        let _ = ready.send(Ready {
            quic,
            tcp,
            capabilities,
        });
        server.run(async { drop(stopped.await) }).await;
        Ok(())
    })
}

/// Returns a core for each end: the first and the last one allowed.
fn two_cores() -> Option<(usize, usize)> {
    match allowed_cores()[..] {
        [first, .., last] => Some((first, last)),
        _ => None,
    }
}
