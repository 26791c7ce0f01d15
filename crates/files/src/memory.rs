//! Files kept in memory.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use foldhash::fast::RandomState;
use http::HeaderMap;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, Weighter};

use crate::age::Moment;
use crate::coding::{Coding, Ranking};
use crate::compress;
use crate::lately::Lately;
use crate::representation::Representation;
use crate::trouble::{Patience, Trouble};
use crate::watch::Watched;

/// The parts of a request that select an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    path: Box<str>,
    ranking: Ranking,
}

#[derive(Clone, Copy, Debug)]
struct Borrowed<'a> {
    path: &'a str,
    ranking: Ranking,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&*self.path, self.ranking).hash(state);
    }
}

impl Hash for Borrowed<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.path, self.ranking).hash(state);
    }
}

impl Equivalent<Key> for Borrowed<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        *self.path == *key.path && self.ranking == key.ranking
    }
}

/// A file kept in memory.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) representation: Representation,
    /// Header fields of a response with the whole content.
    pub(crate) headers: HeaderMap,
    pub(crate) content: Bytes,
    /// The generation of the root in which it was found.
    pub(crate) generation: u64,
    /// The moment of the last check on disk.
    pub(crate) checked: AtomicU64,
    pub(crate) watched: Option<Watched>,
}

impl Kept {
    /// Compresses the content if its representation requires it and it gets smaller.
    pub(crate) fn new(
        mut representation: Representation,
        mut content: Bytes,
        patience: Patience,
    ) -> Result<Self, Trouble> {
        let coding = representation.compressed;
        if coding != Coding::Identity {
            if patience == Patience::Never && content.len() as u64 > compress::SOON {
                return Err(Trouble::WouldBlock);
            }
            match compress::whole(&content, coding) {
                Some(compressed) => content = compressed,
                None => representation.compressed = Coding::Identity,
            }
        }
        Ok(Self {
            headers: representation.headers(Some(content.len() as u64)),
            representation,
            content,
            generation: 0,
            checked: AtomicU64::new(0),
            watched: None,
        })
    }

    /// Returns a copy without origin, for a file that was found unchanged.
    pub(crate) fn fresh_copy(&self) -> Self {
        Self {
            representation: self.representation.clone(),
            headers: self.headers.clone(),
            content: self.content.clone(),
            generation: 0,
            checked: AtomicU64::new(0),
            watched: None,
        }
    }

    /// Sets the generation of the root, the moment and the watch with which the file was found on
    /// disk.
    pub(crate) fn with_origin(
        self,
        generation: u64,
        now: Moment,
        watched: Option<Watched>,
    ) -> Self {
        Self {
            generation,
            checked: AtomicU64::new(now.get()),
            watched,
            ..self
        }
    }
}

/// Files by path, within a memory budget.
#[derive(Debug)]
pub(crate) struct Memory {
    kept: Option<Cache<Key, Arc<Kept>, Weights, RandomState>>,
    /// Size in bytes of the largest file that is kept.
    largest: u64,
    lately: Lately,
}

#[derive(Clone, Debug)]
struct Weights;

impl Weighter<Key, Arc<Kept>> for Weights {
    fn weight(&self, key: &Key, kept: &Arc<Kept>) -> u64 {
        (OVERHEAD + key.path.len() + kept.content.len()) as u64
    }
}

impl Memory {
    /// Creates a memory with this budget. With a budget of 0 it keeps nothing.
    pub(crate) fn new(budget: u64) -> Self {
        let items = usize::try_from(budget / EXPECTED).unwrap_or(usize::MAX);
        let kept = (budget > 0).then(|| {
            Cache::with(
                items.clamp(16, 1 << 20),
                budget,
                Weights,
                RandomState::default(),
                DefaultLifecycle::default(),
            )
        });
        Self {
            kept,
            // The cache has parts with budgets of their own, and each of them needs room for
            // several files.
            largest: LARGEST.min(budget / 64),
            lately: Lately::new(items.saturating_mul(4)),
        }
    }

    /// Returns the size in bytes of the largest file that is kept.
    pub(crate) const fn largest(&self) -> u64 {
        self.largest
    }

    /// Records a request for a file that is not kept. Returns true if the file is worth keeping.
    pub(crate) fn note(&self, path: &str, ranking: Ranking) -> bool {
        self.kept.is_some() && self.lately.note(path, ranking)
    }

    pub(crate) fn get(&self, path: &str, ranking: Ranking) -> Option<Arc<Kept>> {
        self.kept.as_ref()?.get(&Borrowed { path, ranking })
    }

    pub(crate) fn keep(&self, path: &str, ranking: Ranking, kept: Arc<Kept>) {
        if let Some(all) = &self.kept
            && path.len() <= LONGEST_PATH
        {
            let path = path.into();
            all.insert(Key { path, ranking }, kept);
        }
    }

    pub(crate) fn remove(&self, path: &str, ranking: Ranking) {
        if let Some(kept) = &self.kept {
            kept.remove(&Borrowed { path, ranking });
        }
    }

    /// Returns the number of bytes and of files that are kept.
    pub(crate) fn size(&self) -> (u64, usize) {
        let kept = self.kept.as_ref();
        kept.map_or((0, 0), |kept| (kept.weight(), kept.len()))
    }
}

/// Memory of a file without content in bytes: fields, keys and tables, as measured with 100 000
/// files.
const OVERHEAD: usize = 1500;
/// Estimated memory of a file in bytes, for the size of the table.
const EXPECTED: u64 = 8 * 1024;
/// The largest file that is kept, in bytes. Larger files are read as they are sent, in pieces that
/// stay in the processor's cache.
const LARGEST: u64 = 256 * 1024;
const LONGEST_PATH: usize = 1024;
