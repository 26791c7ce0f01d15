//! The client. Its thread waits for what the callbacks on the thread of msquic report.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use msquic::ffi::{QUIC_PARAM_CONN_LOCAL_ADDRESS, QUIC_PARAM_CONN_SHARE_UDP_BINDING};
use msquic::{
    Addr, BufferRef, Configuration, Connection, ConnectionEvent, ConnectionRef,
    ConnectionShutdownFlags, DatagramSendState, Registration, SendFlags, Status, Stream,
    StreamEvent, StreamOpenFlags, StreamRef,
};
use peer_msquic::exchange::{self, Outgoing};
use peer_msquic::{parameters, setup};
use peers_common::command_line::ClientOptions;
use peers_common::settings::{DATAGRAM_BUFFER, SERVER_NAME};
use peers_common::{Failure, PathCounts, workloads};
use tokio::sync::{Notify, oneshot};

/// The client's end.
#[derive(Clone)]
pub(crate) struct Client(Arc<Inner>);

struct Inner {
    /// Before the registration, which waits for it.
    configuration: Configuration,
    registration: Registration,
    server: SocketAddr,
    /// True if connections share a socket. Each would have one of its own otherwise, and four file descriptors.
    is_shared: bool,
    /// The address of the socket that is shared.
    local: OnceLock<SocketAddr>,
    /// Connections that ended, which are to be closed outside of their own callbacks.
    ended: Mutex<mpsc::Receiver<Connection>>,
    end: mpsc::Sender<Connection>,
    open: AtomicUsize,
}

impl Client {
    pub(crate) fn new(options: &ClientOptions) -> Result<Self, Failure> {
        let registration = setup::registration()?;
        let configuration = setup::client(&registration, &options.identity, options.transport)?;
        let (end, ended) = mpsc::channel();
        Ok(Self(Arc::new(Inner {
            configuration,
            registration,
            server: options.server,
            is_shared: options.connections > 1,
            local: OnceLock::new(),
            ended: Mutex::new(ended),
            end,
            open: AtomicUsize::new(0),
        })))
    }

    /// Closes the connections that ended.
    fn close_ended(&self, patience: Duration) -> bool {
        let ended = self.0.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let found = ended.recv_timeout(patience);
        let is_any = found.is_ok();
        for connection in found.into_iter().chain(ended.try_iter()) {
            drop(connection);
            self.0.open.fetch_sub(1, Ordering::Relaxed);
        }
        is_any
    }

    /// Waits until the server knows that all connections have ended.
    pub(crate) fn wait_for_the_end(&self) {
        while self.0.open.load(Ordering::Relaxed) > 0 && self.close_ended(PATIENCE) {}
    }
}

impl Inner {
    /// Gives a connection the socket of those before it.
    fn share_socket(&self, connection: &Connection) -> Result<(), Status> {
        // SAFETY: the connection is open, and these are the types that msquic expects.
        unsafe {
            let handle = connection.as_raw();
            parameters::set(handle, QUIC_PARAM_CONN_SHARE_UDP_BINDING, &1_u8)?;
            if let Some(local) = self.local.get() {
                let local = Addr::from(*local);
                parameters::set(handle, QUIC_PARAM_CONN_LOCAL_ADDRESS, &local)?;
            }
        }
        Ok(())
    }
}

impl workloads::Client for Client {
    type Connection = Dialed;

    async fn connect(&self) -> Result<Dialed, Failure> {
        self.close_ended(Duration::ZERO);
        let (done, connected) = oneshot::channel();
        let shared = Arc::new(Shared::default());
        let mut state = Dialing {
            done: Some(done),
            reason: None,
            end: self.0.end.clone(),
            shared: shared.clone(),
        };
        let connection = Connection::open(&self.0.registration, move |connection, event| {
            state.on_event(&connection, event);
            Ok(())
        })?;
        self.0.open.fetch_add(1, Ordering::Relaxed);
        setup::set_server(&connection, self.0.server)?;
        if self.0.is_shared {
            self.0.share_socket(&connection)?;
        }
        let port = self.0.server.port();
        connection.start(&self.0.configuration, SERVER_NAME, port)?;
        connected.await??;
        if self.0.is_shared
            && let Some(local) = connection.get_local_addr()?.as_socket()
        {
            self.0.local.get_or_init(|| local);
        }
        Ok(Dialed(Arc::new(Live {
            connection: ManuallyDrop::new(connection),
            shared,
        })))
    }
}

/// Values that a connection shares with its callbacks.
#[derive(Default)]
struct Shared {
    /// The stream that ended last, which is closed outside of its own callback.
    ended: Mutex<Option<Stream>>,
    /// Bytes of datagrams that msquic has not sent.
    queued: AtomicUsize,
    has_room: Notify,
}

impl Shared {
    /// Closes the stream that ended before `ended`. This runs in callbacks only: another thread would have to wait
    /// until the thread of msquic has closed it.
    fn close_stream_before(&self, ended: Option<Stream>) {
        let mut place = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *place, ended);
        drop(place);
        drop(before);
    }
}

/// The state of a connection's callback.
struct Dialing {
    done: Option<oneshot::Sender<Result<(), String>>>,
    reason: Option<String>,
    end: mpsc::Sender<Connection>,
    shared: Arc<Shared>,
}

impl Dialing {
    fn on_event(&mut self, connection: &ConnectionRef, event: ConnectionEvent<'_>) {
        self.reason = setup::reason(&event).or(self.reason.take());
        match event {
            ConnectionEvent::Connected { .. } => self.report(Ok(())),
            ConnectionEvent::DatagramSendStateChanged {
                client_context,
                state,
            } => self.on_datagram(client_context, &state),
            ConnectionEvent::ShutdownComplete { .. } => {
                let reason = self.reason.take();
                self.report(Err(reason.unwrap_or_else(|| "the connection ended".into())));
                self.shared.close_stream_before(None);
                // SAFETY: `Dialed` does not close the handle.
                let connection = unsafe { Connection::from_raw(connection.as_raw()) };
                let _ = self.end.send(connection);
            }
            _ => {}
        }
    }

    fn report(&mut self, result: Result<(), String>) {
        if let Some(done) = self.done.take() {
            let _ = done.send(result);
        }
    }

    fn on_datagram(&self, context: *const c_void, state: &DatagramSendState) {
        let sending: *mut DatagramSending = context.cast_mut().cast();
        let is_last = !matches!(
            state,
            DatagramSendState::Unknown | DatagramSendState::Sent | DatagramSendState::LostSuspect
        );
        if matches!(state, DatagramSendState::Sent | DatagramSendState::Canceled) {
            // SAFETY: the value lives until the last state.
            let length = unsafe { (*sending).payload.len() };
            let before = self.shared.queued.fetch_sub(length, Ordering::Relaxed);
            // A wake-up for each datagram would cost more than the datagram.
            if before - length <= DATAGRAM_BUFFER / 2 {
                self.shared.has_room.notify_one();
            }
        }
        if is_last {
            // SAFETY: the address is that of `send_datagram`, and msquic reports one last state.
            drop(unsafe { Box::from_raw(sending) });
        }
    }
}

/// A connection of the client.
#[derive(Clone)]
pub(crate) struct Dialed(Arc<Live>);

struct Live {
    /// Closed by [`Client::close_ended`].
    connection: ManuallyDrop<Connection>,
    shared: Arc<Shared>,
}

impl Dialed {
    /// Sends a header, `more` bytes with it and `up` bytes after it, and waits for `down` bytes.
    async fn ask(&self, more: usize, up: u64, down: u64) -> Result<(), Failure> {
        let (done, answered) = oneshot::channel();
        let mut state = Asked {
            done: Some(done),
            received: 0,
            outgoing: match up {
                0 => Outgoing::finished(),
                _ => Outgoing::zeros(up),
            },
            shared: self.0.shared.clone(),
        };
        let connection: &Connection = &self.0.connection;
        let stream = Stream::open(connection, StreamOpenFlags::NONE, move |stream, event| {
            state.on_event(&stream, event)
        })?;
        // `Asked` closes it.
        let stream = ManuallyDrop::new(stream);
        let flags = match up {
            0 => SendFlags::FIN,
            _ => SendFlags::NONE,
        };
        exchange::send_header(&stream, down, more, flags)?;
        let received = answered
            .await
            .map_err(|_| "a stream ended before its answer")?;
        if received == down {
            Ok(())
        } else {
            Err(format!("received {received} bytes, wanted {down}").into())
        }
    }
}

impl workloads::Connection for Dialed {
    async fn exchange(&self, up: u64, down: u64) -> Result<(), Failure> {
        self.ask(0, up, down).await
    }

    async fn request(&self) -> Result<(), Failure> {
        self.ask(1, 0, 1).await
    }

    async fn send_datagram(&self, payload: Bytes) -> Result<(), Failure> {
        let length = payload.len();
        while self.datagram_room() < length {
            self.0.shared.has_room.notified().await;
        }
        self.0.shared.queued.fetch_add(length, Ordering::Relaxed);
        DatagramSending::send(payload, &self.0.connection)?;
        Ok(())
    }

    fn datagram_room(&self) -> usize {
        DATAGRAM_BUFFER.saturating_sub(self.0.shared.queued.load(Ordering::Relaxed))
    }

    fn counts(&self) -> Option<PathCounts> {
        setup::counts(&self.0.connection)
    }

    fn close(&self) {
        let connection = &self.0.connection;
        connection.shutdown(ConnectionShutdownFlags::NONE, 0);
    }
}

/// A datagram that msquic reads until it reports the last state with the address of this value.
struct DatagramSending {
    payload: Bytes,
    buffers: [BufferRef; 1],
}

impl DatagramSending {
    fn send(payload: Bytes, connection: &Connection) -> Result<(), Status> {
        let buffers = [BufferRef::from(&payload[..])];
        let sending = Box::into_raw(Box::new(Self { payload, buffers }));
        let context = sending.cast_const().cast();
        // SAFETY: the value and its payload live until the last state.
        let sent =
            unsafe { connection.datagram_send(&(*sending).buffers, SendFlags::NONE, context) };
        // SAFETY: msquic did not take the value.
        sent.inspect_err(|_| drop(unsafe { Box::from_raw(sending) }))
    }
}

/// The state of a stream's callback.
struct Asked {
    done: Option<oneshot::Sender<u64>>,
    received: u64,
    outgoing: Outgoing,
    shared: Arc<Shared>,
}

impl Asked {
    fn on_event(&mut self, stream: &StreamRef, event: StreamEvent<'_>) -> Result<(), Status> {
        match event {
            StreamEvent::StartComplete { status, .. } if status.is_ok() => {
                self.outgoing.fill(stream)?;
            }
            // The receiver reports the missing answer.
            StreamEvent::StartComplete { .. } => self.done = None,
            StreamEvent::Receive { buffers, .. } => {
                let lengths = buffers.iter().map(|buffer| buffer.as_bytes().len() as u64);
                self.received += lengths.sum::<u64>();
            }
            StreamEvent::PeerSendShutdown => {
                if let Some(done) = self.done.take() {
                    let _ = done.send(self.received);
                }
            }
            StreamEvent::ShutdownComplete { .. } => {
                self.done = None;
                // SAFETY: `Dialed::ask` does not close the handle.
                let stream = unsafe { Stream::from_raw(stream.as_raw()) };
                self.shared.close_stream_before(Some(stream));
            }
            event => {
                // SAFETY: all data of the client's streams is sent by `exchange`.
                unsafe { self.outgoing.on_event(stream, &event) }?;
            }
        }
        Ok(())
    }
}

/// The longest wait for the end of a connection that was closed.
const PATIENCE: Duration = Duration::from_secs(2);
