//! A client of HTTP/3: a few connections, each with a socket of its own, and one thread.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Instant;

use nix::poll::PollFlags;
use quiche::{ConnectionId, h3};

use crate::body::{Body, Buffers, Quic};
use crate::socket::{Left, Socket};
use crate::streams::StreamMap;
use crate::{Failure, event_loop, setup};

/// The requests of a run and their responses.
pub trait Work {
    /// The state of a request in progress.
    type Exchange;

    /// Returns the next request, or `None` at the end.
    fn next(&mut self) -> Option<(Request, Self::Exchange)>;

    /// Called with the header section of a response, or with trailers.
    fn on_head(&mut self, exchange: &mut Self::Exchange, head: &[h3::Header]);

    /// Called with content of a response.
    fn on_content(&mut self, exchange: &mut Self::Exchange, content: &[u8]);

    /// Called at the end of a response.
    ///
    /// # Errors
    /// When the response is wrong.
    fn on_end(&mut self, exchange: Self::Exchange) -> Result<(), Failure>;
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Pseudo-fields and fields.
    pub head: Rc<[h3::Header]>,
    /// The content; an empty one sends the header section only.
    pub body: Body,
}

/// Connections to one server.
pub struct Client {
    connections: Vec<Connection>,
    scratch: Box<[u8]>,
}

struct Connection {
    socket: Socket,
    quic: Quic,
    http: Option<h3::Connection>,
    /// Content that has not been sent.
    uploads: StreamMap<Body>,
    deadline: Option<Instant>,
    is_marked: bool,
}

/// The requests on one connection.
struct Share<Exchange> {
    /// The number of requests that may be in flight.
    slots: usize,
    under_way: StreamMap<Exchange>,
    /// A request for which the connection has no room.
    next: Option<(Request, Exchange)>,
}

impl Client {
    /// Opens `count` connections to the server `name` at `address`.
    ///
    /// # Errors
    /// When there is no socket, or a handshake fails.
    pub fn connect(
        config: &mut quiche::Config,
        name: &str,
        address: SocketAddr,
        count: usize,
    ) -> Result<Self, Failure> {
        let connections: Result<_, Failure> = (0..count)
            .map(|_| Connection::begin(config, name, address))
            .collect();
        let mut client = Self {
            connections: connections?,
            scratch: vec![0; SCRATCH].into(),
        };
        let http = h3::Config::new()?;
        loop {
            let mut is_ready = true;
            for connection in &mut client.connections {
                is_ready &= connection.is_ready(&http)?;
            }
            if is_ready {
                return Ok(client);
            }
            client.move_datagrams()?;
        }
    }

    /// Returns the cipher suite of the first connection by IANA's name.
    pub fn cipher_suite(&mut self) -> &'static str {
        let first = self.connections.first_mut();
        first.map_or("none", |first| setup::cipher_suite(&mut first.quic))
    }

    /// Sends all requests of `work`, with `in_flight` of them in progress over all connections.
    ///
    /// # Errors
    /// When a connection breaks, or `work` reports an error.
    pub fn run<W: Work>(&mut self, work: &mut W, in_flight: usize) -> Result<(), Failure> {
        let count = self.connections.len();
        let mut shares: Vec<_> = (0..count)
            .map(|place| Share {
                slots: in_flight.saturating_sub(place).div_ceil(count),
                under_way: StreamMap::default(),
                next: None,
            })
            .collect();
        for connection in &mut self.connections {
            connection.is_marked = true;
        }
        loop {
            let mut is_done = true;
            for (connection, share) in self.connections.iter_mut().zip(&mut shares) {
                if connection.is_marked {
                    connection.work(work, share, &mut self.scratch)?;
                }
                is_done &= share.under_way.is_empty() && share.next.is_none();
            }
            if is_done {
                return Ok(());
            }
            self.move_datagrams()?;
        }
    }

    /// Closes all connections.
    ///
    /// # Errors
    /// When a socket fails.
    pub fn close(mut self) -> Result<(), Failure> {
        for connection in &mut self.connections {
            // The only error is that the connection is closed already.
            let _ = connection.quic.close(true, NO_ERROR, b"");
            connection.socket.send(&mut connection.quic)?;
        }
        Ok(())
    }

    /// Sends what is pending and waits for an event.
    fn move_datagrams(&mut self) -> Result<(), Failure> {
        let mut deadline: Option<Instant> = None;
        for connection in &mut self.connections {
            if connection.is_marked {
                connection.send()?;
            }
            let due = connection.deadline;
            deadline = deadline.into_iter().chain(due).min();
        }
        let mut waited: Vec<_> = self
            .connections
            .iter()
            .map(|it| it.socket.to_poll())
            .collect();
        event_loop::wait(&mut waited, deadline)?;
        let events: Vec<_> = waited.iter().map(|one| one.revents()).collect();
        let now = Instant::now();
        for (connection, events) in self.connections.iter_mut().zip(events) {
            connection.on_wake(events.unwrap_or(PollFlags::empty()), now)?;
        }
        Ok(())
    }
}

impl Connection {
    fn begin(
        config: &mut quiche::Config,
        name: &str,
        address: SocketAddr,
    ) -> Result<Self, Failure> {
        let socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let mut id = [0; ID_LEN];
        boring::rand::rand_bytes(&mut id)?;
        let quic = quiche::connect_with_buffer_factory::<Buffers>(
            Some(name),
            &ConnectionId::from_ref(&id),
            socket.local_address(),
            address,
            config,
        )?;
        Ok(Self {
            socket,
            quic,
            http: None,
            uploads: StreamMap::default(),
            deadline: None,
            is_marked: true,
        })
    }

    /// Returns true if requests can be sent.
    fn is_ready(&mut self, config: &h3::Config) -> Result<bool, Failure> {
        self.check()?;
        if self.http.is_none() && self.quic.is_established() {
            let http = h3::Connection::with_transport(&mut self.quic, config)?;
            self.http = Some(http);
        }
        Ok(self.http.is_some())
    }

    /// Returns an error if the connection has ended.
    fn check(&self) -> Result<(), Failure> {
        if !self.quic.is_closed() && !self.quic.is_draining() {
            return Ok(());
        }
        let cause = if self.quic.is_timed_out() {
            "no answer in time".to_owned()
        } else if let Some(error) = self.quic.peer_error() {
            format!("the server closed it: {error:?}")
        } else {
            format!("closed: {:?}", self.quic.local_error())
        };
        Err(format!("connection: {cause}").into())
    }

    fn send(&mut self) -> io::Result<()> {
        let left = self.socket.send(&mut self.quic)?;
        self.is_marked = left != Left::Nothing;
        self.deadline = if left == Left::More {
            Some(Instant::now())
        } else {
            self.quic.timeout_instant()
        };
        Ok(())
    }

    fn on_wake(&mut self, events: PollFlags, now: Instant) -> io::Result<()> {
        if !events.is_empty() {
            let quic = &mut self.quic;
            // Unread datagrams wake the loop again. quiche ignores datagrams that it cannot decrypt,
            // and closes connections that break a rule.
            self.socket.receive(|datagram, info| {
                let _ = quic.recv(datagram, info);
            })?;
            self.is_marked = true;
        }
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.quic.on_timeout();
            self.is_marked = true;
        }
        Ok(())
    }

    /// Reads responses, and sends new requests in place of those that are complete.
    fn work<W: Work>(
        &mut self,
        work: &mut W,
        share: &mut Share<W::Exchange>,
        scratch: &mut [u8],
    ) -> Result<(), Failure> {
        self.check()?;
        let Some(http) = &mut self.http else {
            return Ok(());
        };
        loop {
            let (stream, event) = match http.poll(&mut self.quic) {
                Ok(seen) => seen,
                Err(h3::Error::Done) => break,
                Err(error) => return Err(format!("HTTP/3: {error}").into()),
            };
            let Some(exchange) = share.under_way.get_mut(&stream) else {
                continue;
            };
            match event {
                h3::Event::Headers { list, .. } => work.on_head(exchange, &list),
                h3::Event::Data => {
                    while let Ok(count) = http.recv_body(&mut self.quic, stream, scratch) {
                        work.on_content(exchange, &scratch[..count]);
                    }
                }
                h3::Event::Finished => {
                    if let Some(exchange) = share.under_way.remove(&stream) {
                        work.on_end(exchange)?;
                    }
                }
                h3::Event::Reset(code) => return Err(format!("reset with {code:#x}").into()),
                h3::Event::PriorityUpdate | h3::Event::GoAway => {}
            }
        }
        while share.under_way.len() < share.slots {
            let Some((request, exchange)) = share.next.take().or_else(|| work.next()) else {
                break;
            };
            let is_all = request.body.left() == 0;
            match http.send_request(&mut self.quic, &request.head, is_all) {
                Ok(stream) => {
                    share.under_way.insert(stream, exchange);
                    if !is_all {
                        self.uploads.insert(stream, request.body);
                    }
                }
                // The limit of streams of the server, or the congestion window.
                Err(
                    h3::Error::StreamBlocked
                    | h3::Error::TransportError(quiche::Error::StreamLimit),
                ) => {
                    share.next = Some((request, exchange));
                    break;
                }
                Err(error) => return Err(format!("request: {error}").into()),
            }
        }
        self.upload()
    }

    /// Continues with content that did not fit before.
    fn upload(&mut self) -> Result<(), Failure> {
        let Some(http) = &mut self.http else {
            return Ok(());
        };
        if self.uploads.is_empty() {
            return Ok(());
        }
        while let Some(stream) = self.quic.stream_writable_next() {
            let Some(body) = self.uploads.get_mut(&stream) else {
                continue;
            };
            match body.send(&mut self.quic, http, stream) {
                Ok(false) => {}
                Ok(true) => {
                    self.uploads.remove(&stream);
                }
                Err(error) => return Err(format!("content: {error}").into()),
            }
        }
        Ok(())
    }
}

const ID_LEN: usize = 8;

/// The size of one read of content.
const SCRATCH: usize = 1 << 16;

/// H3_NO_ERROR, RFC 9114 §8.1.
const NO_ERROR: u64 = 0x100;
