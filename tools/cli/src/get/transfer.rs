//! Performs one transfer: request, redirects and body.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant, SystemTime};

use courser::Client;
use courser::client::{Body, Error, Redirect, Timing};
use courser::h3::OnInterim;
use courser_measure::{Direction, Moves};
use http::header::{self, HeaderValue};
use http::response::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;

use super::content;
use super::cookies::Cookies;
use super::date;
use super::dump::Dump;
use super::exit::{
    BAD_CODING, Failed, HTTP_STATUS, TIMED_OUT, TOO_LARGE, TOO_MANY_REDIRECTS,
    UNSUPPORTED_PROTOCOL, URL_MALFORMED, WRITE_ERROR,
};
use super::facts::Facts;
use super::hsts::Hsts;
use super::message::Message;
use super::paths::Opened;
use super::plan::{Job, Refused, ResumeAt, TransferPlan};
use super::progress::Bar;
use super::speed::Pace;
use super::verbose::{self, Details};
use crate::features::missing;
use crate::transfer::{Destination, Sink, has_rest, is_transient, retry_after};

/// The state that all transfers share.
pub(crate) struct Context {
    pub(crate) plan: TransferPlan,
    pub(crate) client: Client,
    /// The time to create the client.
    pub(crate) set_up: Duration,
    pub(crate) dump: Dump,
    pub(crate) details: Details,
    pub(crate) cookies: Cookies,
    /// Hosts that require https, with --hsts.
    pub(crate) hsts: Option<Hsts>,
    /// Moves of the QUIC connections, with --rebind-every.
    pub(crate) moves: Option<Arc<Moves>>,
    /// The paths that were opened over the links of --via.
    pub(crate) opened: Opened,
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
        sent: Arc::default(),
    };
    let (moved, sent) = (transfer.moved.clone(), transfer.sent.clone());
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
    facts.size_upload = sent.load(Relaxed);
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
    /// The number of bytes of content that the last request has sent.
    sent: Arc<AtomicU64>,
}

impl Transfer<'_> {
    async fn run(&self, facts: &mut Facts) -> Result<Done, Failed> {
        let TransferPlan {
            request,
            response: plan,
            ..
        } = &self.context.plan;
        let details = &self.context.details;
        let mut message = Message::new(request, &self.job.url, self.job.upload.as_ref())?;
        facts.method = message.method.clone();
        let offset = self.offset(&mut message.headers);
        loop {
            facts.last_began = self.began.elapsed();
            if let Some(hsts) = &self.context.hsts
                && hsts.upgrade(&mut message.uri)
            {
                let uri = &message.uri;
                details.note(&format!("The host requires https: switched to {uri}"));
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
            let found = self.redirect(&message, &head, facts)?;
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
                    facts.redirect_url = None;
                    drain(body).await;
                    details.note(&format!("Following redirect to {}", redirect.uri));
                    let location = location.as_ref().map_or(&b""[..], HeaderValue::as_bytes);
                    message.redirected(redirect, status, location);
                    facts.redirects += 1;
                }
                _ => return self.finish(facts, &text, body, offset).await,
            }
        }
    }

    /// Returns the redirect in a response. One that cannot be followed is an error only if redirects are followed.
    fn redirect(
        &self,
        message: &Message,
        head: &Parts,
        facts: &mut Facts,
    ) -> Result<Option<Redirect>, Failed> {
        let found = Redirect::of(&message.method, &message.uri, head.status, &head.headers);
        facts.redirect_url = match &found {
            Ok(found) => found.as_ref().map(|found| found.uri.to_string()),
            Err(_) => resolved(&message.uri, head.headers.get(header::LOCATION)),
        };
        match found {
            Err(error) if self.context.plan.response.follows => {
                // As in curl, the code 47 is for too many redirects only.
                let code = match facts.redirect_url {
                    Some(_) => UNSUPPORTED_PROTOCOL,
                    None => URL_MALFORMED,
                };
                Err(Failed::new(code, error.to_string()))
            }
            found => Ok(found.unwrap_or(None)),
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
        let sent_bytes = self.sent.clone();
        sent_bytes.store(0, Relaxed);
        let details = self.context.details.clone();
        // Content may be sent before the response, which names the version of the request.
        let traced = matches!(details, Details::Traced(_)).then(|| message.clone());
        let is_shown = Arc::<AtomicBool>::default();
        let was_shown = is_shown.clone();
        let body = content::watched(body, self.context.plan.max_rate, move |data| {
            if let Some(message) = &traced {
                if !was_shown.swap(true, Relaxed) {
                    details.request(message, None);
                }
                details.sent(data);
            }
            moved.fetch_add(data.len() as u64, Relaxed);
            sent_bytes.fetch_add(data.len() as u64, Relaxed);
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
        let size = message_size(request.method(), request.uri(), request.headers());
        let (sender, interim) = std::sync::mpsc::channel();
        request
            .extensions_mut()
            .insert(OnInterim::new(move |response| {
                let _ = sender.send(response.into_parts().0);
            }));
        let sent = self.context.client.send(request).await;
        let interim: Vec<Parts> = interim.try_iter().collect();
        let response = match sent {
            Ok(response) => response,
            Err(error) => {
                let is_shown = is_shown.load(Relaxed);
                return Err(self.on_error(&error, message, is_shown, facts));
            }
        };
        self.on_received(0);
        if let Some(timing) = response.extensions().get::<Timing>() {
            facts.connects += timing.connects();
            facts.timing = Some(timing.clone());
        }
        facts.size_request += size;
        let details = &self.context.details;
        if !details.are_hidden() {
            let ech = self.context.plan.offers_ech;
            let timing = facts.timing.iter();
            timing.for_each(|timing| details.connection(timing, ech));
            if !is_shown.load(Relaxed) {
                details.request(message, Some(response.version()));
            }
            let (head, body) = response.into_parts();
            let heads = interim.iter().chain([&head]);
            heads.for_each(|head| details.response(head));
            return Ok((interim, Response::from_parts(head, body)));
        }
        Ok((interim, response))
    }

    fn on_error(
        &self,
        error: &Error,
        message: &Message,
        is_shown: bool,
        facts: &mut Facts,
    ) -> Failed {
        if let Some(timing) = error.timing() {
            let details = &self.context.details;
            details.connection(timing, self.context.plan.offers_ech);
            if timing.request_started.is_some() && !is_shown {
                details.request(message, timing.protocol);
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
        if !headers.contains_key(header::CONTENT_RANGE)
            && let Some(condition) = plan.time_condition
            && let Some(modified) = last_modified(&headers)
            && !condition.allows(modified)
        {
            // As in curl, the response of a server that ignores the condition counts as 304.
            if let Some(response) = &mut facts.response {
                response.status = StatusCode::NOT_MODIFIED;
            }
            return Ok(Done::Done);
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
                    self.context.details.received(&data);
                    let left = limit.saturating_sub(facts.size_download);
                    facts.size_download += data.len() as u64;
                    if facts.size_download > limit {
                        let left = usize::try_from(left).unwrap_or(0).min(data.len());
                        sink.write(&data[..left])?;
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
    if let Some(time) = last_modified(headers) {
        sink.set_time(time);
    }
}

/// Returns the time of the Last-Modified field.
fn last_modified(headers: &HeaderMap) -> Option<SystemTime> {
    let time = headers.get(header::LAST_MODIFIED)?;
    date::of_cookie(time.as_bytes()).map(date::system_time)
}

/// Returns the target of a redirect that cannot be followed, for reports.
fn resolved(base: &Uri, location: Option<&HeaderValue>) -> Option<String> {
    let location = String::from_utf8_lossy(location?.as_bytes());
    let base = url::Url::parse(&base.to_string()).ok()?;
    base.join(&location).ok().map(String::from)
}

/// Refuses content with a coding that this build cannot decode.
fn check_coding(headers: &HeaderMap) -> Result<(), Failed> {
    let coding = headers.get(header::CONTENT_ENCODING);
    let Some(coding) = coding else {
        return Ok(());
    };
    let text = String::from_utf8_lossy(coding.as_bytes()).to_ascii_lowercase();
    let text = match text.trim() {
        "" | "identity" | "gzip" | "x-gzip" | "deflate" => return Ok(()),
        "br" if !cfg!(feature = "brotli") => missing("brotli", "brotli"),
        "zstd" if !cfg!(feature = "zstd") => missing("zstd", "zstd"),
        "br" | "zstd" => return Ok(()),
        other => {
            format!("the content coding '{other}' is not supported: retry without --compressed")
        }
    };
    Err(Failed::new(BAD_CODING, text))
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

/// Returns the size of a request header in HTTP/1.1, without compression.
fn message_size(method: &Method, uri: &Uri, headers: &HeaderMap) -> u64 {
    let fields = headers.iter();
    let fields: usize = fields
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    let host = match (headers.get(header::HOST), uri.authority()) {
        (None, Some(authority)) => authority.as_str().len() + "host: \r\n".len(),
        _ => 0,
    };
    let target = uri.path_and_query().map_or(1, |it| it.as_str().len());
    let line = method.as_str().len() + target + "  HTTP/1.1\r\n\r\n".len();
    (line + host + fields) as u64
}

const MAX_DRAINED: usize = 64 * 1024;
const DRAIN_TIME: Duration = Duration::from_millis(500);
