//! A server. Its requests are answered on the threads of msquic.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use msquic::{
    Addr, BufferRef, Configuration, Connection, ConnectionEvent, ConnectionRef, Listener,
    ListenerEvent, Registration, Status, Stream, StreamEvent, StreamRef, StreamShutdownFlags,
};
use peers_common::Failure;

use crate::exchange::Outgoing;

/// What a server does on a connection.
pub trait Accepted: Send + 'static {
    /// A request on a stream of the client.
    type Request: Request;

    /// Called with each event of the connection.
    fn on_event(&mut self, connection: &ConnectionRef, event: &ConnectionEvent<'_>);

    /// Called for each stream that the client opens.
    fn on_stream(&mut self) -> Self::Request;
}

/// A request, whose answer begins when it has come whole.
pub trait Request: Send + 'static {
    /// Called with received data.
    fn receive(&mut self, buffers: &[BufferRef]);

    /// Called at the end of the request. Returns its answer, or `None` for a stream that is to be reset.
    fn answer(&mut self) -> Option<Outgoing>;
}

/// A server that listens.
pub struct Server {
    listener: Listener,
    events: Receiver<Event>,
    sender: Sender<Event>,
    open: Arc<AtomicUsize>,
    /// After the listener, whose end it waits for.
    registration: Registration,
}

/// An event for which the thread of the server waits.
enum Event {
    /// A handle that is to be closed.
    Closed(Connection),
    /// Standard input ended.
    Stop,
}

impl Server {
    /// Listens at `listen`, and calls `accept` with each new connection.
    ///
    /// # Errors
    /// When the address is taken or not of this machine.
    pub fn start<A: Accepted>(
        registration: Registration,
        configuration: Configuration,
        protocol: &[u8],
        listen: SocketAddr,
        accept: impl Fn(&ConnectionRef) -> Result<A, Status> + Send + 'static,
    ) -> Result<Self, Failure> {
        let (sender, events) = channel();
        let open = Arc::new(AtomicUsize::new(0));
        let (end, accepted) = (sender.clone(), open.clone());
        let listener = Listener::open(&registration, move |_, event| {
            if let ListenerEvent::NewConnection { connection, .. } = event {
                let mut live = Live {
                    accepted: accept(&connection)?,
                    ended: Ended::default(),
                    end: end.clone(),
                };
                connection.set_callback_handler(move |connection, event| {
                    live.on_event(&connection, &event);
                    Ok(())
                });
                connection.set_configuration(&configuration)?;
                accepted.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        })?;
        listener.start(&[BufferRef::from(protocol)], Some(&Addr::from(listen)))?;
        Ok(Self {
            listener,
            events,
            sender,
            open,
            registration,
        })
    }

    /// Returns the address of the server.
    ///
    /// # Errors
    /// When msquic does not tell it.
    pub fn address(&self) -> Result<SocketAddr, Failure> {
        let listening = self.listener.get_local_addr()?.as_socket();
        Ok(listening.ok_or("msquic listens at no address")?)
    }

    /// Makes the end of standard input the end of [`Server::run`].
    pub fn stop_with_input(&self) {
        let sender = self.sender.clone();
        thread::spawn(move || {
            let mut ignored = Vec::new();
            // An unreadable input is a closed one.
            let _ = io::stdin().read_to_end(&mut ignored);
            let _ = sender.send(Event::Stop);
        });
    }

    /// Serves until the server is stopped.
    pub fn run(&self) {
        // A connection must not be closed in its own callback, which is freed with it.
        while let Ok(Event::Closed(connection)) = self.events.recv() {
            self.close_connection(connection);
        }
    }

    /// Ends all connections. The library must not be at work when the process ends.
    ///
    /// # Errors
    /// When a connection does not end in time.
    pub fn close(self) -> Result<(), Failure> {
        self.listener.stop();
        self.registration.shutdown();
        while self.open.load(Ordering::Relaxed) > 0 {
            match self.events.recv_timeout(PATIENCE) {
                Ok(Event::Closed(connection)) => self.close_connection(connection),
                Ok(Event::Stop) | Err(_) => return Err("a connection did not end".into()),
            }
        }
        Ok(())
    }

    fn close_connection(&self, connection: Connection) {
        drop(connection);
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Streams that ended and are closed by the next callback of their connection, not by their own.
type Ended = Arc<Mutex<Vec<Stream>>>;

/// A connection that was accepted.
struct Live<A> {
    accepted: A,
    ended: Ended,
    end: Sender<Event>,
}

impl<A: Accepted> Live<A> {
    fn on_event(&mut self, connection: &ConnectionRef, event: &ConnectionEvent<'_>) {
        self.accepted.on_event(connection, event);
        match event {
            ConnectionEvent::PeerStreamStarted { stream, .. } => {
                self.close_streams();
                let ended = self.ended.clone();
                let mut answering = Answering {
                    request: self.accepted.on_stream(),
                    outgoing: Outgoing::finished(),
                };
                stream.set_callback_handler(move |stream, event| {
                    answering.on_event(&stream, &event, &ended)
                });
            }
            ConnectionEvent::ShutdownComplete { .. } => {
                self.close_streams();
                // SAFETY: the server owns the connections that it accepted.
                let connection = unsafe { Connection::from_raw(connection.as_raw()) };
                let _ = self.end.send(Event::Closed(connection));
            }
            _ => {}
        }
    }

    fn close_streams(&self) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.clear();
    }
}

/// A stream of a client.
struct Answering<R> {
    request: R,
    outgoing: Outgoing,
}

impl<R: Request> Answering<R> {
    fn on_event(
        &mut self,
        stream: &StreamRef,
        event: &StreamEvent<'_>,
        ended: &Ended,
    ) -> Result<(), Status> {
        match event {
            StreamEvent::Receive { buffers, .. } => self.request.receive(buffers),
            StreamEvent::PeerSendShutdown => match self.request.answer() {
                Some(answer) => {
                    self.outgoing = answer;
                    self.outgoing.fill(stream)?;
                }
                None => stream.shutdown(StreamShutdownFlags::ABORT, NO_ANSWER)?,
            },
            StreamEvent::ShutdownComplete { .. } => {
                // SAFETY: the server owns the streams of its clients.
                let stream = unsafe { Stream::from_raw(stream.as_raw()) };
                ended
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(stream);
            }
            event => {
                // SAFETY: all data of the server's streams is sent by `exchange`.
                unsafe { self.outgoing.on_event(stream, event) }?;
            }
        }
        Ok(())
    }
}

/// The longest wait for the end of a connection when the server stops.
const PATIENCE: Duration = Duration::from_secs(5);

/// The code with which a stream is reset whose request has no answer.
const NO_ANSWER: u64 = 404;
