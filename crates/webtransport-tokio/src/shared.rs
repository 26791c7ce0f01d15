//! The state that the handles and the task of one session share.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use courser_base::{Mutex, Time};
use courser_http3_tokio::{Code, Datagrams, SessionStreams};
use courser_quic::hooks::ConnectionHooks as _;
use courser_quic::telemetry::{Http3Record, SessionChange};
use courser_quic::{Connection, StreamId, runtime};
use courser_webtransport::{
    self as sans, Agreement, CloseReason, Closed, SessionEvent, SessionId, StreamReset, code,
};
use courser_wire::Direction;
use http::{HeaderValue, Uri};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use crate::error::var_int;
use crate::monitor::{Listed, Place, SessionFacts};
use crate::stats::{Counters, SessionStats};
use crate::stream_hasher::StreamHasher;
use crate::table::Table;

/// The state of one session.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: SessionId,
    pub(crate) agreement: Agreement,
    pub(crate) protocol: Option<String>,
    pub(crate) uri: Uri,
    /// The page that has opened the session.
    pub(crate) page: Option<HeaderValue>,
    pub(crate) counters: Counters,
    pub(crate) streams: SessionStreams,
    pub(crate) datagrams: Datagrams,
    /// Whether streams and bytes need credit of the session.
    pub(crate) has_flow_control: bool,
    pub(crate) table: Arc<Table>,
    core: Mutex<Core>,
    /// Notified when further streams may be opened.
    allowed: Notify,
    /// Notified when a fact about the end becomes known. Smaller than a channel for each of them.
    changed: Notify,
    /// True once the reason of the end is known, so that streams need not take the lock for it.
    has_ended: AtomicBool,
    /// Tasks that open streams, by direction, one after the other.
    opening: [Semaphore; 2],
}

#[derive(Debug)]
struct Core {
    session: sans::Session,
    /// The task that writes and reads the CONNECT stream.
    driver: Option<Waker>,
    /// The halves of streams that the application has, by stream.
    open: HashMap<StreamId, u8, StreamHasher>,
    /// The tasks that wait for credit for bytes, by stream.
    writers: BTreeMap<StreamId, Waker>,
    /// Credit for streams whose opening was given up, bidirectional and unidirectional.
    spare: [u64; 2],
    /// The place among the sessions of all connections, until the end.
    place: Option<Place>,
    is_draining: bool,
    /// The reason of the end, once the tables of the connection have forgotten the session.
    closed: Option<Closed>,
    /// Whether the peer has acknowledged the end of the session, once that is known.
    delivered: Option<bool>,
}

/// The handle of an application. When the last one is dropped, the session is closed.
#[derive(Debug)]
pub(crate) struct Handle(pub(crate) Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.close(CloseReason::default());
    }
}

/// What a new session has from its connection and its request.
pub(crate) struct Origin {
    pub(crate) agreement: Agreement,
    pub(crate) protocol: Option<String>,
    pub(crate) uri: Uri,
    pub(crate) page: Option<HeaderValue>,
    pub(crate) place: Place,
    pub(crate) streams: SessionStreams,
    pub(crate) datagrams: Datagrams,
    pub(crate) table: Arc<Table>,
}

impl Shared {
    pub(crate) fn new(mut session: sans::Session, id: SessionId, origin: Origin) -> Arc<Self> {
        let quic = origin.streams.extension().quic();
        session.set_probe_timeout(2 * quic.rtt() + MAX_ACK_DELAY);
        origin.datagrams.accept();
        origin
            .datagrams
            .set_receive_limits(RECEIVED_DATAGRAMS, RECEIVED_BYTES);
        let mut place = origin.place;
        let shared = Arc::new(Self {
            id,
            agreement: origin.agreement,
            protocol: origin.protocol,
            uri: origin.uri,
            page: origin.page,
            counters: Counters::default(),
            streams: origin.streams,
            datagrams: origin.datagrams,
            has_flow_control: session.has_flow_control(),
            table: origin.table,
            core: Mutex::new(Core {
                session,
                driver: None,
                open: HashMap::default(),
                writers: BTreeMap::new(),
                spare: [0; 2],
                place: None,
                is_draining: false,
                closed: None,
                delivered: None,
            }),
            allowed: Notify::new(),
            changed: Notify::new(),
            has_ended: AtomicBool::new(false),
            opening: [Semaphore::new(1), Semaphore::new(1)],
        });
        let listed: Weak<Self> = Arc::downgrade(&shared);
        place.on_opened(listed, shared.agreement.dialect);
        shared.core.hold().place = Some(place);
        shared.record(|| SessionChange::Opened {
            dialect: shared.agreement.dialect.name(),
            protocol: shared.protocol.clone(),
        });
        shared
    }

    /// Passes a change of the session to the sinks of its connection, if there are any.
    fn record(&self, change: impl FnOnce() -> SessionChange) {
        self.streams
            .extension()
            .record(|| Http3Record::SessionUpdated {
                session: self.id.value(),
                change: change(),
            });
    }

    fn record_end(&self, closed: &Closed) {
        self.record(|| SessionChange::Closed {
            by_peer: match closed {
                Closed::ConnectionLost => None,
                Closed::Violation(_) => Some(false),
                closed => Some(closed.is_by_peer()),
            },
            code: closed.reason().map(|reason| reason.code.0),
            reason: match closed.reason() {
                Some(reason) => reason.message.clone(),
                None => closed.to_string(),
            },
            streams: self.counters.streams(),
            datagrams_dropped: self.datagrams.dropped(),
        });
    }

    pub(crate) fn stats(&self) -> SessionStats {
        self.counters.stats(self.quic(), self.datagrams.dropped())
    }

    pub(crate) fn quic(&self) -> &Connection {
        self.streams.extension().quic()
    }

    /// Changes the session, and tells all tasks what has changed. The task of the CONNECT stream runs only if it has
    /// something to do: reads and writes of streams change credit, and seldom lead to a capsule.
    pub(crate) fn update<R>(&self, change: impl FnOnce(&mut sans::Session, Time) -> R) -> R {
        let now = self.table.now();
        let mut core = self.core.hold();
        let timeout = core.session.next_timeout();
        let result = change(&mut core.session, now);
        let session = &core.session;
        let is_due = session.has_output() || session.is_over() || session.next_timeout() != timeout;
        let mut woken: Vec<Waker> = Vec::new();
        if is_due {
            woken.extend(core.driver.take());
        }
        let mut ended = None;
        let (mut is_allowed, mut is_draining) = (false, false);
        while let Some(event) = core.session.poll_event() {
            match event {
                SessionEvent::Draining => is_draining = true,
                SessionEvent::StreamsAllowed(_) => is_allowed = true,
                SessionEvent::DataAllowed => {
                    woken.extend(std::mem::take(&mut core.writers).into_values());
                }
                SessionEvent::Closed(closed) => {
                    woken.extend(std::mem::take(&mut core.writers).into_values());
                    ended = Some((closed, std::mem::take(&mut core.open), core.place.take()));
                }
            }
        }
        drop(core);
        if is_draining {
            self.record(|| SessionChange::Draining { by_peer: true });
            self.core.hold().is_draining = true;
            self.changed.notify_waiters();
        }
        if let Some((closed, open, place)) = ended {
            self.table.on_ended(self.id);
            self.record_end(&closed);
            if let Some(place) = place {
                place.on_ended(self.counters.streams(), self.datagrams.dropped());
            }
            self.core.hold().closed = Some(closed);
            self.has_ended.store(true, Release);
            self.changed.notify_waiters();
            self.streams.end();
            for stream in open.into_keys() {
                self.quic()
                    .abort_stream(stream, var_int(code::SESSION_GONE));
            }
            is_allowed = true;
        }
        if is_allowed {
            self.allowed.notify_waiters();
        }
        woken.into_iter().for_each(Waker::wake);
        result
    }

    /// Reads from the session, with the task of the CONNECT stream waiting for the next change.
    pub(crate) fn drive<R>(
        &self,
        cx: &Context<'_>,
        step: impl FnOnce(&mut sans::Session) -> R,
    ) -> R {
        let waker = cx.waker().clone();
        let mut core = self.core.hold();
        let earlier = core.driver.replace(waker);
        let result = step(&mut core.session);
        drop(core);
        drop(earlier);
        result
    }

    pub(crate) fn close(&self, reason: CloseReason) {
        self.update(|session, now| session.close(now, reason));
    }

    pub(crate) fn drain(&self) {
        self.record(|| SessionChange::Draining { by_peer: false });
        self.update(|session, _| session.drain());
    }

    pub(crate) fn reset(&self, code: Code) {
        self.update(|session, now| session.reset(now, code));
    }

    pub(crate) fn ended(&self) -> Option<Closed> {
        match self.has_ended.load(Acquire) {
            true => self.core.hold().closed.clone(),
            false => None,
        }
    }

    pub(crate) async fn closed(&self) -> Closed {
        self.until(|core| core.closed.clone()).await
    }

    pub(crate) async fn draining(&self) {
        self.until(|core| core.is_draining.then_some(())).await;
    }

    /// Records whether the peer has acknowledged the end of the session.
    pub(crate) fn on_delivered(&self, is_delivered: bool) {
        self.core.hold().delivered = Some(is_delivered);
        self.changed.notify_waiters();
    }

    /// Waits until it is known whether the peer has acknowledged the end of the session.
    pub(crate) async fn delivered(&self) -> bool {
        self.until(|core| core.delivered).await
    }

    /// Waits for a fact about the end.
    async fn until<T>(&self, fact: impl Fn(&Core) -> Option<T>) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let known = fact(&self.core.hold());
            if let Some(known) = known {
                return known;
            }
            changed.await;
        }
    }

    /// Adds the halves of a stream to those that end with the session. Returns false if it has ended.
    pub(crate) fn add_stream(&self, stream: StreamId, halves: u8) -> bool {
        let mut core = self.core.hold();
        let is_open = core.session.closed().is_none();
        if is_open {
            core.open.insert(stream, halves);
        }
        is_open
    }

    /// Removes a half of a stream. A stream of the peer without any has ended, and another one may be opened.
    pub(crate) fn remove_half(&self, stream: StreamId) {
        let mut core = self.core.hold();
        let Some(halves) = core.open.get_mut(&stream) else {
            return;
        };
        *halves -= 1;
        if *halves > 0 {
            return;
        }
        core.open.remove(&stream);
        // Not before: the other half may be the one that waits.
        core.writers.remove(&stream);
        drop(core);
        if self.has_flow_control && stream.initiator() != self.quic().side() {
            self.update(|session, _| session.on_stream_ended(stream.direction()));
        }
    }

    /// Returns credit for bytes of this stream, at most `wanted`. If there is none, the task waits for it.
    pub(crate) fn reserve(&self, cx: &Context<'_>, stream: StreamId, wanted: usize) -> usize {
        if !self.has_flow_control {
            return wanted;
        }
        let mut granted = self.update(|session, _| session.reserve_data(wanted as u64));
        if granted == 0 {
            let waker = cx.waker().clone();
            let mut core = self.core.hold();
            // Credit may have arrived meanwhile.
            granted = core.session.reserve_data(wanted as u64);
            if granted == 0 && core.session.closed().is_none() {
                core.writers.insert(stream, waker);
            }
        }
        usize::try_from(granted).unwrap_or(wanted)
    }

    /// Returns credit for bytes that were not sent.
    pub(crate) fn give_back(&self, bytes: usize) {
        if self.has_flow_control && bytes > 0 {
            self.update(|session, _| session.give_back_data(bytes as u64));
        }
    }

    /// Takes credit back for bytes of streams that were reset before these were sent.
    pub(crate) fn take_unsent(&self) {
        if self.has_flow_control {
            let bytes = self.quic().take_unsent_of_session(self.id.stream());
            self.give_back(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
    }

    /// Counts bytes of the peer that the application has read.
    pub(crate) fn on_read(&self, bytes: usize) {
        if self.has_flow_control && bytes > 0 {
            let rtt = self.quic().rtt();
            self.update(|session, now| {
                // An error has ended the session, which the next read tells.
                if session.on_data(now, bytes as u64).is_ok() {
                    session.on_consumed(now, rtt, bytes as u64);
                }
            });
        }
    }

    /// Counts the bytes of a stream of which the application has read `read`, and reads no more.
    pub(crate) fn on_reset(&self, final_size: u64, header: u64, read: u64) {
        let reset = StreamReset {
            final_size,
            header,
            counted: read,
            consumed: read,
        };
        // An error has ended the session.
        let _ = self.update(|session, now| session.on_stream_reset(now, reset));
    }

    /// Takes credit for a stream in this direction, and waits for it if there is none. `None` without flow control.
    pub(crate) async fn stream_credit(
        &self,
        direction: Direction,
    ) -> Result<Option<Credit<'_>>, Closed> {
        if let Some(closed) = self.ended() {
            return Err(closed);
        }
        if !self.has_flow_control {
            return Ok(None);
        }
        if let Some(credit) = self.take_credit(direction) {
            return Ok(Some(credit));
        }
        // Boxed, because few streams have to wait, and the future of each would reserve memory for it.
        Box::pin(self.wait_for_credit(direction)).await.map(Some)
    }

    fn take_credit(&self, direction: Direction) -> Option<Credit<'_>> {
        let is_taken = self.take_spare(direction)
            || self
                .update(|session, _| session.open_stream(direction))
                .is_ok();
        // Not `then_some`: credit that is dropped unused goes to the next stream.
        is_taken.then(|| Credit {
            shared: self,
            direction,
            is_used: false,
        })
    }

    async fn wait_for_credit(&self, direction: Direction) -> Result<Credit<'_>, Closed> {
        loop {
            let mut allowed = std::pin::pin!(self.allowed.notified());
            allowed.as_mut().enable();
            if let Some(closed) = self.ended() {
                return Err(closed);
            }
            if let Some(credit) = self.take_credit(direction) {
                return Ok(credit);
            }
            allowed.await;
        }
    }

    /// Waits for the turn of the session to open a stream. When the peer allows too few streams for all, the sessions of
    /// the connection open one each in turns, whatever the number of tasks that wait.
    pub(crate) async fn turn_to_open(&self, direction: Direction) -> [SemaphorePermit<'_>; 2] {
        let (own, all) = (
            &self.opening[index(direction)],
            &self.table.opening[index(direction)],
        );
        // Both are fair, so that nobody waits if there is a permit, and neither is ever closed.
        if let Ok(own) = own.try_acquire()
            && let Ok(all) = all.try_acquire()
        {
            return [all, own];
        }
        // Boxed like other waits.
        Box::pin(async {
            let own = own.acquire().await.expect("it is never closed");
            let all = all.acquire().await.expect("it is never closed");
            [all, own]
        })
        .await
    }

    fn take_spare(&self, direction: Direction) -> bool {
        let spare = &mut self.core.hold().spare[index(direction)];
        let has_any = *spare > 0;
        *spare -= u64::from(has_any);
        has_any
    }
}

impl Listed for Shared {
    fn streams(&self) -> u64 {
        self.counters.streams()
    }

    fn datagrams_dropped(&self) -> u64 {
        self.datagrams.dropped()
    }

    fn facts(&self) -> SessionFacts {
        let began = self.core.hold().place.as_ref().map(|place| place.began);
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        SessionFacts {
            peer: self.quic().remote_address(),
            uri: without_query(&self.uri),
            origin: self.page.as_ref().map(text),
            protocol: self.protocol.clone(),
            dialect: self.agreement.dialect,
            age: began.map_or(Duration::ZERO, |began| runtime::now() - began),
            stats: self.stats(),
        }
    }

    fn close(&self, reason: CloseReason) {
        Self::close(self, reason);
    }
}

/// Credit for a stream, which the next stream gets if it is not used.
pub(crate) struct Credit<'a> {
    shared: &'a Shared,
    direction: Direction,
    is_used: bool,
}

impl Credit<'_> {
    pub(crate) fn on_opened(mut self) {
        self.is_used = true;
    }
}

impl Drop for Credit<'_> {
    fn drop(&mut self) {
        if !self.is_used {
            self.shared.core.hold().spare[index(self.direction)] += 1;
            self.shared.allowed.notify_waiters();
        }
    }
}

/// Returns the URI without its query, which may have credentials.
fn without_query(uri: &Uri) -> String {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    format!("https://{authority}{}", uri.path())
}

const fn index(direction: Direction) -> usize {
    match direction {
        Direction::Bidirectional => 0,
        Direction::Unidirectional => 1,
    }
}

/// The usual delay of acknowledgements (RFC 9000 §18.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);
/// Datagrams of a session that wait for the application, and their bytes (limit K587).
const RECEIVED_DATAGRAMS: usize = 1024;
const RECEIVED_BYTES: usize = 1024 * 1024;
