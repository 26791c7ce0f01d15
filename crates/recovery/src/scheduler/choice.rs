//! The interface of path schedulers.

use std::fmt;
use std::time::Duration;

use courser_base::Time;

/// Chooses the path of the next batch of a connection with several paths (RFC 10069 §5.2).
///
/// It is asked once per batch, so that all datagrams of a batch take one path, and only for data: acknowledgements,
/// probes and challenges belong to their path. Paths that the peer does not want, and those that do not answer, are not
/// among the choices.
///
/// ```
/// use courser_base::Time;
/// use courser_recovery::{PathChoice, PathDemand, PathScheduler, PathView};
///
/// /// Sends on the first path that has room.
/// #[derive(Debug)]
/// struct First;
///
/// impl PathScheduler for First {
///     fn choose(&mut self, now: Time, paths: &[PathView], _: &PathDemand) -> PathChoice {
///         let first = paths.iter().position(|path| path.is_ready(now));
///         first.map_or(PathChoice::Wait, PathChoice::Send)
///     }
/// }
/// ```
///
/// The method is called while the lock of the endpoint is held: it takes constant time, and uses neither the endpoint nor
/// its connections.
pub trait PathScheduler: fmt::Debug + Send {
    /// Returns the index of the path for the next batch. It is asked again if that path turns out to
    /// permit nothing; the view then has no room, or the time of the pacer.
    fn choose(&mut self, now: Time, paths: &[PathView], demand: &PathDemand) -> PathChoice;
}

/// Creates the scheduler of each connection.
pub trait PathSchedulerFactory: fmt::Debug + Send + Sync {
    /// Creates the scheduler of a connection.
    fn make(&self) -> Box<dyn PathScheduler>;
}

/// The state of a path that a scheduler compares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathView {
    /// The ID of the path.
    pub id: u32,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The bytes that congestion control permits now.
    pub room: u64,
    /// The congestion window in bytes.
    pub window: u64,
    /// True while the window doubles each round trip.
    pub is_growing: bool,
    /// The bytes of the next datagram: of a full one, unless little data waits.
    pub size: u16,
    /// The time from which on the pacer permits the next batch.
    pub ready_at: Time,
}

impl PathView {
    /// Returns true if the next datagram may be sent now.
    pub fn is_ready(&self, now: Time) -> bool {
        self.room >= u64::from(self.size) && self.ready_at <= now
    }

    /// Returns the time that `bytes` take to be sent, at a window per round trip.
    pub fn time_to_send(&self, bytes: u64) -> Duration {
        let nanos = u128::from(bytes) * self.rtt.as_nanos() / u128::from(self.window.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the bytes that are sent in `time`, at a window per round trip, which doubles while it grows.
    pub fn sent_in(&self, time: Duration) -> u64 {
        let rtt = self.rtt.as_nanos().max(1);
        let doublings = if self.is_growing {
            time.as_nanos().div_ceil(rtt)
        } else {
            0
        };
        let shift = u32::try_from(doublings)
            .unwrap_or(MAX_DOUBLINGS)
            .min(MAX_DOUBLINGS);
        let bytes = (u128::from(self.window) << shift).saturating_mul(time.as_nanos()) / rtt;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// The data that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathDemand {
    /// The bytes that are expected to be sent before the connection is idle again.
    pub bytes: u64,
    /// The bytes that the peer permits, by flow control, beyond those sent so far.
    pub credit: u64,
}

/// The choice of a scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathChoice {
    /// The next batch is sent on the path with this index.
    Send(usize),
    /// Nothing is sent until the state of a path changes.
    Wait,
}

/// Round trips for which a window is expected to double.
const MAX_DOUBLINGS: u32 = 20;
