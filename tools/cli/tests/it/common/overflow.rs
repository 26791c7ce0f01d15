//! Lets the receive buffers of sockets overflow, and reads the kernel's count of dropped datagrams.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use courser::{Endpoint, Identity, ServerConfig, h3};
use http::{Request, Response};
use http_body_util::Full;
use rustix::process::{Pid, Signal, kill_process};

/// Stops a process, sends datagrams to its socket until the kernel drops some, and continues it.
pub fn overflow(child: &Child, port: u16) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.expect("a process");
    let before = drops(port);
    kill_process(pid, Signal::STOP).expect("a running process");
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    for _ in 0..1000 {
        for _ in 0..100 {
            // This is not a QUIC packet, and is ignored.
            let _ = socket.send_to(&[0; 1000], to);
        }
        if drops(port) > before {
            break;
        }
    }
    assert!(
        drops(port) > before,
        "the buffer of port {port} never fills"
    );
    kill_process(pid, Signal::CONT).expect("a running process");
}

/// Returns the number of datagrams that the kernel has dropped at this port.
fn drops(port: u16) -> u64 {
    let table = std::fs::read_to_string("/proc/net/udp").expect("Linux");
    let suffix = format!(":{port:04X}");
    let sockets = table.lines().map(|line| line.split_whitespace());
    let sockets = sockets.filter_map(|mut columns| {
        let is_it = columns.nth(1)?.ends_with(&suffix);
        is_it.then(|| columns.last())?
    });
    sockets.filter_map(|drops| drops.parse::<u64>().ok()).sum()
}

/// Returns true if sockets of this process get smaller receive buffers than courser requests.
pub fn has_small_buffers() -> bool {
    let socket = courser_udp::UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let capabilities = socket.expect("a port").capabilities();
    capabilities.receive_buffer < capabilities.receive_buffer_wanted
}

/// Returns the binary as users run it, and whether it gets small buffers. Those of the superuser are as
/// large as requested, whatever the limit.
pub fn unprivileged(arguments: &[&str]) -> (Command, bool) {
    let without = || {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-net_admin", "--"]);
        command
    };
    if !without()
        .arg("true")
        .status()
        .is_ok_and(|status| status.success())
    {
        return (super::courser(arguments), has_small_buffers());
    }
    let mut command = without();
    command
        .arg(env!("CARGO_BIN_EXE_courser"))
        .args(arguments)
        .stdin(Stdio::null())
        .env_remove("SSLKEYLOGFILE");
    let limit = std::fs::read_to_string("/proc/sys/net/core/rmem_max").expect("Linux");
    let limit: u64 = limit.trim().parse().expect("a number");
    (command, limit < 7 << 20)
}

/// An HTTP/3 server that reports the address of each client and responds after two seconds.
pub struct SlowServer {
    pub address: SocketAddr,
    requests: mpsc::Receiver<SocketAddr>,
}

impl SlowServer {
    pub fn start() -> Self {
        let (ready, listening) = mpsc::channel();
        let (seen, requests) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.expect("a runtime").block_on(serve(ready, seen));
        });
        Self {
            address: listening.recv().expect("an address"),
            requests,
        }
    }

    pub fn url(&self) -> String {
        format!("https://{}/", self.address)
    }

    /// Waits for the next request and returns the port of its client.
    pub fn next_client(&self) -> u16 {
        let client = self.requests.recv_timeout(Duration::from_secs(20));
        client.expect("a request").port()
    }
}

async fn serve(ready: mpsc::Sender<SocketAddr>, seen: mpsc::Sender<SocketAddr>) {
    let identity = Identity::dev().expect("random numbers");
    let config = ServerConfig::with_identity(&identity).expect("its own key");
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let endpoint = Endpoint::server(config.alpn([h3::ALPN]), local).expect("a port");
    let address = endpoint.local_addr().expect("bound");
    ready.send(address).expect("a receiver");
    while let Some(incoming) = endpoint.accept().await {
        let seen = seen.clone();
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else {
                return;
            };
            let client = connection.remote_address();
            let service = tower::service_fn(move |_: Request<_>| {
                let seen = seen.clone();
                async move {
                    // The test may have ended.
                    let _ = seen.send(client);
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"done"))))
                }
            });
            // Clients may disconnect at any time.
            let _ = h3::serve(connection, service).await;
        });
    }
}
