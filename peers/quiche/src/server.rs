//! A server of HTTP/3: one socket, one thread.

use std::collections::HashMap;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Instant;

use bytes::Bytes;
use nix::poll::{PollFd, PollFlags};
use quiche::h3::{self, HeaderRef};
use quiche::{ConnectionId, RecvInfo};
use slab::Slab;

use crate::body::{Body, Buffers, Quic};
use crate::socket::{Left, Socket};
use crate::streams::StreamMap;
use crate::{Failure, event_loop, setup};

/// A service that answers requests.
pub trait Service {
    /// The state of a request whose content is read before the response.
    type Request;

    /// Called after a handshake. `suite` is the negotiated cipher suite by IANA's name.
    ///
    /// # Errors
    /// When the connection is refused; it is closed.
    fn on_connection(&mut self, suite: &str) -> Result<(), Failure>;

    /// Called with the header section of a request.
    fn on_head(&mut self, head: &[h3::Header]) -> Verdict<Self::Request>;

    /// Called with content of a request that is read.
    fn on_content(&mut self, request: &mut Self::Request, content: &[u8]);

    /// Called at the end of a request that is read.
    fn on_end(&mut self, request: Self::Request) -> Answer;
}

/// The decision about a request.
#[derive(Debug)]
pub enum Verdict<Request> {
    /// The request is answered at once, and its content is ignored.
    Answer(Answer),
    /// The content of the request is read first.
    Read(Request),
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The content; `content-length` has its length.
    pub body: Body,
    /// True for HEAD, whose response has no content.
    pub is_head_alone: bool,
}

/// A server and its connections.
pub struct Server<S: Service> {
    socket: Socket,
    table: Table<S>,
    service: S,
    scratch: Box<[u8]>,
}

/// Connections by the IDs that this server issued: the index in the table, and four random bytes. A
/// datagram finds its connection without a hash.
struct Table<S: Service> {
    config: quiche::Config,
    http: h3::Config,
    connections: Slab<Connection<S>>,
    /// Connections by the IDs that clients chose, for packets sent before the client received ours.
    by_first_id: HashMap<Vec<u8>, usize>,
    /// Connections with work to do.
    marked: Vec<usize>,
}

struct Connection<S: Service> {
    quic: Quic,
    http: Option<h3::Connection>,
    id: [u8; ID_LEN],
    first_id: Vec<u8>,
    requests: StreamMap<S::Request>,
    responses: StreamMap<Response>,
    deadline: Option<Instant>,
    is_marked: bool,
}

/// The rest of a response.
enum Response {
    All(Answer),
    Body(Body),
}

impl<S: Service> Server<S> {
    /// Starts a server at `address`.
    ///
    /// # Errors
    /// When the address is taken or not of this machine.
    pub fn bind(config: quiche::Config, address: SocketAddr, service: S) -> Result<Self, Failure> {
        Ok(Self {
            socket: Socket::bind(address)?,
            table: Table {
                config,
                http: h3::Config::new()?,
                connections: Slab::new(),
                by_first_id: HashMap::new(),
                marked: Vec::new(),
            },
            service,
            scratch: vec![0; SCRATCH].into(),
        })
    }

    /// Returns the address of the server.
    pub const fn local_address(&self) -> SocketAddr {
        self.socket.local_address()
    }

    /// Serves until standard input ends, and returns the service.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn run(mut self) -> Result<S, Failure> {
        let mut input = io::stdin();
        let mut deadline = None;
        loop {
            let mut waited = [
                self.socket.to_poll(),
                PollFd::new(input.as_fd(), PollFlags::POLLIN),
            ];
            event_loop::wait(&mut waited, deadline)?;
            let [can_receive, has_input] = waited.map(|one| one.any().unwrap_or(false));
            if has_input && input.read(&mut self.scratch)? == 0 {
                return Ok(self.service);
            }
            let mut is_busy = can_receive && self.receive()?;
            self.table.expire(Instant::now());
            is_busy |= self.take_turns()?;
            deadline = if is_busy {
                Some(Instant::now())
            } else {
                self.table.deadline()
            };
        }
    }

    /// Passes datagrams to their connections. Returns true if there may be more.
    fn receive(&mut self) -> io::Result<bool> {
        let Self { socket, table, .. } = self;
        socket.receive(|datagram, info| {
            let Some(index) = table
                .find(datagram)
                .or_else(|| table.accept(datagram, info))
            else {
                return;
            };
            // quiche ignores datagrams that it cannot decrypt, and closes connections that break a
            // rule.
            let _ = table.connections[index].quic.recv(datagram, info);
            table.mark(index);
        })
    }

    /// Lets connections with work respond and send. Returns true if work is left.
    fn take_turns(&mut self) -> Result<bool, Failure> {
        let mut is_busy = false;
        for index in std::mem::take(&mut self.table.marked) {
            let connection = &mut self.table.connections[index];
            connection.is_marked = false;
            connection.answer(&mut self.service, &self.table.http, &mut self.scratch);
            let left = self.socket.send(&mut connection.quic)?;
            connection.deadline = connection.quic.timeout_instant();
            is_busy |= left == Left::More;
            if connection.quic.is_closed() {
                let closed = self.table.connections.remove(index);
                self.table.by_first_id.remove(&closed.first_id);
            } else if left != Left::Nothing {
                self.table.mark(index);
            }
        }
        Ok(is_busy)
    }
}

impl<S: Service> Table<S> {
    /// Returns the connection of a datagram.
    fn find(&self, datagram: &[u8]) -> Option<usize> {
        let first = *datagram.first()?;
        if first & LONG_HEADER == 0 {
            return self.of_id(datagram.get(1..=ID_LEN)?);
        }
        // RFC 8999 §5.1: the version, and the length of the ID before it.
        let length = usize::from(*datagram.get(5)?);
        let id = datagram.get(6..6 + length)?;
        self.of_id(id).or_else(|| self.by_first_id.get(id).copied())
    }

    fn of_id(&self, id: &[u8]) -> Option<usize> {
        let place = id.first_chunk().map(|place| u32::from_be_bytes(*place))?;
        let index = usize::try_from(place).ok()?;
        (self.connections.get(index)?.id == id).then_some(index)
    }

    /// Begins a connection if the datagram requests one. Other versions of QUIC than version 1 are not
    /// answered.
    fn accept(&mut self, datagram: &mut [u8], info: RecvInfo) -> Option<usize> {
        let header = quiche::Header::from_slice(datagram, ID_LEN).ok()?;
        if header.ty != quiche::Type::Initial
            || !quiche::version_is_supported(header.version)
            || self.connections.len() == MAX_CONNECTIONS
        {
            return None;
        }
        let entry = self.connections.vacant_entry();
        let mut id = [0; ID_LEN];
        let (place, secret) = id.split_at_mut(4);
        place.copy_from_slice(&u32::try_from(entry.key()).ok()?.to_be_bytes());
        boring::rand::rand_bytes(secret).ok()?;
        let scid = ConnectionId::from_ref(&id);
        let quic = quiche::accept_with_buf_factory::<Buffers>(
            &scid,
            None,
            info.to,
            info.from,
            &mut self.config,
        );
        let first_id = header.dcid.to_vec();
        let index = entry.key();
        entry.insert(Connection {
            quic: quic.ok()?,
            http: None,
            id,
            first_id: first_id.clone(),
            requests: StreamMap::default(),
            responses: StreamMap::default(),
            deadline: None,
            is_marked: false,
        });
        self.by_first_id.insert(first_id, index);
        Some(index)
    }

    fn mark(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if !connection.is_marked {
            connection.is_marked = true;
            self.marked.push(index);
        }
    }

    /// Returns the time of the first timer. A measurement has few connections, so all are examined.
    fn deadline(&self) -> Option<Instant> {
        let deadlines = self.connections.iter();
        deadlines.filter_map(|(_, one)| one.deadline).min()
    }

    /// Handles timers that have expired.
    fn expire(&mut self, now: Instant) {
        for (index, connection) in &mut self.connections {
            if connection.deadline.is_some_and(|deadline| deadline <= now) {
                connection.quic.on_timeout();
                if !connection.is_marked {
                    connection.is_marked = true;
                    self.marked.push(index);
                }
            }
        }
    }
}

impl<S: Service> Connection<S> {
    /// Responds to all that can be read, and continues with what did not fit before.
    fn answer(&mut self, service: &mut S, config: &h3::Config, scratch: &mut [u8]) {
        if self.http.is_none() && self.quic.is_established() {
            self.http = self.begin(service, config);
        }
        let Some(mut http) = self.http.take() else {
            return;
        };
        // The error is the end of the data, or a broken rule, for which quiche has closed the
        // connection.
        while let Ok((stream, event)) = http.poll(&mut self.quic) {
            self.on_event(&mut http, service, stream, event, scratch);
        }
        if !self.responses.is_empty() {
            while let Some(stream) = self.quic.stream_writable_next() {
                if let Some(response) = self.responses.remove(&stream) {
                    self.send(&mut http, stream, response);
                }
            }
        }
        self.http = Some(http);
    }

    /// Begins HTTP/3 after the handshake. Returns `None` if the connection is refused or broken.
    fn begin(&mut self, service: &mut S, config: &h3::Config) -> Option<h3::Connection> {
        let suite = setup::cipher_suite(&mut self.quic);
        if let Err(failure) = service.on_connection(suite) {
            eprintln!("connection: {failure}");
            // The only error is that the connection is closed already.
            let _ = self.quic.close(true, INTERNAL_ERROR, b"");
            return None;
        }
        h3::Connection::with_transport(&mut self.quic, config).ok()
    }

    fn on_event(
        &mut self,
        http: &mut h3::Connection,
        service: &mut S,
        stream: u64,
        event: h3::Event,
        scratch: &mut [u8],
    ) {
        match event {
            // A second header section has trailers, which are ignored.
            h3::Event::Headers { .. } if self.requests.contains_key(&stream) => {}
            h3::Event::Headers { list, .. } => match service.on_head(&list) {
                Verdict::Answer(answer) => self.send(http, stream, Response::All(answer)),
                Verdict::Read(request) => {
                    self.requests.insert(stream, request);
                }
            },
            h3::Event::Data => {
                while let Ok(count) = http.recv_body(&mut self.quic, stream, scratch) {
                    if let Some(request) = self.requests.get_mut(&stream) {
                        service.on_content(request, &scratch[..count]);
                    }
                }
            }
            h3::Event::Finished => {
                if let Some(request) = self.requests.remove(&stream) {
                    let answer = service.on_end(request);
                    self.send(http, stream, Response::All(answer));
                }
            }
            h3::Event::Reset(_) => {
                self.requests.remove(&stream);
                self.responses.remove(&stream);
            }
            h3::Event::PriorityUpdate | h3::Event::GoAway => {}
        }
    }

    /// Sends as much as fits and keeps the rest.
    fn send(&mut self, http: &mut h3::Connection, stream: u64, response: Response) {
        let mut body = match response {
            Response::Body(body) => body,
            Response::All(answer) => match send_head(&mut self.quic, http, stream, &answer) {
                Ok(()) if answer.is_head_alone => return,
                Ok(()) => answer.body,
                Err(h3::Error::StreamBlocked) => {
                    self.responses.insert(stream, Response::All(answer));
                    return;
                }
                // The client has reset the stream, or the connection is broken.
                Err(_) => return,
            },
        };
        if let Ok(false) = body.send(&mut self.quic, http, stream) {
            self.responses.insert(stream, Response::Body(body));
        }
    }
}

fn send_head(
    quic: &mut Quic,
    http: &mut h3::Connection,
    stream: u64,
    answer: &Answer,
) -> Result<(), h3::Error> {
    let length = answer.body.left();
    let (status, content_length) = (answer.status.to_string(), length.to_string());
    let fields = [
        HeaderRef::new(b":status", status.as_bytes()),
        HeaderRef::new(b"content-length", content_length.as_bytes()),
    ];
    let is_all = length == 0 || answer.is_head_alone;
    http.send_response(quic, stream, &fields, is_all)
}

/// Returns a field of a header section, if present.
pub fn field<'a>(head: &'a [h3::Header], name: &[u8]) -> Option<&'a str> {
    use h3::NameValue as _;
    let found = head.iter().find(|field| field.name() == name)?;
    std::str::from_utf8(found.value()).ok()
}

/// Returns a response with a line of text.
pub fn text(status: u16, text: impl Into<Bytes>) -> Answer {
    Answer {
        status,
        body: Body::text(text),
        is_head_alone: false,
    }
}

const ID_LEN: usize = 8;

/// RFC 8999 §5.1.
const LONG_HEADER: u8 = 0x80;

/// The largest number of connections. Others are not answered: the limit bounds memory and is far above
/// what is measured.
const MAX_CONNECTIONS: usize = 10_000;

/// The size of one read of content.
const SCRATCH: usize = 1 << 16;

/// H3_INTERNAL_ERROR, RFC 9114 §8.1.
const INTERNAL_ERROR: u64 = 0x102;
