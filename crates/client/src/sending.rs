//! One request with its response: obtains a connection, sends, and repeats requests at once that were not processed.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use courser_http3_tokio::Protocol;
use courser_quic::{Connection, EarlyData};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, header};

use super::body::{Body, Home};
use super::coalescing;
use super::connect::connect;
use super::core::Core;
use super::early_data::{is_unfinished, unless_silent, wait_if_unsafe};
use super::error::{Error, ErrorKind};
use super::expectation::{self, Expectation};
use super::interim::InterimLimit;
use super::link::{Established, Facts, Link};
use super::moves;
use super::origin::Origin;
use super::pool::{Dialing, Key};
use super::received;
use super::request_body::{Replay, RequestBody};
use super::request_head;
use super::second_lane::{Answer, first_answer};
use super::timing::{EarlyRequest, Timing};

/// Sends a request to its origin, and repeats it at once if it was not processed.
pub(super) async fn send_once(
    core: &Arc<Core>,
    parts: &mut Parts,
    mut body: RequestBody,
    mut timing: Timing,
) -> Result<Response<Body>, Error> {
    let origin = Origin::of(&parts.uri)?;
    let key = core.key(&origin, &parts.uri, parts.extensions.get())?;
    request_head::check(parts, &body)?;
    let replay = body.handle();
    let mut expects_above = core.settings.expects_above;
    loop {
        let outgoing = Outgoing {
            core,
            key: &key,
            origin: &origin,
            parts,
            expects_above,
        };
        let (established, is_reused) = obtain(core, &key, &mut timing).await?;
        let lane = Lane::of(&established, is_reused);
        let (attempt, lane) = outgoing
            .answer(lane, established, (body, &replay), &mut timing)
            .await;
        let (sent, is_silent) = (attempt.sent, attempt.is_silent);
        let (error, falls_back) = match sent {
            Ok(response) => {
                let early = lane.early.filter(|_| outgoing.parts.method.is_safe());
                match outgoing
                    .judge(response, &lane.facts, (early, &replay), &mut timing)
                    .await
                {
                    Judged::Final(response) => return Ok(response),
                    Judged::Refused(error) => (error, is_silent),
                    Judged::Again(again) => {
                        // A server that refused the expectation is asked without it.
                        parts.headers.remove(header::EXPECT);
                        expects_above = None;
                        body = again;
                        continue;
                    }
                }
            }
            Err(error) => {
                let falls_back = outgoing.on_error(&error, &lane, is_silent, &mut timing);
                (error, falls_back)
            }
        };
        let (facts, is_reused) = (lane.facts, lane.is_reused);
        if error.is_stale() || error.is_unprocessed() || falls_back {
            core.pool.remove(&key, &facts);
        }
        let may_retry = falls_back || may_retry(&error, is_reused, &parts.method);
        let is_repeated = timing.retries < core.settings.retries && may_retry;
        match replay.restart().filter(|_| is_repeated) {
            Some(again) => body = again,
            None => return Err(error.with_timing(timing)),
        }
        timing.retries += 1;
    }
}

/// A request and its destination.
struct Outgoing<'a> {
    core: &'a Arc<Core>,
    key: &'a Key,
    origin: &'a Origin,
    parts: &'a Parts,
    /// The size of content above which an expectation is added.
    expects_above: Option<u64>,
}

/// The properties of an attempt's connection on which repeating the request depends.
struct Lane {
    facts: Arc<Facts>,
    /// True if the connection was taken from the pool.
    is_reused: bool,
    /// The QUIC connection, for HTTP/3.
    quic: Option<Connection>,
    /// The QUIC connection, if the request may be sent before its handshake completes.
    early: Option<Connection>,
}

/// What a response means for its request.
enum Judged {
    Final(Response<Body>),
    /// The request is sent again with this body, because the server asked for that.
    Again(RequestBody),
    /// The server does not serve the origin.
    Refused(Error),
}

/// The outcome of an attempt to send a request.
struct Attempt {
    sent: Result<Response<Body>, Error>,
    /// True if the server has not answered early data.
    is_silent: bool,
    /// The connection and the timing of the second attempt, if it produced this outcome.
    beside: Option<Box<(Lane, Timing)>>,
}

impl Answer for Attempt {
    fn is_response(&self) -> bool {
        self.sent.is_ok()
    }
}

impl Lane {
    fn of(established: &Established, is_reused: bool) -> Self {
        Self {
            facts: established.facts.clone(),
            is_reused,
            quic: established.link.quic(),
            early: established.link.early(),
        }
    }
}

impl Outgoing<'_> {
    /// Returns true if the request may be sent again while it is unknown whether it was processed (RFC 9110
    /// §9.2.2).
    fn may_be_duplicated(&self, retries: u32) -> bool {
        self.parts.method.is_idempotent() && retries < self.core.settings.retries
    }

    /// Processes a response. `early` is the connection if it carried the request in early data.
    async fn judge(
        &self,
        response: Response<Body>,
        facts: &Facts,
        (early, replay): (Option<Connection>, &Replay),
        timing: &mut Timing,
    ) -> Judged {
        let status = response.status();
        // RFC 7838 §6: the alternatives in such a response are not those of the origin.
        if status != StatusCode::MISDIRECTED_REQUEST {
            self.core.on_response(self.key, &response);
        }
        let may_repeat = timing.retries < self.core.settings.retries;
        // RFC 8470 §5.2: the server requests the request again after the handshake.
        if status == StatusCode::TOO_EARLY
            && may_repeat
            && let Some(quic) = early
            && let Some(again) = replay.restart()
        {
            let _ = quic.authenticated().await;
            timing.early_data = Some(EarlyRequest::TooEarly);
            timing.retries += 1;
            return Judged::Again(again);
        }
        // RFC 9110 §10.1.1.
        if status == StatusCode::EXPECTATION_FAILED
            && may_repeat
            && (self.parts.headers.contains_key(header::EXPECT) || self.expects_above.is_some())
            && let Some(again) = replay.restart()
        {
            timing.retries += 1;
            return Judged::Again(again);
        }
        match refused_by(self.core, &response, facts, self.origin) {
            Some(error) => Judged::Refused(error),
            None => Judged::Final(response),
        }
    }

    /// Records why an attempt failed. Returns true if the request may be repeated on another connection for a reason
    /// that the error does not have.
    fn on_error(&self, error: &Error, lane: &Lane, is_silent: bool, timing: &mut Timing) -> bool {
        let (facts, method) = (&*lane.facts, &self.parts.method);
        // Requests with unsafe methods have not been sent in this case.
        let falls_back = is_silent || lane.early.as_ref().is_some_and(is_unfinished);
        let is_rejected = lane
            .early
            .as_ref()
            .is_some_and(|quic| method.is_safe() && quic.early_data() == EarlyData::Rejected);
        if is_rejected {
            timing.early_data = Some(EarlyRequest::Rejected);
        }
        let is_broken = lane.quic.as_ref().is_some_and(|quic| {
            let is_broken = is_broken(quic, error);
            moves::on_lost(self.core, self.key, facts, (quic, is_broken));
            is_broken
        });
        if is_rejected || falls_back || is_broken {
            self.core.disable_early_data(self.origin, facts);
        }
        falls_back || is_broken && may_succeed_elsewhere(lane.is_reused, facts, method)
    }

    /// Sends the request on the connection of a lane. If its path is silent and the request may be repeated,
    /// sends it on another connection as well. Returns the outcome with its lane.
    async fn answer(
        &self,
        lane: Lane,
        established: Established,
        (body, replay): (RequestBody, &Replay),
        timing: &mut Timing,
    ) -> (Attempt, Lane) {
        let (began, retries) = (timing.began, timing.retries);
        let mut attempt = {
            // Pinned here, because its state is large and would be copied as an argument.
            let first = pin!(self.attempt(&lane, established, body, timing));
            let quic = lane.quic.as_ref();
            match quic.filter(|_| self.may_be_duplicated(retries)) {
                Some(quic) => {
                    let of_retry = || Timing::of_retry(began, retries + 1);
                    let second = || self.beside(&lane, replay, of_retry());
                    first_answer(|| quic.is_path_silent(), first, second).await
                }
                None => first.await,
            }
        };
        let lane = match attempt.beside.take() {
            Some(beside) => {
                *timing = beside.1;
                beside.0
            }
            None => lane,
        };
        (attempt, lane)
    }

    /// Sends the request on the connection of a lane.
    async fn attempt(
        &self,
        lane: &Lane,
        established: Established,
        body: RequestBody,
        timing: &mut Timing,
    ) -> Attempt {
        let (core, facts) = (self.core, &*lane.facts);
        facts.add_to(timing, lane.is_reused);
        timing.request_started = Some(timing.elapsed());
        // Pinned here, because each await of it below would reserve its size again.
        let sent = pin!(async {
            let mut head = request_head::header_for(self.parts, &body, self.origin, facts)?;
            if let Some(above) = self.expects_above {
                expectation::add(&mut head.headers, head.version, &body, above);
            }
            let request = Request::from_parts(head, body);
            send(core, self.key, established, request, timing).await
        });
        // Requests with unsafe methods wait for the handshake.
        let (sent, is_silent) = match &lane.early {
            Some(quic) => match unless_silent(quic, core.settings.attempt_delay, sent).await {
                Ok(sent) => (sent, false),
                Err(silence) => (Err(silence.into()), true),
            },
            None => (sent.await, false),
        };
        if sent.is_ok() && facts.was_silent.load(Relaxed) {
            facts.was_silent.store(false, Relaxed);
            core.on_silence_ended(facts, self.origin);
        }
        Attempt {
            sent,
            is_silent,
            beside: None,
        }
    }

    /// Returns another connection than one that is silent. A server that is restarted refuses connections for a moment,
    /// and its old ones are silent for longer, so it is asked again until the time limit of connecting.
    async fn obtain_beside(&self, timing: &mut Timing) -> Option<(Established, bool)> {
        let (began, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            match obtain(self.core, self.key, timing).await {
                Ok(obtained) => return Some(obtained),
                Err(error) if !error.is_retryable() => return None,
                Err(_) if began.elapsed() >= self.core.settings.connect_timeout => return None,
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Sends the request on another connection, because the path of `first` is silent.
    async fn beside(&self, first: &Lane, replay: &Replay, mut timing: Timing) -> Option<Attempt> {
        first.facts.was_silent.store(true, Relaxed);
        if !replay.is_possible() {
            return None;
        }
        let (established, is_reused) = self.obtain_beside(&mut timing).await?;
        let lane = Lane::of(&established, is_reused);
        // From here on the first attempt can no longer read the request body.
        let body = replay.restart()?;
        let attempt = self.attempt(&lane, established, body, &mut timing).await;
        let beside = Some(Box::new((lane, timing)));
        Some(Attempt { beside, ..attempt })
    }
}

/// Returns true if a connection was closed because its server violated a rule, such as one for the settings that
/// early data depends on.
fn is_broken(quic: &Connection, error: &Error) -> bool {
    error.is_violation() && quic.close_reason().is_some()
}

/// Returns true if the violation may be specific to early data or to another request, so that this request may
/// succeed on another connection.
fn may_succeed_elsewhere(is_reused: bool, facts: &Facts, method: &Method) -> bool {
    is_reused && method.is_idempotent() || facts.is_early() && method.is_safe()
}

/// Returns a connection from the pool. Begins a move to HTTP/3 beside it if one is due.
pub(super) fn take(core: &Arc<Core>, key: &Key) -> Option<Established> {
    let taken = core.pool.take(key)?;
    // Who selects addresses selects the version too: an announced server may be at another one.
    if taken.is_move_due && key.address.is_none() {
        moves::begin(core, key);
    }
    Some(taken.established)
}

/// Returns a connection, and true if it was taken from the pool.
pub(super) async fn obtain(
    core: &Arc<Core>,
    key: &Key,
    timing: &mut Timing,
) -> Result<(Established, bool), Error> {
    if let Some(established) = take(core, key) {
        return Ok((established, true));
    }
    if let Some(established) = coalescing::find(core, key) {
        core.pool.share(key, &established);
        return Ok((established, true));
    }
    let guard = match core.pool.dialing(key) {
        Dialing::Alone => None,
        Dialing::Together(lock) => {
            let limit = core.settings.connect_timeout;
            let waited = tokio::time::timeout(limit, lock.lock_owned()).await;
            let guard = waited.map_err(|_| {
                let text = format!(
                    "no connection to {} within {limit:?}",
                    key.origin.authority()
                );
                Error::new(ErrorKind::Timeout, text).unprocessed(true)
            })?;
            if let Some(established) = take(core, key) {
                return Ok((established, true));
            }
            // The task that held the lock may have found that connections to this origin cannot be shared.
            matches!(core.pool.dialing(key), Dialing::Together(_)).then_some(guard)
        }
    };
    // Boxed, because the state of a race is large, and most requests find a connection in the pool.
    let established = Box::pin(connect(core, key, timing)).await?;
    core.pool.share(key, &established);
    drop(guard);
    Ok((established, false))
}

/// Returns true if a request may be repeated: if it was certainly not processed, or if its method is idempotent
/// (RFC 9110 §9.2.2).
fn may_retry(error: &Error, is_reused: bool, method: &Method) -> bool {
    match error.kind() {
        ErrorKind::Send | ErrorKind::RequestBody => false,
        _ if error.is_unprocessed() => true,
        _ => is_reused && error.is_stale() && method.is_idempotent(),
    }
}

/// Returns an error if the response shows that an alternative, or a connection of another origin, does not serve
/// the origin. Remembers that for later requests.
fn refused_by(
    core: &Core,
    response: &Response<Body>,
    facts: &Facts,
    origin: &Origin,
) -> Option<Error> {
    if response.status() != StatusCode::MISDIRECTED_REQUEST {
        return None;
    }
    let text = if facts.serves.is_other(origin) {
        // RFC 8336 §2.3.
        facts.serves.on_misdirected(origin);
        "a connection of another origin does not serve the origin"
    } else if facts.alternative.is_some() {
        // RFC 7838 §6. The origin may announce it again.
        core.alt_svc().forget(origin);
        moves::on_refused(core, origin, facts);
        "an alternative does not serve the origin"
    } else if facts.is_announced {
        // RFC 9110 §15.5.20: another connection may be tried, and TCP has served the origin.
        moves::on_refused(core, origin, facts);
        "HTTP/3 was announced for the origin, and does not serve it"
    } else {
        return None;
    };
    Some(Error::new(ErrorKind::Protocol, text).unprocessed(true))
}

pub(super) async fn send(
    core: &Arc<Core>,
    key: &Key,
    mut established: Established,
    mut request: Request<RequestBody>,
    timing: &mut Timing,
) -> Result<Response<Body>, Error> {
    // Extended CONNECT requires a separate connection, and hyper represents it by another type.
    request.extensions_mut().remove::<Protocol>();
    let asked_upgrade = request.headers().contains_key(header::UPGRADE);
    let head = |timing: &mut Timing| timing.first_byte = Some(timing.elapsed());
    let response = match &mut established.link {
        Link::Http3(client) => {
            let quic = client.quic().clone();
            if established.facts.is_early() {
                wait_if_unsafe(&quic, request.method()).await?;
            }
            let is_early = is_unfinished(&quic);
            let expectation = Expectation::of(&mut request, core.settings.expect_wait);
            let response = client.send(request).await.map_err(Error::of_h3)?;
            let refused = expectation.and_then(|it| it.on_response(response.status()));
            head(timing);
            if is_early && response.status() != StatusCode::TOO_EARLY {
                timing.early_data = Some(EarlyRequest::Accepted);
            }
            timing.set_quic(&quic);
            response.map(|body| Body::http3(body, quic, timing.clone()).until_its_end(refused))
        }
        Link::Http2(send) => {
            // Some servers send content anyway, which would be a stream error.
            let is_head = request.method() == Method::HEAD;
            let unsent = |error| Error::of_hyper(error, true).unprocessed(true).stale(true);
            send.ready().await.map_err(unsent)?;
            let response = send.try_send_request(request).await.map_err(|error| {
                let is_unsent = error.message().is_some();
                let error = Error::of_hyper(error.into_error(), true);
                let is_unprocessed = is_unsent || error.is_unprocessed();
                error.unprocessed(is_unprocessed)
            })?;
            head(timing);
            response.map(|body| match is_head {
                true => Body::nothing(timing.clone()),
                false => Body::http2(body, timing.clone()),
            })
        }
        Link::Http1(send) => {
            let unsent = |error| Error::of_hyper(error, false).unprocessed(true).stale(true);
            send.ready().await.map_err(unsent)?;
            let expectation = Expectation::of(&mut request, core.settings.expect_wait);
            let limit = InterimLimit::watch(&mut request);
            let sent = async {
                send.try_send_request(request).await.map_err(|error| {
                    let is_unsent = error.message().is_some();
                    Error::of_hyper(error.into_error(), false).unprocessed(is_unsent)
                })
            };
            // If there is an error, the connection is dropped.
            let response = limit.guard(sent).await?;
            let refused = expectation.and_then(|it| it.on_response(response.status()));
            head(timing);
            let home = Home {
                pool: Arc::downgrade(&core.pool),
                key: key.clone(),
                established,
            };
            response.map(|body| Body::http1(body, home, timing.clone()).until_its_end(refused))
        }
    };
    let mut response = response;
    let (version, status) = (response.version(), response.status());
    received::check(version, status, response.headers(), asked_upgrade)?;
    response.extensions_mut().insert(timing.clone());
    Ok(response)
}

/// Pauses between attempts to connect beside a silent connection, which double.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
