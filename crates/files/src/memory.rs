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
use crate::recent_files::RecentFiles;
use crate::representation::Representation;
use crate::serve_error::{Blocking, ServeError};
use crate::watch::Watched;

/// The parts of a request that select a cached file.
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

/// A file in memory, in the form in which it is sent.
#[derive(Debug)]
pub(crate) struct CachedFile {
    pub(crate) representation: Representation,
    /// Header fields of a response with the whole content.
    pub(crate) headers: HeaderMap,
    pub(crate) content: Bytes,
    /// The generation of the root in which it was found.
    pub(crate) generation: u64,
    /// The [`Moment`](crate::age::Moment) of the last check on disk.
    pub(crate) checked: AtomicU64,
    pub(crate) watched: Option<Watched>,
}

impl CachedFile {
    /// Compresses the content if its representation requires it and the result is smaller.
    pub(crate) fn new(
        mut representation: Representation,
        mut content: Bytes,
        blocking: Blocking,
    ) -> Result<Self, ServeError> {
        let coding = representation.compressed;
        if coding != Coding::Identity {
            if blocking == Blocking::Forbidden && content.len() as u64 > compress::MAX_INLINE_LEN {
                return Err(ServeError::WouldBlock);
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
    cached: Option<Cache<Key, Arc<CachedFile>, Weights, RandomState>>,
    /// Size in bytes of the largest file that is cached.
    largest: u64,
    recent_files: RecentFiles,
}

#[derive(Clone, Debug)]
struct Weights;

impl Weighter<Key, Arc<CachedFile>> for Weights {
    fn weight(&self, key: &Key, cached: &Arc<CachedFile>) -> u64 {
        (OVERHEAD + key.path.len() + cached.content.len()) as u64
    }
}

impl Memory {
    /// Creates a memory with a budget in bytes. With a budget of 0 no file is cached.
    pub(crate) fn new(budget: u64) -> Self {
        let items = usize::try_from(budget / EXPECTED).unwrap_or(usize::MAX);
        let cached = (budget > 0).then(|| {
            Cache::with(
                items.clamp(16, 1 << 20),
                budget,
                Weights,
                RandomState::default(),
                DefaultLifecycle::default(),
            )
        });
        Self {
            cached,
            // The cache has shards with separate budgets, and each of them must fit
            // several files.
            largest: LARGEST.min(budget / 64),
            recent_files: RecentFiles::new(items.saturating_mul(4)),
        }
    }

    /// Returns the size in bytes of the largest file that is cached.
    pub(crate) const fn largest(&self) -> u64 {
        self.largest
    }

    /// Records a request for a file that is not cached. Returns true if the file should be cached.
    pub(crate) fn record_request(&self, path: &str, ranking: Ranking) -> bool {
        self.cached.is_some() && self.recent_files.record(path, ranking)
    }

    pub(crate) fn get(&self, path: &str, ranking: Ranking) -> Option<Arc<CachedFile>> {
        self.cached.as_ref()?.get(&Borrowed { path, ranking })
    }

    pub(crate) fn insert(&self, path: &str, ranking: Ranking, cached: Arc<CachedFile>) {
        if let Some(all) = &self.cached
            && path.len() <= LONGEST_PATH
        {
            let path = path.into();
            all.insert(Key { path, ranking }, cached);
        }
    }

    pub(crate) fn remove(&self, path: &str, ranking: Ranking) {
        if let Some(cached) = &self.cached {
            cached.remove(&Borrowed { path, ranking });
        }
    }

    /// Returns the number of bytes and of files that are cached.
    pub(crate) fn size(&self) -> (u64, usize) {
        let cached = self.cached.as_ref();
        cached.map_or((0, 0), |cached| (cached.weight(), cached.len()))
    }
}

/// Memory of a cached file in bytes, without its content: fields, keys and tables, as measured with
/// 100 000 files.
const OVERHEAD: usize = 1500;
/// Estimated memory of a cached file in bytes, which determines the capacity of the table.
const EXPECTED: u64 = 8 * 1024;
/// The largest file that is kept, in bytes. Larger files are read as they are sent, in pieces that
/// stay in the processor's cache.
const LARGEST: u64 = 256 * 1024;
const LONGEST_PATH: usize = 1024;
