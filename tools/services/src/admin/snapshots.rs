//! The connections of a server at one time, kept for all who look at it within a second.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::server::ServerHandle;
use courser_base::Mutex;
use serde_json::{Value, json};

use super::observer::{Attention, Observer};
use super::rows::{Before, Row, Selection};

/// All open connections at one time.
#[derive(Debug)]
pub(super) struct Snapshot {
    at: Instant,
    rows: Vec<Row>,
}

impl Snapshot {
    /// Looks at each connection. Rates and limits are those since `earlier`, where there is one.
    fn take(handle: &ServerHandle, observer: &Observer, earlier: Option<&Self>) -> Self {
        let mut rows = Vec::new();
        handle.for_each_connection(|summary| {
            let id = summary.peer.original_destination();
            let reading = id.and_then(|id| observer.limits_of(&id));
            rows.push(Row::new(&summary, reading));
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

    /// Makes a snapshot of these rows.
    #[cfg(test)]
    pub(super) fn of(rows: Vec<Row>) -> Self {
        Self {
            at: Instant::now(),
            rows,
        }
    }

    /// Returns the selected connections, and the number of connections by limit.
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

/// Takes snapshots when they are asked for, at most one each second however many ask.
#[derive(Debug)]
pub(super) struct Snapshots {
    handle: ServerHandle,
    observer: Observer,
    state: Mutex<SnapshotState>,
}

#[derive(Debug, Default)]
struct SnapshotState {
    last: Option<Arc<Snapshot>>,
    asked: Option<Instant>,
    /// Present while requests ask for snapshots.
    attention: Option<Attention>,
}

impl Snapshots {
    pub(super) fn new(handle: ServerHandle, observer: Observer) -> Arc<Self> {
        Arc::new(Self {
            handle,
            observer,
            state: Mutex::default(),
        })
    }

    /// Returns the connections as they were a second ago at most. Examines all of them, so it may block for
    /// milliseconds. Forgets everything when it was not called for a while.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub(super) fn latest(self: &Arc<Self>) -> Arc<Snapshot> {
        let mut state = self.state.lock();
        state.asked = state.asked.max(Some(Instant::now()));
        if state.attention.is_none() {
            state.attention = Some(self.observer.attend());
            let snapshots = Arc::clone(self);
            tokio::spawn(async move { while snapshots.wait_or_forget().await {} });
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

    /// Shows this snapshot from now on, and takes no other one.
    #[cfg(test)]
    pub(super) fn fix(self: &Arc<Self>, mut snapshot: Snapshot) {
        self.latest();
        // It does not grow old before the test ends, nor is it forgotten.
        snapshot.at += Duration::from_secs(3600);
        let mut state = self.state.lock();
        state.asked = Some(snapshot.at);
        state.last = Some(Arc::new(snapshot));
    }

    /// Returns true while snapshots are asked for, after a pause.
    async fn wait_or_forget(&self) -> bool {
        tokio::time::sleep(KEPT / 2).await;
        let mut state = self.state.lock();
        let is_wanted = state.asked.is_some_and(|at| at.elapsed() < KEPT);
        if !is_wanted {
            *state = SnapshotState::default();
        }
        is_wanted
    }
}

/// Age up to which a snapshot is shown again.
const FRESH: Duration = Duration::from_millis(900);
/// Time after which a snapshot that was not asked for is forgotten.
const KEPT: Duration = Duration::from_secs(6);
