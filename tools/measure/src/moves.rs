//! Moves of connections to other sockets during a measurement, and the stalls that they cause.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::Endpoint;
use courser_base::{Mutex, with_port};
use courser_units::seconds;
use serde::Serialize;
use tokio::task::JoinHandle;

use crate::times::{Latency, Times};

/// The counts of moves in a measurement, and their stalls.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct MovesReport {
    /// Moves for which a new socket was opened.
    pub count: u64,
    /// Moves that failed because no socket could be opened.
    pub failed: u64,
    /// The distribution over moves of the longest time without bytes in a direction until the next move.
    pub stall: Option<Latency>,
}

impl fmt::Display for MovesReport {
    /// Writes `9, stalls p50 3.20 ms  p90 8.00 ms  max 12.0 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.count)?;
        if self.failed > 0 {
            write!(f, ", {} failed", self.failed)?;
        }
        let Some(stall) = self.stall else {
            return Ok(());
        };
        let [p50, p90, max] =
            [stall.p50_us, stall.p90_us, stall.max_us].map(|micros| seconds(micros / 1e6));
        write!(f, ", stalls p50 {p50}  p90 {p90}  max {max}")
    }
}

/// The moves of all endpoints of a measurement.
#[derive(Debug)]
pub struct MovesTotal(Mutex<Totals>);

#[derive(Debug)]
struct Totals {
    /// The start of the measurement. Earlier moves do not count.
    since: Instant,
    count: u64,
    failed: u64,
    stalls: Times,
}

impl MovesTotal {
    /// Starts to count moves that happen at `since` or later.
    pub fn new(since: Instant) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Totals {
            since,
            count: 0,
            failed: 0,
            stalls: Times::new(),
        })))
    }

    /// Returns the counts so far. The time since the last move of an endpoint is included once its [`Moves`]
    /// is dropped.
    pub fn report(&self) -> MovesReport {
        let totals = self.0.lock();
        MovesReport {
            count: totals.count,
            failed: totals.failed,
            stall: totals.stalls.latency(),
        }
    }

    fn begin(&self, now: Instant) {
        let mut totals = self.0.lock();
        totals.since = now;
        (totals.count, totals.failed) = (0, 0);
        totals.stalls.clear();
    }

    fn on_move(&self, now: Instant) {
        let mut totals = self.0.lock();
        totals.count += u64::from(now >= totals.since);
    }

    fn on_failure(&self, now: Instant) {
        let mut totals = self.0.lock();
        totals.failed += u64::from(now >= totals.since);
    }

    fn on_stall(&self, moved: Instant, stall: Duration) {
        let mut totals = self.0.lock();
        if moved >= totals.since {
            totals.stalls.record(stall);
        }
    }
}

/// Measures the stalls after each move of the connections of one endpoint.
///
/// A stall is a time without bytes in a direction that has carried some. Between exchanges no bytes are
/// expected. Without calls of [`begin_exchange`](Self::begin_exchange), bytes are always expected.
#[derive(Debug)]
pub struct Moves {
    total: Arc<MovesTotal>,
    state: Mutex<StallState>,
}

#[derive(Debug)]
struct StallState {
    /// The number of exchanges in flight; bytes are expected while it is above zero.
    exchanges: usize,
    /// True if no bytes are expected.
    is_idle: bool,
    /// True for each direction that has carried bytes since the last idle time.
    is_used: [bool; 2],
    /// The time since the last move; `None` before the first one.
    window: Option<Window>,
}

/// The direction of bytes, as seen from the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the client to the server.
    Sent,
    /// From the server to the client.
    Received,
}

/// The time since a move.
#[derive(Clone, Copy, Debug)]
struct Window {
    began: Instant,
    /// The times of the last bytes in each direction, or of the move.
    last: [Instant; 2],
    longest: Duration,
    has_bytes: bool,
}

impl Window {
    const fn new(now: Instant) -> Self {
        Self {
            began: now,
            last: [now; 2],
            longest: Duration::ZERO,
            has_bytes: false,
        }
    }

    /// Ends a time without bytes, which started at `from`.
    fn end_gap(&mut self, from: Instant, now: Instant) {
        self.longest = self.longest.max(now.saturating_duration_since(from));
        self.has_bytes = true;
    }
}

impl Moves {
    /// Starts to observe the connections of one endpoint, and adds its moves to `total`.
    pub fn new(total: Arc<MovesTotal>) -> Arc<Self> {
        Arc::new(Self {
            total,
            state: Mutex::new(StallState {
                exchanges: 0,
                is_idle: false,
                is_used: [false; 2],
                window: None,
            }),
        })
    }

    /// Counts a move, and starts to measure the stall that follows.
    pub fn on_move(&self, now: Instant) {
        let mut state = self.state.lock();
        self.end_window(&mut state, now);
        state.window = Some(Window::new(now));
        self.total.on_move(now);
    }

    /// Counts a move that failed.
    pub fn on_failure(&self, now: Instant) {
        self.total.on_failure(now);
    }

    /// Records the arrival or departure of bytes.
    pub fn on_bytes(&self, direction: Direction, now: Instant) {
        let StallState {
            is_used, window, ..
        } = &mut *self.state.lock();
        // The first bytes of a response wait for the end of the request, which is not a stall.
        let is_answer = !is_used[direction as usize] && is_used.contains(&true);
        is_used[direction as usize] = true;
        let Some(window) = window else { return };
        let from = std::mem::replace(&mut window.last[direction as usize], now);
        if !is_answer {
            window.end_gap(from, now);
        }
    }

    /// Begins an exchange. Bytes are expected until the returned guard is dropped.
    pub fn begin_exchange(self: &Arc<Self>) -> ExchangeGuard {
        self.on_busy(Instant::now());
        ExchangeGuard(self.clone())
    }

    fn on_busy(&self, now: Instant) {
        let mut state = self.state.lock();
        state.exchanges += 1;
        if state.exchanges == 1 {
            (state.is_idle, state.is_used) = (false, [false; 2]);
            if let Some(window) = &mut state.window {
                window.last = [now; 2];
            }
        }
    }

    fn on_idle(&self, now: Instant) {
        let mut state = self.state.lock();
        state.exchanges = state.exchanges.saturating_sub(1);
        if state.exchanges == 0 {
            state.is_idle = true;
            if let Some(window) = &mut state.window {
                let from = window.last[0].max(window.last[1]);
                window.end_gap(from, now);
            }
        }
    }

    /// Discards the moves so far, because the measurement begins.
    pub fn begin(&self, now: Instant) {
        self.state.lock().window = None;
        self.total.begin(now);
    }

    /// Returns the moves of all endpoints since the beginning of the measurement.
    pub fn report(&self, now: Instant) -> MovesReport {
        self.end_window(&mut self.state.lock(), now);
        self.total.report()
    }

    fn end_window(&self, state: &mut StallState, now: Instant) {
        let Some(window) = state.window.take() else {
            return;
        };
        // Connections without bytes cannot stall.
        let stall = match (window.has_bytes, state.is_idle) {
            (true, _) => window.longest,
            (false, false) => now.saturating_duration_since(window.last[0].max(window.last[1])),
            (false, true) => return,
        };
        self.total.on_stall(window.began, stall);
    }
}

impl Drop for Moves {
    fn drop(&mut self) {
        self.end_window(&mut self.state.lock(), Instant::now());
    }
}

/// An exchange during which bytes are expected. Ends when dropped.
#[derive(Debug)]
pub struct ExchangeGuard(Arc<Moves>);

impl Drop for ExchangeGuard {
    fn drop(&mut self) {
        self.0.on_idle(Instant::now());
    }
}

/// A task that moves QUIC connections to a new socket at intervals. Stops when dropped.
#[derive(Debug)]
pub struct Mover(JoinHandle<()>);

impl Mover {
    /// Starts to move the connections of the endpoints that `endpoints` returns, once per `pause`.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub fn start(
        pause: Duration,
        moves: Arc<Moves>,
        endpoints: impl Fn() -> Vec<Endpoint> + Send + 'static,
    ) -> Self {
        Self(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(pause);
            ticks.tick().await;
            loop {
                ticks.tick().await;
                for endpoint in endpoints() {
                    match move_once(&endpoint) {
                        true => moves.on_move(Instant::now()),
                        // The connections remain on their socket.
                        false => moves.on_failure(Instant::now()),
                    }
                }
            }
        }))
    }
}

/// Moves the connections of an endpoint to another port of its address. Returns false if no socket can be
/// opened.
fn move_once(endpoint: &Endpoint) -> bool {
    let Ok(bound) = endpoint.local_addr() else {
        return false;
    };
    endpoint.rebind_to(with_port(bound, 0)).is_ok()
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests;
