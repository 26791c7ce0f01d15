//! The server. Its requests are answered on the thread of msquic.

use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use msquic::{
    Addr, BufferRef, Connection, ConnectionEvent, ConnectionRef, Listener, ListenerEvent, Status,
    Stream, StreamEvent, StreamRef,
};
use peer_msquic_common::command_line::ServerOptions;
use peer_msquic_common::settings::HEADER_LEN;
use peer_msquic_common::tally::Tally;
use peer_msquic_common::{Datagrams, Failure, Ready, ServerResult, print};

use crate::exchange::Outgoing;
use crate::setup;

/// An event for which the main thread waits.
enum Event {
    /// A handle that is to be closed.
    Closed(Connection),
    /// Standard input ended.
    Stop,
}

/// Values that the callbacks of all connections share.
#[derive(Clone)]
struct Shared {
    tally: Arc<Tally>,
    events: Sender<Event>,
    has_datagrams: bool,
}

pub(crate) fn serve(options: &ServerOptions) -> Result<ServerResult, Failure> {
    let registration = setup::registration()?;
    let (identity, transport) = (&options.identity, options.transport);
    let configuration = setup::server(&registration, identity, transport, options.streams)?;
    let (sender, events) = channel();
    let shared = Shared {
        tally: Arc::new(Tally::default()),
        events: sender.clone(),
        has_datagrams: options.datagrams,
    };
    let tally = shared.tally.clone();
    let open = Arc::new(AtomicUsize::new(0));
    let accepted = open.clone();
    let listener = Listener::open(&registration, move |_, event| {
        if let ListenerEvent::NewConnection { connection, .. } = event {
            let mut state = Accepted::new(shared.clone());
            connection.set_callback_handler(move |connection, event| {
                state.on_event(&connection, event);
                Ok(())
            });
            connection.set_configuration(&configuration)?;
            accepted.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    })?;
    listener.start(&setup::protocols(), Some(&Addr::from(options.listen)))?;
    let listening = listener.get_local_addr()?.as_socket();
    let listening = listening.ok_or("msquic listens at no address")?;
    print(&Ready { listening })?;
    thread::spawn(move || {
        let mut ignored = Vec::new();
        // An unreadable input is a closed one.
        let _ = io::stdin().read_to_end(&mut ignored);
        let _ = sender.send(Event::Stop);
    });
    // A connection must not be closed in its own callback, which is freed with it.
    while let Ok(Event::Closed(connection)) = events.recv() {
        drop(connection);
        open.fetch_sub(1, Ordering::Relaxed);
    }
    let result = ServerResult::new(&tally);
    // The library must not be at work when the process ends.
    listener.stop();
    registration.shutdown();
    while open.load(Ordering::Relaxed) > 0 {
        if let Ok(Event::Closed(connection)) = events.recv_timeout(PATIENCE) {
            drop(connection);
            open.fetch_sub(1, Ordering::Relaxed);
        } else {
            return Err("a connection did not end".into());
        }
    }
    drop(listener);
    Ok(result)
}

/// A connection that was accepted.
struct Accepted {
    shared: Shared,
    /// Streams that ended and are closed by the next callback, not by their own.
    ended: Arc<Mutex<Vec<Stream>>>,
    datagrams: u64,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Accepted {
    fn new(shared: Shared) -> Self {
        Self {
            shared,
            ended: Arc::default(),
            datagrams: 0,
            first: None,
            last: None,
        }
    }

    fn on_event(&mut self, connection: &ConnectionRef, event: ConnectionEvent<'_>) {
        match event {
            ConnectionEvent::Connected { .. } => self.shared.tally.connected(),
            ConnectionEvent::PeerStreamStarted { stream, .. } => {
                self.close_streams();
                let (ended, tally) = (self.ended.clone(), self.shared.tally.clone());
                let mut answer = Answer::new(tally);
                stream.set_callback_handler(move |stream, event| {
                    answer.on_event(&stream, event, &ended)
                });
            }
            ConnectionEvent::DatagramReceived { .. } => {
                self.datagrams += 1;
                self.last = Some(Instant::now());
                self.first = self.first.or(self.last);
            }
            ConnectionEvent::ShutdownInitiatedByPeer { .. }
            | ConnectionEvent::ShutdownInitiatedByTransport { .. } => self.count(connection),
            ConnectionEvent::ShutdownComplete { .. } => {
                self.close_streams();
                // SAFETY: the server owns the connections that it accepted.
                let connection = unsafe { Connection::from_raw(connection.as_raw()) };
                let _ = self.shared.events.send(Event::Closed(connection));
            }
            _ => {}
        }
    }

    fn count(&self, connection: &Connection) {
        if let Some(path) = setup::counts(connection) {
            self.shared.tally.ended(path);
        }
        if self.shared.has_datagrams {
            let span = self.last.zip(self.first).map(|(last, first)| last - first);
            self.shared.tally.datagrams_came(Datagrams {
                received: self.datagrams,
                seconds: span.unwrap_or_default().as_secs_f64(),
            });
        }
    }

    fn close_streams(&self) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.clear();
    }
}

/// A stream of a client.
struct Answer {
    tally: Arc<Tally>,
    wanted: [u8; HEADER_LEN],
    received: usize,
    outgoing: Outgoing,
}

impl Answer {
    const fn new(tally: Arc<Tally>) -> Self {
        Self {
            tally,
            wanted: [0; HEADER_LEN],
            received: 0,
            outgoing: Outgoing::finished(),
        }
    }

    fn on_event(
        &mut self,
        stream: &StreamRef,
        event: StreamEvent<'_>,
        ended: &Mutex<Vec<Stream>>,
    ) -> Result<(), Status> {
        match event {
            StreamEvent::Receive { buffers, .. } => self.receive(buffers),
            StreamEvent::PeerSendShutdown if self.received >= HEADER_LEN => {
                let wanted = u64::from_be_bytes(self.wanted);
                self.outgoing = Outgoing::new(wanted);
                self.outgoing.fill(stream)?;
                self.tally
                    .answered((self.received - HEADER_LEN) as u64, wanted);
            }
            StreamEvent::SendComplete {
                client_context,
                cancelled,
            } => {
                if cancelled {
                    self.outgoing.give_up();
                }
                // SAFETY: all data of the server's streams is sent by `exchange`.
                unsafe { self.outgoing.on_send_complete(client_context, stream) }?;
            }
            StreamEvent::IdealSendBufferSize { byte_count } => {
                self.outgoing.on_ideal(byte_count, stream)?;
            }
            StreamEvent::ShutdownComplete { .. } => {
                // SAFETY: the server owns the streams of its clients.
                let stream = unsafe { Stream::from_raw(stream.as_raw()) };
                ended
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(stream);
            }
            _ => {}
        }
        Ok(())
    }

    fn receive(&mut self, buffers: &[BufferRef]) {
        for buffer in buffers {
            let bytes = buffer.as_bytes();
            let missing = HEADER_LEN.saturating_sub(self.received).min(bytes.len());
            let at = self.received.min(HEADER_LEN);
            self.wanted[at..at + missing].copy_from_slice(&bytes[..missing]);
            self.received += bytes.len();
        }
    }
}

/// The longest wait for the end of a connection when the server stops.
const PATIENCE: Duration = Duration::from_secs(5);
