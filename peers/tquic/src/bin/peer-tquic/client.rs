//! The client. Tasks send orders to the future that drives tquic, because its connections cannot be shared.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use peer_tquic::end::End;
use peer_tquic::exchange::{self, Outgoing, SCRATCH};
use peer_tquic::setup;
use peer_tquic::socket::Socket;
use peers_common::command_line::ClientOptions;
use peers_common::settings::SERVER_NAME;
use peers_common::streams::StreamMap;
use peers_common::{Failure, PathCounts, workloads};
use tokio::sync::{Notify, oneshot};
use tquic::{Connection, Error, TransportHandler};

/// Does the work of the command line and prints the result.
pub(crate) async fn work(options: &ClientOptions, version: String) -> Result<(), Failure> {
    let client = Client::default();
    let mut driver = Driver::new(options, &client)?;
    tokio::select! {
        biased;
        done = workloads::run(&client, options, version) => done?,
        failure = driver.run() => return Err(failure),
    }
    driver.finish();
    Ok(())
}

/// The handle of tasks to the client.
#[derive(Clone, Default)]
pub(crate) struct Client(Arc<Shared>);

#[derive(Default)]
struct Shared {
    orders: Mutex<Vec<Order>>,
    has_orders: Notify,
    /// Counts of the connection whose last stream ended last.
    counts: Mutex<Option<PathCounts>>,
}

impl Shared {
    fn give(&self, order: Order) {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.push(order);
        self.has_orders.notify_one();
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, Option<PathCounts>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Order {
    Connect(oneshot::Sender<Result<u64, String>>),
    /// On the connection of this index.
    Ask(u64, Ask),
    Close(u64),
}

/// A request: `more` zero bytes in one write with the header, then `up` zero bytes. The answer has `down` bytes.
struct Ask {
    more: usize,
    up: u64,
    down: u64,
    done: oneshot::Sender<Result<(), String>>,
}

impl workloads::Client for Client {
    type Connection = Dialed;

    async fn connect(&self) -> Result<Dialed, Failure> {
        let (done, connected) = oneshot::channel();
        self.0.give(Order::Connect(done));
        let index = connected.await??;
        Ok(Dialed {
            index,
            shared: self.0.clone(),
        })
    }
}

/// A connection of the client.
#[derive(Clone)]
pub(crate) struct Dialed {
    index: u64,
    shared: Arc<Shared>,
}

impl Dialed {
    async fn ask(&self, more: usize, up: u64, down: u64) -> Result<(), Failure> {
        let (done, answered) = oneshot::channel();
        let ask = Ask {
            more,
            up,
            down,
            done,
        };
        self.shared.give(Order::Ask(self.index, ask));
        Ok(answered.await??)
    }
}

impl workloads::Connection for Dialed {
    async fn exchange(&self, up: u64, down: u64) -> Result<(), Failure> {
        self.ask(0, up, down).await
    }

    async fn request(&self) -> Result<(), Failure> {
        self.ask(1, 0, 1).await
    }

    async fn send_datagram(&self, _: Bytes) -> Result<(), Failure> {
        Err("tquic has no unreliable datagrams".into())
    }

    fn datagram_room(&self) -> usize {
        0
    }

    fn counts(&self) -> Option<PathCounts> {
        *self.shared.counts()
    }

    fn close(&self) {
        self.shared.give(Order::Close(self.index));
    }
}

/// Drives tquic and executes orders.
struct Driver {
    end: End,
    state: Rc<RefCell<State>>,
    shared: Arc<Shared>,
    local: SocketAddr,
    server: SocketAddr,
}

impl Driver {
    fn new(options: &ClientOptions, client: &Client) -> Result<Self, Failure> {
        let config = setup::client(&options.identity, options.transport)?;
        let socket = Rc::new(Socket::bind(options.local())?);
        let state = Rc::new(RefCell::new(State {
            connections: StreamMap::default(),
            waiting: VecDeque::new(),
            shared: client.0.clone(),
            socket: socket.clone(),
            scratch: vec![0; SCRATCH].into(),
        }));
        Ok(Self {
            end: End::client(config, Box::new(Handler(state.clone())), socket.clone()),
            state,
            shared: client.0.clone(),
            local: socket.local_address(),
            server: options.server,
        })
    }

    /// Runs until the socket fails.
    async fn run(&mut self) -> Failure {
        let shared = self.shared.clone();
        loop {
            self.execute();
            self.end.process();
            tokio::select! {
                biased;
                woken = self.end.wait() => if let Err(error) = woken {
                    return error.into();
                },
                () = shared.has_orders.notified() => {}
            }
        }
    }

    /// Executes the last orders, which close connections.
    fn finish(&mut self) {
        self.execute();
        self.end.process();
    }

    fn execute(&mut self) {
        self.open_waiting();
        let orders = self.shared.orders.lock();
        let orders = std::mem::take(&mut *orders.unwrap_or_else(PoisonError::into_inner));
        for order in orders {
            match order {
                Order::Connect(done) => self.connect(done),
                Order::Ask(index, ask) => match self.end.endpoint.conn_get_mut(index) {
                    Some(connection) => self.state.borrow_mut().open(connection, index, ask),
                    None => fail(ask.done, "the connection has ended"),
                },
                Order::Close(index) => {
                    if let Some(connection) = self.end.endpoint.conn_get_mut(index) {
                        // The only error is that it is closed already.
                        let _ = connection.close(true, 0, b"");
                    }
                }
            }
        }
    }

    fn connect(&mut self, done: oneshot::Sender<Result<u64, String>>) {
        let (local, server) = (self.local, self.server);
        let endpoint = &mut self.end.endpoint;
        let begun = endpoint.connect(local, server, Some(SERVER_NAME), None, None, None);
        match begun {
            Ok(index) => {
                let live = Live {
                    dialing: Some(done),
                    streams: StreamMap::default(),
                };
                self.state.borrow_mut().connections.insert(index, live);
            }
            Err(error) => fail(done, &format!("cannot connect: {error}")),
        }
    }

    /// Retries streams that exceeded the server's limit. tquic does not report when the limit rises.
    fn open_waiting(&mut self) {
        let mut state = self.state.borrow_mut();
        for (index, ask) in std::mem::take(&mut state.waiting) {
            match self.end.endpoint.conn_get_mut(index) {
                Some(connection) => state.open(connection, index, ask),
                None => fail(ask.done, "the connection has ended"),
            }
        }
    }
}

/// Reports a failure to a task, if it still waits.
fn fail<T>(done: oneshot::Sender<Result<T, String>>, reason: &str) {
    let _ = done.send(Err(reason.to_owned()));
}

/// The connections and their streams.
struct State {
    connections: StreamMap<Live>,
    /// Requests that exceed the server's limit of streams.
    waiting: VecDeque<(u64, Ask)>,
    shared: Arc<Shared>,
    socket: Rc<Socket>,
    scratch: Box<[u8]>,
}

struct Live {
    dialing: Option<oneshot::Sender<Result<u64, String>>>,
    streams: StreamMap<Asked>,
}

/// A request under way.
struct Asked {
    outgoing: Outgoing,
    received: u64,
    wanted: u64,
    done: oneshot::Sender<Result<(), String>>,
}

impl State {
    fn open(&mut self, connection: &mut Connection, index: u64, ask: Ask) {
        let Some(live) = self.connections.get_mut(&index) else {
            return fail(ask.done, "the connection has ended");
        };
        let stream = match connection.stream_bidi_new(URGENCY, true) {
            Ok(stream) => stream,
            Err(Error::StreamLimitError) => return self.waiting.push_back((index, ask)),
            Err(error) => return fail(ask.done, &format!("cannot open a stream: {error}")),
        };
        let mut outgoing = Outgoing::request(ask.down, ask.more, ask.up);
        match outgoing.write(connection, stream) {
            Ok(_) => {
                let asked = Asked {
                    outgoing,
                    received: 0,
                    wanted: ask.down,
                    done: ask.done,
                };
                live.streams.insert(stream, asked);
            }
            Err(error) => fail(ask.done, &format!("cannot write: {error}")),
        }
    }

    fn live(&mut self, connection: &Connection) -> Option<&mut Live> {
        self.connections.get_mut(&connection.index()?)
    }

    fn read(&mut self, connection: &mut Connection, stream: u64) {
        let index = connection.index().unwrap_or_default();
        let Some(live) = self.connections.get_mut(&index) else {
            return;
        };
        let Some(asked) = live.streams.get_mut(&stream) else {
            return;
        };
        let received = &mut asked.received;
        let count = |bytes: &[u8]| *received += bytes.len() as u64;
        let result = match exchange::read(connection, stream, &mut self.scratch, count) {
            Ok(false) => return,
            Ok(true) if asked.received == asked.wanted => Ok(()),
            Ok(true) => Err(format!(
                "received {} bytes, wanted {}",
                asked.received, asked.wanted
            )),
            Err(error) => Err(format!("cannot read: {error}")),
        };
        let asked = live.streams.remove(&stream);
        if live.streams.is_empty() {
            *self.shared.counts() = setup::counts(connection, self.socket.largest_packet());
        }
        if let Some(asked) = asked {
            let _ = asked.done.send(result);
        }
    }

    fn write(&mut self, connection: &mut Connection, stream: u64) {
        let streams = self.live(connection).map(|live| &mut live.streams);
        let Some(streams) = streams else {
            return;
        };
        let Some(asked) = streams.get_mut(&stream) else {
            // The request has failed or is complete.
            let _ = connection.stream_want_write(stream, false);
            return;
        };
        if let Err(error) = asked.outgoing.write(connection, stream)
            && let Some(asked) = streams.remove(&stream)
        {
            fail(asked.done, &format!("cannot write: {error}"));
        }
    }

    /// Reports the end of a connection to its tasks.
    fn end(&mut self, connection: &Connection) {
        let index = connection.index().unwrap_or_default();
        let Some(live) = self.connections.remove(&index) else {
            return;
        };
        let reason = reason(connection);
        if let Some(done) = live.dialing {
            fail(done, &reason);
        }
        for (_, asked) in live.streams {
            fail(asked.done, &reason);
        }
    }
}

fn reason(connection: &Connection) -> String {
    if connection.is_idle_timeout() || connection.is_handshake_timeout() {
        "the connection timed out".to_owned()
    } else if connection.is_reset() {
        "the server reset the connection".to_owned()
    } else if let Some(error) = connection.peer_error() {
        format!("the server closed the connection: {error:?}")
    } else {
        format!("the connection ended: {:?}", connection.local_error())
    }
}

struct Handler(Rc<RefCell<State>>);

impl TransportHandler for Handler {
    fn on_conn_created(&mut self, _: &mut Connection) {}

    fn on_conn_established(&mut self, connection: &mut Connection) {
        let mut state = self.0.borrow_mut();
        let dialing = state
            .live(connection)
            .and_then(|live| live.dialing.take())
            .zip(connection.index());
        if let Some((done, index)) = dialing {
            let _ = done.send(Ok(index));
        }
    }

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        self.0.borrow_mut().end(connection);
    }

    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        self.0.borrow_mut().read(connection, stream);
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        self.0.borrow_mut().write(connection, stream);
    }

    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}

/// The default urgency of tquic. Incremental streams of one urgency are scheduled round-robin.
const URGENCY: u8 = 127;
