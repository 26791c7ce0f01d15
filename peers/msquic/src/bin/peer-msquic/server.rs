//! The server.

use std::sync::Arc;
use std::time::Instant;

use msquic::{BufferRef, Connection, ConnectionEvent, ConnectionRef};
use peer_msquic::exchange::Outgoing;
use peer_msquic::server::{Accepted, Request, Server};
use peer_msquic::setup;
use peers_common::command_line::ServerOptions;
use peers_common::settings::{ALPN, HEADER_LEN};
use peers_common::tally::Tally;
use peers_common::{Datagrams, Failure, Ready, ServerResult, print};

pub(crate) fn serve(options: &ServerOptions) -> Result<ServerResult, Failure> {
    let registration = setup::registration()?;
    let (identity, transport) = (&options.identity, options.transport);
    let configuration = setup::server(&registration, identity, transport, options.streams)?;
    let tally = Arc::new(Tally::default());
    let (counted, has_datagrams) = (tally.clone(), options.datagrams);
    let accept = move |_: &ConnectionRef| Ok(Counting::new(counted.clone(), has_datagrams));
    let server = Server::start(registration, configuration, ALPN, options.listen, accept)?;
    let listening = server.address()?;
    print(&Ready { listening })?;
    server.stop_with_input();
    server.run();
    let result = ServerResult::new(&tally);
    server.close()?;
    Ok(result)
}

/// A connection that was accepted.
struct Counting {
    tally: Arc<Tally>,
    has_datagrams: bool,
    datagrams: u64,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Counting {
    const fn new(tally: Arc<Tally>, has_datagrams: bool) -> Self {
        Self {
            tally,
            has_datagrams,
            datagrams: 0,
            first: None,
            last: None,
        }
    }

    fn count(&self, connection: &Connection) {
        if let Some(path) = setup::counts(connection) {
            self.tally.ended(path);
        }
        if self.has_datagrams {
            let span = self.last.zip(self.first).map(|(last, first)| last - first);
            self.tally.datagrams_came(Datagrams {
                received: self.datagrams,
                seconds: span.unwrap_or_default().as_secs_f64(),
            });
        }
    }
}

impl Accepted for Counting {
    type Request = Wanted;

    fn on_event(&mut self, connection: &ConnectionRef, event: &ConnectionEvent<'_>) {
        match event {
            ConnectionEvent::Connected { .. } => self.tally.connected(),
            ConnectionEvent::DatagramReceived { .. } => {
                self.datagrams += 1;
                self.last = Some(Instant::now());
                self.first = self.first.or(self.last);
            }
            ConnectionEvent::ShutdownInitiatedByPeer { .. }
            | ConnectionEvent::ShutdownInitiatedByTransport { .. } => self.count(connection),
            _ => {}
        }
    }

    fn on_stream(&mut self) -> Wanted {
        Wanted {
            tally: self.tally.clone(),
            wanted: [0; HEADER_LEN],
            received: 0,
        }
    }
}

/// A request for so many bytes.
struct Wanted {
    tally: Arc<Tally>,
    wanted: [u8; HEADER_LEN],
    received: usize,
}

impl Request for Wanted {
    fn receive(&mut self, buffers: &[BufferRef]) {
        for buffer in buffers {
            let bytes = buffer.as_bytes();
            let missing = HEADER_LEN.saturating_sub(self.received).min(bytes.len());
            let at = self.received.min(HEADER_LEN);
            self.wanted[at..at + missing].copy_from_slice(&bytes[..missing]);
            self.received += bytes.len();
        }
    }

    fn answer(&mut self) -> Option<Outgoing> {
        let uploaded = self.received.checked_sub(HEADER_LEN)?;
        let wanted = u64::from_be_bytes(self.wanted);
        self.tally.answered(uploaded as u64, wanted);
        Some(Outgoing::zeros(wanted))
    }
}
