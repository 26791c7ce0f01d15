//! Entry points of the fuzz targets, which send requests through the proxy over in-memory pipes.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser::server;
use courser_base::Mutex;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, Request, Response, Uri};
use http_body_util::BodyExt as _;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf,
};

use super::{Backend, Proxy, ProxyLimits, ProxyTimes};

/// The result of the requests of a client.
#[derive(Debug, Default)]
pub struct Exchange {
    /// The bytes that the upstream server received, for each connection.
    pub sent: Vec<Vec<u8>>,
    /// Each request with the response that the client received.
    pub passed: Vec<Passed>,
}

/// A request and its response.
#[derive(Debug)]
pub struct Passed {
    /// The target as the proxy received it.
    pub uri: Uri,
    /// The header section of the request.
    pub request: HeaderMap,
    /// The response, or `None` if the client closed its connection before it.
    pub response: Option<Answered>,
}

/// A response that a client received.
#[derive(Debug)]
pub struct Answered {
    /// The status code of the final response.
    pub status: u16,
    /// The header section of the response.
    pub headers: HeaderMap,
    /// The length of the content, or `None` if it was aborted.
    pub content: Option<u64>,
}

impl Passed {
    fn new<B>(request: &Request<B>) -> Self {
        Self {
            uri: request.uri().clone(),
            request: request.headers().clone(),
            response: None,
        }
    }
}

/// Forwards the requests in the bytes that a client sends over HTTP/1.1. The upstream server responds to each
/// with `answer`.
///
/// # Panics
/// Panics if that takes longer than ten seconds.
pub fn pass_bytes(client: &[u8], answer: &[u8]) -> Exchange {
    run(async {
        let upstream = Upstream::new(answer);
        let proxy = upstream.proxy();
        let passed: Arc<Mutex<Vec<Passed>>> = Arc::default();
        let service = {
            let passed = passed.clone();
            hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                let (proxy, passed) = (proxy.clone(), passed.clone());
                async move {
                    let request = request.map(server::Body::from);
                    // Before the first await, because hyper drops this future when the client closes.
                    let index = passed.lock().len();
                    passed.lock().push(Passed::new(&request));
                    let (answered, response) = pass(&proxy, request).await;
                    passed.lock()[index].response = Some(answered);
                    Ok::<_, std::convert::Infallible>(response)
                }
            })
        };
        let (near, far) = tokio::io::duplex(PIPE);
        let serving = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(far), service)
            .with_upgrades();
        let speaking = async {
            let (mut read, mut write) = tokio::io::split(near);
            let writing = async {
                let _ = write.write_all(client).await;
                let _ = write.shutdown().await;
            };
            let mut sink = Vec::new();
            let reading = read.read_to_end(&mut sink);
            let _ = tokio::join!(writing, reading);
        };
        let _ = tokio::join!(serving, speaking);
        let passed = std::mem::take(&mut *passed.lock());
        Exchange {
            sent: upstream.sent().await,
            passed,
        }
    })
}

/// The content of a request over HTTP/2 or HTTP/3.
#[derive(Clone, Debug, Default)]
pub struct Content {
    /// The content, in pieces that the client sends one by one.
    pub pieces: Vec<Bytes>,
    /// The end of the content.
    pub end: ContentEnd,
}

/// The way in which a client ends the content of a request.
#[derive(Clone, Debug, Default)]
pub enum ContentEnd {
    /// It ends the stream.
    #[default]
    Complete,
    /// It sends trailers, which end the stream.
    Trailers(HeaderMap),
    /// It resets the stream.
    Reset,
}

/// Forwards a request as it arrives over HTTP/2 or HTTP/3. The content arrives over HTTP/2 in both cases.
///
/// # Panics
/// Panics if that takes longer than ten seconds.
pub fn pass_request(request: Request<()>, content: Content, answer: &[u8]) -> Exchange {
    run(async {
        let upstream = Upstream::new(answer);
        let proxy = upstream.proxy();
        let passed: Arc<Mutex<Vec<Passed>>> = Arc::default();
        let length = request.headers().get(CONTENT_LENGTH).cloned();
        let service = {
            let passed = passed.clone();
            let (parts, ()) = request.into_parts();
            hyper::service::service_fn(move |arrived: Request<hyper::body::Incoming>| {
                let (proxy, passed, parts) = (proxy.clone(), passed.clone(), parts.clone());
                async move {
                    let body = server::Body::from(arrived.into_body());
                    let request = Request::from_parts(parts, body);
                    // Before the first await, because hyper drops this future when the client resets the stream.
                    passed.lock().push(Passed::new(&request));
                    let (answered, response) = pass(&proxy, request).await;
                    passed.lock()[0].response = Some(answered);
                    Ok::<_, std::convert::Infallible>(response)
                }
            })
        };
        let (near, far) = tokio::io::duplex(PIPE);
        let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(far), service);
        let _ = tokio::join!(serving, speak_http2(near, length, content));
        let passed = std::mem::take(&mut *passed.lock());
        Exchange {
            sent: upstream.sent().await,
            passed,
        }
    })
}

/// Sends content over HTTP/2 with a header section that says no more than its length, and waits for the response.
async fn speak_http2(pipe: DuplexStream, length: Option<HeaderValue>, content: Content) {
    let handshake = h2::client::handshake(pipe).await;
    let (mut sender, connection) = handshake.expect("the preface fits into the pipe");
    let driving = tokio::spawn(connection);
    let mut request = Request::post("https://a.example/").body(()).expect("valid");
    if let Some(length) = length {
        request.headers_mut().insert(CONTENT_LENGTH, length);
    }
    let is_empty = content.pieces.is_empty() && matches!(content.end, ContentEnd::Complete);
    let sent = sender.send_request(request, is_empty);
    let (response, mut stream) = sent.expect("the first request");
    if !is_empty {
        // A server that has reset the stream takes no more.
        for piece in content.pieces {
            let _ = stream.send_data(piece, false);
        }
        match content.end {
            ContentEnd::Complete => {
                let _ = stream.send_data(Bytes::new(), true);
            }
            ContentEnd::Trailers(trailers) => {
                let _ = stream.send_trailers(trailers);
            }
            ContentEnd::Reset => {
                // What was sent arrives before the reset.
                tokio::task::yield_now().await;
                stream.send_reset(h2::Reason::CANCEL);
            }
        }
    }
    let _ = response.await;
    drop((stream, sender));
    let _ = driving.await;
}

async fn pass(
    proxy: &Proxy<Connector>,
    request: Request<server::Body>,
) -> (Answered, Response<http_body_util::Full<Bytes>>) {
    let (parts, body) = proxy.answer(request).await.into_parts();
    let content = body
        .collect()
        .await
        .ok()
        .map(http_body_util::Collected::to_bytes);
    let answered = Answered {
        status: parts.status.as_u16(),
        headers: parts.headers.clone(),
        content: content.as_ref().map(|content| content.len() as u64),
    };
    let content = content.unwrap_or_default();
    (answered, Response::from_parts(parts, content.into()))
}

/// Runs a future on the runtime of this thread.
fn run<T>(work: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: RefCell<Option<tokio::runtime::Runtime>> = const { RefCell::new(None) };
    }
    RUNTIME.with_borrow_mut(|runtime| {
        let runtime = runtime.get_or_insert_with(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .expect("a runtime without I/O")
        });
        runtime.block_on(async {
            let limited = tokio::time::timeout(LONGEST, work);
            limited.await.expect("the exchange completes in time")
        })
    })
}

/// An upstream server that responds to each request with the same bytes and records all bytes that it receives.
struct Upstream {
    answer: Arc<[u8]>,
    connections: Connections,
}

type Connections = Arc<Mutex<Vec<tokio::task::JoinHandle<Vec<u8>>>>>;

impl Upstream {
    fn new(answer: &[u8]) -> Self {
        Self {
            answer: answer.into(),
            connections: Arc::default(),
        }
    }

    fn proxy(&self) -> Proxy<Connector> {
        let backend = Backend::parse("http://backend.internal:8080").expect("a URL");
        let times = ProxyTimes {
            connect: LONGEST,
            response: LONGEST,
            body: LONGEST,
        };
        let connector = Connector {
            answer: self.answer.clone(),
            connections: self.connections.clone(),
        };
        Proxy::with(connector, backend, times, ProxyLimits::default())
    }

    /// Returns the bytes received on each connection after all have ended.
    async fn sent(self) -> Vec<Vec<u8>> {
        let connections = std::mem::take(&mut *self.connections.lock());
        let mut sent = Vec::new();
        for connection in connections {
            sent.push(connection.await.expect("no panic"));
        }
        sent
    }
}

/// Connects to an [`Upstream`].
#[derive(Clone)]
struct Connector {
    answer: Arc<[u8]>,
    connections: Connections,
}

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<Pipe>;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<TokioIo<Pipe>>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        let (near, far) = tokio::io::duplex(PIPE);
        let serving = tokio::spawn(serve(far, self.answer.clone()));
        let mut connections = self.connections.lock();
        connections.push(serving);
        std::future::ready(Ok(TokioIo::new(Pipe(near))))
    }
}

/// Reads until a request may be complete, responds, and reads the remaining bytes.
async fn serve(mut pipe: DuplexStream, answer: Arc<[u8]>) -> Vec<u8> {
    let mut sent = Vec::new();
    let mut is_answered = false;
    loop {
        let begins_answer = !is_answered && is_whole(&sent);
        if begins_answer {
            is_answered = true;
            let _ = pipe.write_all(&answer).await;
            // Shut down, so that a response without an end is aborted.
            let _ = pipe.shutdown().await;
        }
        match pipe.read_buf(&mut sent).await {
            Ok(0) | Err(_) => return sent,
            Ok(_) => {}
        }
    }
}

/// Returns true if the bytes contain a header section and the content that it announces.
fn is_whole(sent: &[u8]) -> bool {
    let Some(end) = sent.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return false;
    };
    let fields = String::from_utf8_lossy(&sent[..end]).to_ascii_lowercase();
    let content = &sent[end + 4..];
    let field = |name: &str| fields.lines().find_map(|line| line.strip_prefix(name));
    if field("transfer-encoding:").is_some() {
        return has_last_chunk(content);
    }
    let length = field("content-length:").and_then(|value| value.trim().parse().ok());
    content.len() >= length.unwrap_or(0)
}

/// Returns true if chunked content is complete, with its trailers, or malformed.
fn has_last_chunk(mut content: &[u8]) -> bool {
    loop {
        let Some(line) = content.windows(2).position(|bytes| bytes == b"\r\n") else {
            return false;
        };
        let size = std::str::from_utf8(&content[..line]).ok();
        let Some(size) = size.and_then(|size| usize::from_str_radix(size, 16).ok()) else {
            return true;
        };
        content = &content[line + 2..];
        if size == 0 {
            let has_end = content.windows(4).any(|bytes| bytes == b"\r\n\r\n");
            return content.starts_with(b"\r\n") || has_end;
        }
        match content.get(size.saturating_add(2)..) {
            Some(rest) => content = rest,
            None => return false,
        }
    }
}

/// One end of a pipe as a connection of hyper-util.
struct Pipe(DuplexStream);

impl Connection for Pipe {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Capacity of a pipe in bytes.
const PIPE: usize = 64 * 1024;

/// Time limit for an exchange, far above the usual duration, to detect waits without an end.
const LONGEST: Duration = Duration::from_secs(10);
