//! HTTP/3 on the connections of a server.

use bytes::Bytes;
use peers_common::Failure;
use peers_common::streams::StreamMap;
use quiche::h3::{self, HeaderRef};

use crate::body::{Body, Quic};
use crate::server::Application;
use crate::setup;

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

/// The responses of a service.
pub struct Http3<S: Service> {
    service: S,
    config: h3::Config,
    scratch: Box<[u8]>,
}

/// HTTP/3 on a connection.
pub struct Session<Request> {
    http: h3::Connection,
    requests: StreamMap<Request>,
    responses: StreamMap<Response>,
}

/// The rest of a response.
enum Response {
    All(Answer),
    Body(Body),
}

impl<S: Service> Http3<S> {
    /// Answers requests by `service`.
    ///
    /// # Errors
    /// When quiche has no configuration of HTTP/3.
    pub fn new(service: S) -> Result<Self, Failure> {
        Ok(Self {
            service,
            config: h3::Config::new()?,
            scratch: vec![0; SCRATCH].into(),
        })
    }

    /// Returns the service.
    pub fn into_service(self) -> S {
        self.service
    }
}

impl<S: Service> Application for Http3<S> {
    type Session = Session<S::Request>;

    fn begin(&mut self, quic: &mut Quic) -> Option<Self::Session> {
        let suite = setup::cipher_suite(quic);
        if let Err(failure) = self.service.on_connection(suite) {
            eprintln!("connection: {failure}");
            // The only error is that the connection is closed already.
            let _ = quic.close(true, INTERNAL_ERROR, b"");
            return None;
        }
        Some(Session {
            http: h3::Connection::with_transport(quic, &self.config).ok()?,
            requests: StreamMap::default(),
            responses: StreamMap::default(),
        })
    }

    /// Responds to all that can be read, and continues with what did not fit before.
    fn work(&mut self, session: &mut Self::Session, quic: &mut Quic) {
        // The error is the end of the data, or a broken rule, for which quiche has closed the
        // connection.
        while let Ok((stream, event)) = session.http.poll(quic) {
            session.on_event(quic, &mut self.service, stream, event, &mut self.scratch);
        }
        if !session.responses.is_empty() {
            while let Some(stream) = quic.stream_writable_next() {
                if let Some(response) = session.responses.remove(&stream) {
                    session.send(quic, stream, response);
                }
            }
        }
    }
}

impl<Request> Session<Request> {
    fn on_event(
        &mut self,
        quic: &mut Quic,
        service: &mut impl Service<Request = Request>,
        stream: u64,
        event: h3::Event,
        scratch: &mut [u8],
    ) {
        match event {
            // A second header section has trailers, which are ignored.
            h3::Event::Headers { .. } if self.requests.contains_key(&stream) => {}
            h3::Event::Headers { list, .. } => match service.on_head(&list) {
                Verdict::Answer(answer) => self.send(quic, stream, Response::All(answer)),
                Verdict::Read(request) => {
                    self.requests.insert(stream, request);
                }
            },
            h3::Event::Data => {
                while let Ok(count) = self.http.recv_body(quic, stream, scratch) {
                    if let Some(request) = self.requests.get_mut(&stream) {
                        service.on_content(request, &scratch[..count]);
                    }
                }
            }
            h3::Event::Finished => {
                if let Some(request) = self.requests.remove(&stream) {
                    let answer = service.on_end(request);
                    self.send(quic, stream, Response::All(answer));
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
    fn send(&mut self, quic: &mut Quic, stream: u64, response: Response) {
        let mut body = match response {
            Response::Body(body) => body,
            Response::All(answer) => match send_head(quic, &mut self.http, stream, &answer) {
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
        if let Ok(false) = body.send(quic, &mut self.http, stream) {
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

/// The size of one read of content.
const SCRATCH: usize = 1 << 16;

/// H3_INTERNAL_ERROR, RFC 9114 §8.1.
const INTERNAL_ERROR: u64 = 0x102;
