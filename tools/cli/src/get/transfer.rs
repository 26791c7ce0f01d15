//! Performs one transfer: request, redirects and body.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};

use courser::Client;
use courser::client::{Body, Error, Redirect, Timing};
use courser::h3::OnInterim;
use courser_measure::{Direction, Moves};
use http::header::{self, HeaderValue};
use http::response::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt as _;

use super::content;
use super::cookies::Cookies;
use super::date;
use super::dump::Dump;
use super::exit::{
    BAD_CODING, Failed, HTTP_STATUS, TIMED_OUT, TOO_LARGE, TOO_MANY_REDIRECTS,
    UNSUPPORTED_PROTOCOL, WRITE_ERROR,
};
use super::facts::Facts;
use super::hsts::Hsts;
use super::message::Message;
use super::plan::{Job, Refused, ResumeAt, TransferPlan};
use super::progress::Bar;
use super::speed::Pace;
use super::verbose;
use crate::features::missing;
use crate::transfer::{Destination, Sink, has_rest, is_transient, retry_after};

/// The state that all transfers share.
pub(crate) struct Context {
    pub(crate) plan: TransferPlan,
    pub(crate) client: Client,
    /// The time to create the client.
    pub(crate) set_up: Duration,
    pub(crate) dump: Dump,
    pub(crate) cookies: Cookies,
    /// Hosts that require https, with --hsts.
    pub(crate) hsts: Option<Hsts>,
    /// Moves of the QUIC connections, with --rebind-every.
    pub(crate) moves: Option<Arc<Moves>>,
}

/// The result of a transfer that did not fail.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Done,
    /// The server reported a transient failure, with the time of its Retry-After field. The response was not
    /// written.
    Later(StatusCode, Option<Duration>),
}

/// Performs one transfer without retrying. With `may_retry`, responses after which a retry may succeed
/// are not written.
pub(crate) async fn run(
    context: &Context,
    job: &Job,
    facts: &mut Facts,
    bar: &Bar,
    may_retry: bool,
) -> Result<Done, Failed> {
    let began = Instant::now();
    let limit = context.plan.max_time;
    let transfer = Transfer {
        context,
        job,
        began,
        bar,
        may_retry,
        moved: Arc::default(),
    };
    let moved = transfer.moved.clone();
    let _exchange = context.moves.as_ref().map(Moves::begin_exchange);
    let slow = context.plan.slow_limit;
    let running = async {
        let watched = async {
            match slow {
                Some(limit) => limit.watch(&moved).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            done = transfer.run(facts) => done,
            failed = watched => Err(failed),
        }
    };
    let result = match limit {
        None => running.await,
        Some(limit) => match tokio::time::timeout(limit, running).await {
            Ok(result) => result,
            Err(_) => {
                let received = facts.size_download;
                let text = format!("timed out after {limit:?} with {received} bytes received");
                Err(Failed::new(TIMED_OUT, text))
            }
        },
    };
    facts.total = began.elapsed();
    result
}

struct Transfer<'a> {
    context: &'a Context,
    job: &'a Job,
    began: Instant,
    bar: &'a Bar,
    may_retry: bool,
    /// The number of bytes of content that were sent and received.
    moved: Arc<AtomicU64>,
}

impl Transfer<'_> {
    async fn run(&self, facts: &mut Facts) -> Result<Done, Failed> {
        let TransferPlan {
            request,
            response: plan,
            verbosity,
            ..
        } = &self.context.plan;
        let mut message = Message::new(request, &self.job.url)?;
        facts.method = message.method.clone();
        let offset = self.offset(&mut message.headers);
        loop {
            facts.last_began = self.began.elapsed();
            if let Some(hsts) = &self.context.hsts
                && hsts.upgrade(&mut message.uri)
                && verbosity.shows_details
            {
                verbose::note(&format!(
                    "The host requires https: switched to {}",
                    message.uri
                ));
            }
            facts.effective = Some(message.uri.clone());
            facts.effective_url = Some(message.effective_url());
            let mut outgoing = message.clone();
            let cookies = &self.context.cookies;
            cookies.apply(&outgoing.method, &outgoing.uri, &mut outgoing.headers);
            let (interim, response) = self.send(&outgoing, facts).await?;
            let (head, body) = response.into_parts();
            cookies.on_response(&outgoing.uri, &outgoing.headers, &head.headers);
            if let Some(hsts) = self.context.hsts.as_ref().filter(|_| plan.verifies) {
                hsts.on_response(&outgoing.uri, &head.headers);
            }
            let text: String = interim.iter().chain([&head]).map(verbose::head).collect();
            facts.size_header += text.len() as u64;
            self.context.dump.write(&text)?;
            let found = Redirect::of(&message.method, &message.uri, head.status, &head.headers);
            let found = match found {
                // As in curl, the code 47 is for too many redirects only.
                Err(error) if plan.follows => {
                    return Err(Failed::new(UNSUPPORTED_PROTOCOL, error.to_string()));
                }
                found => found.unwrap_or(None),
            };
            facts.redirect_url = None;
            let status = head.status;
            let location = head.headers.get(header::LOCATION).cloned();
            facts.response = Some(head);
            match found {
                Some(redirect) if plan.follows => {
                    if self.shows_heads() {
                        self.show_head(&text)?;
                    }
                    self.check_redirects(facts, &redirect)?;
                    let protocols = plan.redirect_protocols;
                    protocols.check("--proto-redir", redirect.uri.scheme_str())?;
                    drain(body).await;
                    if verbosity.shows_details {
                        verbose::note(&format!("Following redirect to {}", redirect.uri));
                    }
                    let location = location.as_ref().map_or(&b""[..], HeaderValue::as_bytes);
                    message.redirected(redirect, status, location);
                    facts.redirects += 1;
                }
                found => {
                    facts.redirect_url = found.map(|redirect| redirect.uri);
                    return self.finish(facts, &text, body, offset).await;
                }
            }
        }
    }

    /// Sends a request. Returns the interim responses and the final one.
    async fn send(
        &self,
        message: &Message,
        facts: &mut Facts,
    ) -> Result<(Vec<Parts>, Response<Body>), Failed> {
        let body = message.content.open().await?;
        let (moves, moved) = (self.context.moves.clone(), self.moved.clone());
        let body = content::watched(body, self.context.plan.max_rate, move |bytes| {
            moved.fetch_add(bytes, Relaxed);
            if let Some(moves) = &moves {
                moves.on_bytes(Direction::Sent, Instant::now());
            }
        });
        let mut request = Request::new(body);
        *request.method_mut() = message.method.clone();
        *request.uri_mut() = message.uri.clone();
        *request.headers_mut() = message.headers.clone();
        let is_chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
        let len = message.content.len().filter(|len| *len > 0 && !is_chunked);
        if let Some(len) = len {
            request
                .headers_mut()
                .insert(header::CONTENT_LENGTH, len.into());
        }
        let (sender, interim) = std::sync::mpsc::channel();
        request
            .extensions_mut()
            .insert(OnInterim::new(move |response| {
                let _ = sender.send(response.into_parts().0);
            }));
        let is_verbose = self.context.plan.verbosity.shows_details;
        let sent = self.context.client.send(request).await;
        let interim: Vec<Parts> = interim.try_iter().collect();
        let response = match sent {
            Ok(response) => response,
            Err(error) => return Err(self.on_error(&error, message, facts)),
        };
        self.on_received(0);
        if let Some(timing) = response.extensions().get::<Timing>() {
            facts.connects += timing.connects();
            facts.timing = Some(timing.clone());
        }
        facts.size_upload = message.content.len().unwrap_or(0);
        facts.size_request += message_size(message);
        if is_verbose {
            let ech = self.context.plan.offers_ech;
            let timing = facts.timing.iter();
            timing.for_each(|timing| verbose::connection(timing, ech));
            verbose::request(message, Some(response.version()));
            let (head, body) = response.into_parts();
            interim.iter().chain([&head]).for_each(verbose::response);
            return Ok((interim, Response::from_parts(head, body)));
        }
        Ok((interim, response))
    }

    fn on_error(&self, error: &Error, message: &Message, facts: &mut Facts) -> Failed {
        if let Some(timing) = error.timing() {
            if self.context.plan.verbosity.shows_details {
                let ech = self.context.plan.offers_ech;
                verbose::connection(timing, ech);
                if timing.request_started.is_some() {
                    verbose::request(message, timing.protocol);
                }
            }
            facts.timing = Some(timing.clone());
        }
        Failed::of(error)
    }

    fn check_redirects(&self, facts: &Facts, redirect: &Redirect) -> Result<(), Failed> {
        match self.context.plan.response.max_redirects {
            Some(limit) if facts.redirects >= limit => {
                let text = format!(
                    "more than {limit} redirects (--max-redirs), the next to {}",
                    redirect.uri
                );
                Err(Failed::new(TOO_MANY_REDIRECTS, text))
            }
            _ => Ok(()),
        }
    }

    /// Writes the last response to its destination.
    async fn finish(
        &self,
        facts: &mut Facts,
        head: &str,
        body: Body,
        offset: u64,
    ) -> Result<Done, Failed> {
        let plan = &self.context.plan.response;
        let (status, headers) = match &facts.response {
            Some(response) => (response.status, response.headers.clone()),
            None => return Ok(Done::Done),
        };
        if self.may_retry && is_transient(status) {
            return Ok(Done::Later(
                status,
                retry_after(&headers, SystemTime::now()),
            ));
        }
        // RFC 9110 §15: a status above 599 counts as an error of the server.
        let is_refused = status.as_u16() >= 400;
        let failed = || {
            let text = format!("the requested URL returned error: {}", status.as_u16());
            Failed::new(HTTP_STATUS, text)
        };
        if plan.decompresses && !http_body::Body::is_end_stream(&body) {
            check_coding(&headers)?;
        }
        if offset > 0 && !has_rest(status, &headers, offset)? {
            // The file is complete.
            return Ok(Done::Done);
        }
        if is_refused && plan.refused == Refused::Fails {
            return Err(failed());
        }
        if let Some(path) = &plan.etag_file {
            save_etag(path, &headers)?;
        }
        let destination = &self.job.destination;
        let mut sink = destination.open(&headers, offset, plan.creates_folders)?;
        facts.file_name = sink.name();
        let received = async {
            if self.shows_heads() {
                sink.write(head.as_bytes())?;
            }
            self.receive(facts, body, &mut sink).await
        };
        if let Err(failed) = received.await {
            if plan.removes_failed {
                sink.remove();
            }
            return Err(failed);
        }
        if plan.keeps_time {
            set_time(&sink, &headers);
        }
        if is_refused && plan.refused == Refused::FailsWithBody {
            return Err(failed());
        }
        Ok(Done::Done)
    }

    async fn receive(
        &self,
        facts: &mut Facts,
        mut body: Body,
        sink: &mut Sink,
    ) -> Result<(), Failed> {
        let limit = self.context.plan.response.max_size;
        let too_large = |size: u64| {
            let text = format!("the body has {size} bytes, --max-filesize allows {limit}");
            Failed::new(TOO_LARGE, text)
        };
        let expected = http_body::Body::size_hint(&body).exact();
        if let Some(size) = expected.filter(|size| *size > limit) {
            return Err(too_large(size));
        }
        self.bar.begin(&self.job.url, expected);
        let rate = self.context.plan.max_rate;
        let mut pace = rate.map(|rate| Pace::new(rate, Instant::now()));
        let result = loop {
            match body.frame().await {
                None => break Ok(()),
                Some(Err(error)) => break Err(Failed::of(&error)),
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else {
                        continue;
                    };
                    self.on_received(data.len());
                    facts.size_download += data.len() as u64;
                    if facts.size_download > limit {
                        break Err(too_large(facts.size_download));
                    }
                    sink.write(&data)?;
                    self.bar.at(facts.size_download);
                    if let Some(pace) = &mut pace {
                        tokio::time::sleep(pace.on_bytes(data.len(), Instant::now())).await;
                    }
                }
            }
        };
        sink.finish()?;
        facts.timing = Some(body.timing());
        result
    }

    /// Counts received bytes, and reports them to the moves, if the connections move.
    fn on_received(&self, bytes: usize) {
        self.moved.fetch_add(bytes as u64, Relaxed);
        if let Some(moves) = &self.context.moves {
            moves.on_bytes(Direction::Received, Instant::now());
        }
    }

    /// Returns the offset at which a resumed download continues, and requests the rest.
    fn offset(&self, headers: &mut HeaderMap) -> u64 {
        let offset = match self.context.plan.response.resume {
            None => 0,
            Some(ResumeAt::EndOfFile) => {
                let file = self.job.destination.known_file();
                // A missing file is requested completely.
                file.and_then(|path| path.metadata().ok())
                    .map_or(0, |file| file.len())
            }
            Some(ResumeAt::Offset(offset)) => offset,
        };
        if offset > 0 {
            let range = format!("bytes={offset}-");
            if let Ok(range) = HeaderValue::try_from(range) {
                headers.insert(header::RANGE, range);
            }
        }
        offset
    }

    const fn shows_heads(&self) -> bool {
        self.context.plan.response.includes_headers
    }

    /// Writes the header of a redirect to the destination of the body.
    fn show_head(&self, text: &str) -> Result<(), Failed> {
        if self.job.destination.is_stdout() {
            let mut sink = Destination::ForcedStdout.open(&HeaderMap::new(), 0, false)?;
            sink.write(text.as_bytes())?;
        }
        Ok(())
    }
}

/// Writes the entity tag of a response to a file.
fn save_etag(path: &Path, headers: &HeaderMap) -> Result<(), Failed> {
    let Some(etag) = headers.get(header::ETAG) else {
        return Ok(());
    };
    let text = [etag.as_bytes(), b"\n"].concat();
    courser_base::replace_file(path, &text).map_err(|error| {
        let text = format!("cannot write {}: {error}", path.display());
        Failed::new(WRITE_ERROR, text)
    })
}

/// Gives a file the time of the Last-Modified field, if it has a valid one.
fn set_time(sink: &Sink, headers: &HeaderMap) {
    let time = headers.get(header::LAST_MODIFIED);
    if let Some(seconds) = time.and_then(|time| date::of_cookie(time.as_bytes())) {
        sink.set_time(date::system_time(seconds));
    }
}

/// Refuses content with a coding that this build cannot decode.
fn check_coding(headers: &HeaderMap) -> Result<(), Failed> {
    let coding = headers.get(header::CONTENT_ENCODING);
    let (part, feature) = match coding.map(HeaderValue::as_bytes) {
        Some(b"br") if !cfg!(feature = "brotli") => ("brotli", "brotli"),
        Some(b"zstd") if !cfg!(feature = "zstd") => ("zstd", "zstd"),
        _ => return Ok(()),
    };
    Err(Failed::new(BAD_CODING, missing(part, feature)))
}

/// Reads the short body of a redirect, so that its connection can be reused.
async fn drain(mut body: Body) {
    let mut left = MAX_DRAINED;
    let all = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, bytes::Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    // A longer wait would cost more than a new connection.
    let _ = tokio::time::timeout(DRAIN_TIME, all).await;
}

/// Returns the size of the request header in HTTP/1.1, without compression.
fn message_size(message: &Message) -> u64 {
    let fields = message.headers.iter();
    let fields: usize = fields
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    let line = message.method.as_str().len() + message.uri.path().len() + 14;
    (line + fields) as u64
}

const MAX_DRAINED: usize = 64 * 1024;
const DRAIN_TIME: Duration = Duration::from_millis(500);
