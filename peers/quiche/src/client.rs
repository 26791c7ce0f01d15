//! A client of HTTP/3: a few connections, each with a socket of its own, and one thread.

use std::net::SocketAddr;
use std::rc::Rc;

use peers_common::Failure;
use peers_common::streams::StreamMap;
use quiche::h3;

use crate::body::{Body, Quic};
use crate::dialed::{self, Dialed};
use crate::setup;

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
    dialed: Vec<Dialed>,
    /// HTTP/3 on each of them.
    sessions: Vec<Session>,
    scratch: Box<[u8]>,
}

/// HTTP/3 on a connection.
struct Session {
    http: h3::Connection,
    /// Content that has not been sent.
    uploads: StreamMap<Body>,
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
    /// Opens `count` connections from `local` to the server `name` at `address`.
    ///
    /// # Errors
    /// When there is no socket, or a handshake fails.
    pub fn connect(
        config: &mut quiche::Config,
        name: &str,
        local: SocketAddr,
        address: SocketAddr,
        count: usize,
    ) -> Result<Self, Failure> {
        let dialed: Result<_, Failure> = (0..count)
            .map(|_| Dialed::begin(config, name, local, address))
            .collect();
        Self::over(dialed?)
    }

    /// Completes the handshakes of these connections, and begins HTTP/3 on them.
    ///
    /// # Errors
    /// When a handshake fails.
    pub fn over(mut dialed: Vec<Dialed>) -> Result<Self, Failure> {
        while !dialed.iter().all(|it| it.quic.is_established()) {
            dialed::turn(&mut dialed, None)?;
            for connection in &dialed {
                connection.check()?;
            }
        }
        let config = h3::Config::new()?;
        let begin = |connection: &mut Dialed| {
            connection.mark();
            Ok(Session {
                http: h3::Connection::with_transport(&mut connection.quic, &config)?,
                uploads: StreamMap::default(),
            })
        };
        let sessions: Result<_, Failure> = dialed.iter_mut().map(begin).collect();
        Ok(Self {
            sessions: sessions?,
            dialed,
            scratch: vec![0; SCRATCH].into(),
        })
    }

    /// Returns the cipher suite of the first connection by IANA's name.
    pub fn cipher_suite(&mut self) -> &'static str {
        let first = self.dialed.first_mut();
        first.map_or("none", |first| setup::cipher_suite(&mut first.quic))
    }

    /// Sends all requests of `work`, with `in_flight` of them in progress over all connections.
    ///
    /// # Errors
    /// When a connection breaks, or `work` reports an error.
    pub fn run<W: Work>(&mut self, work: &mut W, in_flight: usize) -> Result<(), Failure> {
        let count = self.dialed.len();
        let mut shares: Vec<_> = (0..count)
            .map(|place| Share {
                slots: in_flight.saturating_sub(place).div_ceil(count),
                under_way: StreamMap::default(),
                next: None,
            })
            .collect();
        for connection in &mut self.dialed {
            connection.mark();
        }
        loop {
            let mut is_done = true;
            let connections = self.dialed.iter_mut().zip(&mut self.sessions);
            for ((connection, session), share) in connections.zip(&mut shares) {
                if connection.is_marked() {
                    connection.check()?;
                    session.work(&mut connection.quic, work, share, &mut self.scratch)?;
                }
                is_done &= share.under_way.is_empty() && share.next.is_none();
            }
            if is_done {
                return Ok(());
            }
            dialed::turn(&mut self.dialed, None)?;
        }
    }

    /// Closes all connections.
    ///
    /// # Errors
    /// When a socket fails.
    pub fn close(mut self) -> Result<(), Failure> {
        for connection in &mut self.dialed {
            connection.close(NO_ERROR)?;
        }
        Ok(())
    }
}

impl Session {
    /// Reads responses, and sends new requests in place of those that are complete.
    fn work<W: Work>(
        &mut self,
        quic: &mut Quic,
        work: &mut W,
        share: &mut Share<W::Exchange>,
        scratch: &mut [u8],
    ) -> Result<(), Failure> {
        let http = &mut self.http;
        loop {
            let (stream, event) = match http.poll(quic) {
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
                    while let Ok(count) = http.recv_body(quic, stream, scratch) {
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
            match http.send_request(quic, &request.head, is_all) {
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
        self.upload(quic)
    }

    /// Continues with content that did not fit before.
    fn upload(&mut self, quic: &mut Quic) -> Result<(), Failure> {
        if self.uploads.is_empty() {
            return Ok(());
        }
        while let Some(stream) = quic.stream_writable_next() {
            let Some(body) = self.uploads.get_mut(&stream) else {
                continue;
            };
            match body.send(quic, &mut self.http, stream) {
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

/// The size of one read of content.
const SCRATCH: usize = 1 << 16;

/// H3_NO_ERROR, RFC 9114 §8.1.
const NO_ERROR: u64 = 0x100;
