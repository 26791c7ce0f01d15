//! Snapshots of all connections, shared by requests within a second.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::server::ServerHandle;
use courser_base::Mutex;
use serde_json::{Value, json};

use super::observer::{Observer, ReaderGuard};
use super::rows::{Before, Row, Selection};

/// The state of all open connections at one time.
#[derive(Debug)]
pub(super) struct Snapshot {
    at: Instant,
    rows: Vec<Row>,
}

impl Snapshot {
    /// Examines each connection. Rates and limits are computed since `earlier`, if given.
    fn take(handle: &ServerHandle, observer: &Observer, earlier: Option<&Self>) -> Self {
        let mut rows = Vec::new();
        handle.for_each_connection(|summary| {
            let id = summary.peer.original_destination();
            let limit_times = id.and_then(|id| observer.limits_of(&id));
            rows.push(Row::new(&summary, limit_times));
        });
        let mut taken = Self {
            at: Instant::now(),
            rows,
        };
        if let Some(earlier) = earlier {
            taken.measure(earlier);
        }
        taken
    }

    fn measure(&mut self, earlier: &Self) {
        let passed = self.at.saturating_duration_since(earlier.at);
        let before: HashMap<u64, Before> =
            earlier.rows.iter().map(|it| (it.id, it.before())).collect();
        for row in &mut self.rows {
            if let Some(before) = before.get(&row.id) {
                row.measure(before, passed);
            }
        }
    }

    /// Creates a snapshot of these rows.
    #[cfg(test)]
    pub(super) fn of(rows: Vec<Row>) -> Self {
        Self {
            at: Instant::now(),
            rows,
        }
    }

    /// Returns the selected connections, and the number of connections per limit, as JSON.
    pub(super) fn json(&self, selection: &Selection) -> Value {
        let (page, matching) = selection.of(&self.rows);
        let mut limits: BTreeMap<&str, u64> = BTreeMap::new();
        for limit in self.rows.iter().filter_map(Row::limit) {
            *limits.entry(limit).or_default() += 1;
        }
        json!({
            "total": self.rows.len(),
            "matching": matching,
            "offset": selection.offset,
            "limits": limits,
            "connections": page.iter().map(|row| row.json()).collect::<Vec<_>>(),
        })
    }
}

/// Takes snapshots on demand, at most one a second for all requests together.
#[derive(Debug)]
pub(super) struct Snapshots {
    handle: ServerHandle,
    observer: Observer,
    state: Mutex<SnapshotState>,
}

#[derive(Debug, Default)]
struct SnapshotState {
    last: Option<Arc<Snapshot>>,
    last_request: Option<Instant>,
    /// Present while requests read snapshots.
    reader: Option<ReaderGuard>,
}

impl Snapshots {
    pub(super) fn new(handle: ServerHandle, observer: Observer) -> Arc<Self> {
        Arc::new(Self {
            handle,
            observer,
            state: Mutex::default(),
        })
    }

    /// Returns a snapshot that is at most a second old. Examines all connections if there is none, which may
    /// block for milliseconds. Snapshots are discarded after [`KEPT`] without a call.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub(super) fn latest(self: &Arc<Self>) -> Arc<Snapshot> {
        let mut state = self.state.lock();
        state.last_request = state.last_request.max(Some(Instant::now()));
        if state.reader.is_none() {
            state.reader = Some(self.observer.add_reader());
            let snapshots = Arc::clone(self);
            tokio::spawn(async move { while snapshots.wait_or_discard().await {} });
        }
        match &state.last {
            Some(last) if last.at.elapsed() < FRESH => last.clone(),
            last => {
                let taken = Snapshot::take(&self.handle, &self.observer, last.as_deref());
                let taken = Arc::new(taken);
                state.last = Some(taken.clone());
                taken
            }
        }
    }

    /// Returns this snapshot from now on, for tests.
    #[cfg(test)]
    pub(super) fn fix(self: &Arc<Self>, mut snapshot: Snapshot) {
        self.latest();
        // A time in the future, so that it neither ages nor is discarded during the test.
        snapshot.at += Duration::from_secs(3600);
        let mut state = self.state.lock();
        state.last_request = Some(snapshot.at);
        state.last = Some(Arc::new(snapshot));
    }

    /// Waits for half of [`KEPT`]. Returns false, and discards the snapshot, if none was requested for [`KEPT`].
    async fn wait_or_discard(&self) -> bool {
        tokio::time::sleep(KEPT / 2).await;
        let mut state = self.state.lock();
        let is_used = state.last_request.is_some_and(|at| at.elapsed() < KEPT);
        if !is_used {
            *state = SnapshotState::default();
        }
        is_used
    }
}

/// Age up to which a snapshot is reused.
const FRESH: Duration = Duration::from_millis(900);
/// Time without requests after which snapshots are discarded.
const KEPT: Duration = Duration::from_secs(6);
