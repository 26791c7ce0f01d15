//! The client over QUIC.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use courser::{Connection, EarlyData, Endpoint};
use courser_measure::target::{local_ip_for, port_closed};
use courser_measure::{Failure, IoCounters, Mover, Moves, MovesTotal};

use crate::carrier::{Carrier, Receiving, Sending, Unsent};
use crate::meter::Meter;
use crate::network::Network;
use crate::remote::Remote;
use crate::server_report::ServerReport;
use crate::transfer::Until;
use crate::via::{Tunnels, Via};
use crate::wire;
use crate::wire::{CHUNK, ENDLESS, HEADER, MAX_REPORT, REPORT_REQUEST, REPORT_START, Request};

/// Opens connections from one socket.
#[derive(Debug)]
pub(crate) struct QuicConnector {
    endpoint: Endpoint,
    config: courser::ClientConfig,
    /// True if connections can be used before their handshakes are complete.
    is_early: bool,
    /// Tunnels through a proxy, in which the connections are.
    tunnels: Option<Tunnels>,
    /// Moves the connections to new sockets until it is dropped.
    _mover: Option<Mover>,
    moves: Option<Arc<Moves>>,
}

impl QuicConnector {
    pub(crate) fn new(remote: &Remote, config: courser::ClientConfig) -> Result<Self, Failure> {
        // The socket for packets to the server, or to the proxy.
        let via = remote.via.as_ref();
        let peer = via.map_or(remote.address, Via::address);
        let local = SocketAddr::from((local_ip_for(peer.ip()), 0));
        let endpoint = Endpoint::client(local)
            .map_err(|error| Failure::new(format!("cannot open a socket: {error}")))?;
        endpoint.set_segmentation_offload(remote.segmentation_offload);
        let (mut mover, mut moves) = (None, None);
        if let Some(pause) = remote.rebind_every {
            let (watched, moved) = (
                Moves::new(MovesTotal::new(Instant::now())),
                endpoint.clone(),
            );
            mover = Some(Mover::start(pause, watched.clone(), move || {
                vec![moved.clone()]
            }));
            moves = Some(watched);
        }
        Ok(Self {
            endpoint,
            config,
            is_early: false,
            tunnels: via.map(|via| Tunnels::new(via.clone(), &remote.tls, remote.outer())),
            _mover: mover,
            moves,
        })
    }

    /// Returns connections before their handshakes complete, so that they can send early data.
    pub(crate) fn with_early_data(mut self) -> Self {
        self.is_early = true;
        self
    }

    /// Connects, and completes the handshake unless early data is on.
    pub(crate) async fn connect(&self, remote: &Remote) -> Result<Connection, Failure> {
        let address = remote.address;
        let endpoint = match &self.tunnels {
            Some(tunnels) => tunnels.endpoint(&self.endpoint, address).await?,
            None => self.endpoint.clone(),
        };
        let connecting = endpoint.connect_with(self.config.clone(), address, &remote.name)?;
        let connected = async {
            match self.is_early {
                true => connecting.early().await,
                false => connecting.await,
            }
        };
        let connection = tokio::select! {
            result = connected => result.map_err(|error| remote.quic_failure(&error)),
            () = port_closed(address), if self.tunnels.is_none() => Err(remote.not_listening("udp")),
        }?;
        for via in &remote.paths {
            let opened = connection.open_path_via(via).await;
            opened.map_err(|error| Failure::new(format!("no path through {via}: {error}")))?;
        }
        Ok(connection)
    }

    /// Returns the features that a connection of this connector uses.
    pub(crate) fn network(&self, connection: &Connection, is_segmenting: bool) -> Network {
        Network::new(&self.endpoint, connection, is_segmenting)
    }

    /// Returns the moves of the connections, if they are moved.
    pub(crate) fn moves(&self) -> Option<Arc<Moves>> {
        self.moves.clone()
    }

    pub(crate) fn io(&self) -> IoCounters {
        IoCounters::of_endpoint(&self.endpoint)
    }

    /// Waits until the peers of closed connections have closed them too.
    pub(crate) async fn wait_idle(&self) {
        if let Some(tunnels) = &self.tunnels {
            tunnels.close().await;
        }
        self.endpoint.wait_idle().await;
    }
}

/// Waits for the end of the handshake and for the tickets that follow it. Returns whether early data was accepted.
pub(crate) async fn complete(connection: &Connection) -> Result<EarlyData, Failure> {
    let early_data = connection.authenticated().await?;
    let tickets = async {
        // Servers send tickets before HANDSHAKE_DONE, or with it.
        while connection.stats().frames_received.handshake_done == 0
            && connection.close_reason().is_none()
        {
            tokio::time::sleep(TICKET_POLL).await;
        }
    };
    // Without tickets the next handshake is a full one.
    let _ = tokio::time::timeout(TICKET_TIMEOUT, tickets).await;
    Ok(early_data)
}

/// Sends until `until`, and waits until the server has read it all.
pub(crate) async fn upload(
    connection: &impl Carrier,
    until: Until,
    meter: &Meter,
) -> Result<(), Failure> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&0_u64.to_be_bytes()).await?;
    match until {
        Until::Bytes(bytes) => send_filler(&mut send, bytes, Some(meter)).await?,
        Until::At(deadline) => send_until(&mut send, deadline, meter).await?,
    }
    send.finish()?;
    expect_length(receive_all(&mut receive, None).await?, 0)
}

async fn send_until(
    send: &mut impl Sending,
    deadline: Instant,
    meter: &Meter,
) -> Result<(), Failure> {
    while Instant::now() < deadline {
        let chunk = wire::filler(CHUNK as u64);
        // No bytes are lost if the deadline interrupts a waiting write.
        match tokio::time::timeout_at(deadline.into(), send.write_some(chunk)).await {
            Ok(written) => meter.on_sent(written?),
            Err(_) => break,
        }
    }
    Ok(())
}

/// Receives responses until `until`, and counts their bytes.
pub(crate) async fn download(
    connection: &impl Carrier,
    until: Until,
    meter: &Meter,
) -> Result<(), Failure> {
    let (mut send, mut receive) = connection.open_bi().await?;
    let expected = match until {
        Until::Bytes(bytes) => bytes,
        Until::At(_) => ENDLESS,
    };
    send.write_all(&expected.to_be_bytes()).await?;
    send.finish()?;
    let all = receive_all(&mut receive, Some(meter));
    match until {
        Until::Bytes(bytes) => expect_length(all.await?, bytes),
        Until::At(deadline) => match tokio::time::timeout_at(deadline.into(), all).await {
            Ok(received) => expect_length(received?, ENDLESS),
            Err(_) => {
                receive.stop();
                Ok(())
            }
        },
    }
}

/// Sends a request and receives its response.
pub(crate) async fn exchange(
    connection: &impl Carrier,
    request: &Request,
    meter: &Meter,
) -> Result<(), Failure> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send_request(&mut send, request, meter).await?;
    expect_length(
        receive_all(&mut receive, Some(meter)).await?,
        request.response,
    )
}

/// Sends a request on a unidirectional stream, and receives a response on one of the server. The server may
/// answer requests in any order.
pub(crate) async fn exchange_uni(
    connection: &impl Carrier,
    request: &Request,
    meter: &Meter,
) -> Result<(), Failure> {
    let mut send = connection.open_uni().await?;
    send_request(&mut send, request, meter).await?;
    drop(send);
    let mut receive = connection.accept_uni().await?;
    expect_length(
        receive_all(&mut receive, Some(meter)).await?,
        request.response,
    )
}

async fn send_request(
    send: &mut impl Sending,
    request: &Request,
    meter: &Meter,
) -> Result<(), Failure> {
    send.write_chunk(request.start.clone()).await?;
    meter.on_sent(request.start.len() - HEADER);
    send_filler(send, request.rest, Some(meter)).await?;
    send.finish()
}

/// Sends `bytes` bytes of filler, and counts them in `meter`.
pub(crate) async fn send_filler(
    send: &mut impl Sending,
    mut bytes: u64,
    meter: Option<&Meter>,
) -> Result<(), Unsent> {
    while bytes > 0 {
        let chunk = wire::filler(bytes);
        let len = chunk.len();
        send.write_chunk(chunk).await?;
        bytes -= len as u64;
        if let Some(meter) = meter {
            meter.on_sent(len);
        }
    }
    Ok(())
}

async fn receive_all(receive: &mut impl Receiving, meter: Option<&Meter>) -> Result<u64, Failure> {
    let mut chunks = [const { Bytes::new() }; CHUNKS_AT_ONCE];
    let mut received = 0;
    while let Some(count) = receive.read_chunks(&mut chunks).await? {
        let bytes: usize = chunks[..count].iter().map(Bytes::len).sum();
        // Frees the buffers, which are reused for bytes that arrive meanwhile.
        chunks[..count].fill(Bytes::new());
        received += bytes as u64;
        if let Some(meter) = meter {
            meter.on_received(bytes);
        }
    }
    Ok(received)
}

fn expect_length(received: u64, expected: u64) -> Result<(), Failure> {
    if received == expected {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the server sent {received} bytes instead of {expected}"
    )))
}

/// Requests the server's counters; returns `None` when the server does not support the request.
pub(crate) async fn server_report(connection: &impl Carrier) -> Option<ServerReport> {
    tokio::time::timeout(REPORT_TIMEOUT, request_report(connection))
        .await
        .ok()?
        .ok()
        .flatten()
}

async fn request_report(connection: &impl Carrier) -> Result<Option<ServerReport>, Failure> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&REPORT_REQUEST.to_be_bytes()).await?;
    send.finish()?;
    let mut report = Vec::new();
    while let Some(chunk) = receive.read_chunk(MAX_REPORT).await? {
        report.extend_from_slice(&chunk);
        let seen = report.len().min(REPORT_START.len());
        if report.len() > MAX_REPORT || report[..seen] != REPORT_START[..seen] {
            receive.stop();
            return Ok(None);
        }
    }
    Ok(ServerReport::parse(&report))
}

/// The time limit for tickets, and the time between two checks for them.
const TICKET_TIMEOUT: Duration = Duration::from_secs(2);
const TICKET_POLL: Duration = Duration::from_micros(500);

/// Time limit for the server's counters; a courser server answers within a round trip.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);

/// The number of chunks in one read, as many as one turn of the driver receives.
const CHUNKS_AT_ONCE: usize = 16;
