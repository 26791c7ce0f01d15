//! The origin of proxies: plain HTTP/1.1 of hyper, in a thread of this program.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use peers::Failure;
use peers::tally::Tally;
use peers::web::Filler;
use tokio::net::{TcpListener, TcpStream};

/// A server that answers every request with a body of the same size, until this program ends.
#[derive(Debug)]
pub(crate) struct Origin {
    address: SocketAddr,
    tally: Arc<Tally>,
}

impl Origin {
    /// Listens, and serves on `core`, apart from the proxy.
    pub(crate) fn start(core: usize, response_size: u64) -> Result<Self, Failure> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let tally = Arc::new(Tally::default());
        let counts = tally.clone();
        thread::Builder::new()
            .name("origin".to_owned())
            .spawn(move || {
                if let Err(failure) = run(listener, core, response_size, counts) {
                    eprintln!("origin: {failure}");
                }
            })?;
        Ok(Self { address, tally })
    }

    /// Returns its address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of requests that it has answered.
    pub(crate) fn answers(&self) -> u64 {
        self.tally.answers.load(Ordering::Relaxed)
    }
}

fn run(
    listener: std::net::TcpListener,
    core: usize,
    response_size: u64,
    tally: Arc<Tally>,
) -> Result<(), Failure> {
    let mut only = CpuSet::new();
    only.set(core)?;
    // This thread alone.
    sched_setaffinity(Pid::from_raw(0), &only).map_err(|error| format!("core {core}: {error}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(serve(stream, response_size, tally.clone()));
        }
    })
}

async fn serve(stream: TcpStream, response_size: u64, tally: Arc<Tally>) {
    let service = service_fn(move |_: Request<Incoming>| {
        tally.answered(0, response_size);
        let response = Response::new(Filler::new(response_size));
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // The proxy closes it when it ends; a request that was cut short is missed by the client.
    let _ = connection.await;
}
