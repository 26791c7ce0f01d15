//! Lookup of files in memory and on disk, and the responses with them.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use http::{Extensions, Response};

use crate::age::{self, Clock, Moment};
use crate::body::Body;
use crate::buffers;
use crate::builder::Builder;
use crate::coding::{Coding, Ranking};
use crate::compress;
use crate::content::{Reader, Source};
use crate::file_request::FileRequest;
use crate::find::{Finder, Found, FoundFile, FoundFolder};
use crate::kind;
use crate::memory::{CachedFile, Memory};
use crate::multipart::Multipart;
use crate::path::{self, Requested};
use crate::representation::Representation;
use crate::respond::{Content, not_acceptable, respond, with_slash};
use crate::root::Root;
use crate::serve_error::{Blocking, Effort, ServeError};
use crate::stats::Counters;
use crate::threads::{ThreadShare, Threads};
use crate::watch::{Watched, Watcher};

/// The state that all clones of a service share.
#[derive(Debug)]
pub(crate) struct OpenFolder {
    pub(crate) root: Arc<Root>,
    pub(crate) settings: Builder,
    pub(crate) memory: Memory,
    pub(crate) counters: Counters,
    pub(crate) clock: Clock,
    pub(crate) threads: Arc<Threads>,
    /// The [`Moment`] of the last call of the listener for an exhausted system.
    pub(crate) last_notice: AtomicU64,
    /// The generation of the root whose folders are watched.
    generation: AtomicU64,
    watcher: Option<Watcher>,
}

/// A response, or a folder for which the folder handler responds.
#[derive(Debug)]
pub(crate) enum Answer {
    Response(Response<Body>),
    Folder(FoundFolder),
}

impl OpenFolder {
    pub(crate) fn new(root: Root, settings: Builder) -> Self {
        Self {
            memory: Memory::new(settings.memory),
            counters: Counters::default(),
            last_notice: AtomicU64::default(),
            clock: Clock::start(),
            threads: Threads::new(settings.threads, settings.thread_wait),
            generation: AtomicU64::new(0),
            watcher: Watcher::new().filter(|_| settings.memory > 0),
            root: Arc::new(root),
            settings,
        }
    }

    /// Returns the share of the threads of the client of a request with these extensions.
    pub(crate) fn share_of(&self, extensions: &Extensions) -> ThreadShare {
        self.threads.share_of(self.settings.client_of(extensions))
    }

    /// Responds to a request.
    ///
    /// # Errors
    /// Returns an error if the response requires more effort, or if the file cannot be served.
    pub(crate) fn answer(
        &self,
        request: &FileRequest<'_>,
        effort: Effort,
    ) -> Result<Answer, ServeError> {
        if self.settings.compress && request.accepts_none(Coding::COMPRESSED_HERE) {
            return Ok(Answer::Response(not_acceptable()));
        }
        let now = self.clock.now();
        if let Some(watcher) = &self.watcher {
            watcher.read_reports(now);
        }
        let generation = self.generation(now, effort.blocking)?;
        let lookup = Lookup {
            path: request.path(),
            ranking: self.ranking(request),
            generation,
            now,
            should_cache: false,
        };
        let cached = self.cached(lookup);
        if let Some(cached) = &cached
            && self.is_current(cached, lookup)
        {
            self.counters.on_hit();
            return Ok(Answer::Response(self.respond(request, cached)?));
        }
        let requested = path::parse(lookup.path, self.settings.dotfiles);
        let requested = requested.ok_or(ServeError::NotFound)?;
        // A file that required a blocking read is cached from its first request on.
        let should_cache = requested.is_normal
            && (effort.blocking == Blocking::Allowed
                || cached.is_some()
                || self.memory.record_request(lookup.path, lookup.ranking));
        let lookup = Lookup {
            should_cache,
            ..lookup
        };
        self.answer_from_disk(request, &requested, lookup, cached, effort)
    }

    /// Returns the generation of the root. If another root was watched before, stops watching its
    /// folders.
    fn generation(&self, now: Moment, blocking: Blocking) -> Result<u64, ServeError> {
        let generation = self.root.generation(now, blocking)?;
        if self.generation.load(Relaxed) != generation {
            self.generation.store(generation, Relaxed);
            if let Some(watcher) = &self.watcher {
                watcher.clear();
            }
        }
        Ok(generation)
    }

    /// Returns the codings that select the response: all accepted ones for precompressed files, and
    /// otherwise only the one used for compression.
    fn ranking(&self, request: &FileRequest<'_>) -> Ranking {
        if self.settings.precompressed {
            return request.ranking(Coding::ANY);
        }
        match self.coding(request) {
            Some(coding) => Ranking::of(std::iter::once(coding)),
            None => Ranking::PLAIN,
        }
    }

    /// Returns the coding with which files are compressed for a request, if any.
    fn coding(&self, request: &FileRequest<'_>) -> Option<Coding> {
        if !self.settings.compress || request.wants_part || request.accepts_anything() {
            return None;
        }
        let best = request.codings(Coding::COMPRESSED_HERE).next();
        best.filter(|coding| *coding != Coding::Identity)
    }

    fn cached(&self, lookup: Lookup<'_>) -> Option<Arc<CachedFile>> {
        if let Some(cached) = self.memory.get(lookup.path, lookup.ranking) {
            return Some(cached);
        }
        if lookup.ranking == Ranking::PLAIN || self.settings.precompressed {
            return None;
        }
        // Content that is never compressed is cached only as `PLAIN`.
        let plain = self.memory.get(lookup.path, Ranking::PLAIN);
        plain.filter(|plain| !plain.representation.varies)
    }

    /// Returns true if the last check on disk is recent enough.
    fn is_current(&self, cached: &CachedFile, lookup: Lookup<'_>) -> bool {
        let checked = Moment::of(cached.checked.load(Relaxed));
        let age = match (&self.watcher, &cached.watched) {
            (Some(watcher), Some(watched)) if watched.is_unchanged(watcher) => age::WATCHED,
            (Some(_), Some(_)) => return false,
            _ => age::UNWATCHED,
        };
        cached.generation == lookup.generation && lookup.now.is_within(checked, age)
    }

    /// Responds to a request after checking the file on disk.
    fn answer_from_disk(
        &self,
        request: &FileRequest<'_>,
        requested: &Requested,
        lookup: Lookup<'_>,
        cached: Option<Arc<CachedFile>>,
        effort: Effort,
    ) -> Result<Answer, ServeError> {
        let (found, watched) = match self.find(request, requested, lookup, effort.blocking) {
            Ok((Found::File(found), watched)) => (found, watched),
            Ok((Found::NeedsSlash, _)) => {
                let prefix = &self.settings.prefix;
                let response = with_slash(request, &requested.relative, prefix);
                return response.map(Answer::Response);
            }
            Ok((Found::Folder(folder), _)) => return Ok(Answer::Folder(folder)),
            Err(error) => {
                if cached.is_some() && !matches!(error, ServeError::WouldBlock) {
                    self.memory.remove(lookup.path, lookup.ranking);
                }
                return Err(error);
            }
        };
        if let Some(cached) = cached
            && cached.representation.is_of(&found)
            && cached.generation == found.opened.generation
        {
            let cached = self.renew(lookup, cached, watched);
            self.counters.on_hit();
            return Ok(Answer::Response(self.respond(request, &cached)?));
        }
        let time = SystemTime::now();
        let representation = self.representation(request, &found, time);
        let generation = found.opened.generation;
        let source = Source::new(found.opened, found.reading);
        let unsettled = source.version().unsettled_for(time);
        if !unsettled.is_zero() && !effort.accepts_unsettled {
            return Err(ServeError::Unsettled(unsettled));
        }
        let len = source.version().len();
        let is_compressed = representation.compressed != Coding::Identity;
        let is_sent_directly =
            !lookup.should_cache && !is_compressed && len <= buffers::SIZE as u64;
        if len > self.memory.largest() || !unsettled.is_zero() || is_sent_directly {
            self.counters.on_miss();
            let share = self.share_of(request.extensions);
            let sent = send(request, &representation, &source, effort, &share);
            return sent.map(Answer::Response);
        }
        let content = source.read_whole(effort.blocking)?;
        let cached = CachedFile::new(representation, content, effort.blocking)?;
        let cached = Arc::new(cached.with_origin(generation, lookup.now, watched));
        let ranking = match cached.representation.varies {
            true => lookup.ranking,
            false => Ranking::PLAIN,
        };
        // The fields of a file from the future differ with each response.
        let is_cacheable = requested.is_normal && !source.version().is_ahead_of(time);
        let is_compressed = cached.representation.compressed != Coding::Identity;
        if is_cacheable && (lookup.should_cache || is_compressed) {
            self.memory.insert(lookup.path, ranking, cached.clone());
        }
        self.counters.on_miss();
        Ok(Answer::Response(self.respond(request, &cached)?))
    }

    /// Finds the requested file, and watches its folders if it should be cached.
    fn find(
        &self,
        request: &FileRequest<'_>,
        requested: &Requested,
        lookup: Lookup<'_>,
        blocking: Blocking,
    ) -> Result<(Found, Option<Watched>), ServeError> {
        let finder = Finder {
            root: &self.root,
            precompressed: self.settings.precompressed,
            now: lookup.now,
            blocking,
        };
        let (name, is_folder) = (requested.file(), requested.is_folder);
        let watcher = self.watcher.as_ref().filter(|_| lookup.should_cache);
        let watched = watcher.and_then(|it| it.watched(&name));
        let found = finder.find(request, &name, is_folder)?;
        let Found::File(file) = &found else {
            return Ok((found, None));
        };
        if !lookup.should_cache || !self.is_watchable(file) {
            return Ok((found, None));
        }
        if watched.is_some() {
            return Ok((found, watched));
        }
        match self.watch(&name) {
            None => Ok((found, None)),
            // The file may have changed before it was watched.
            watched => Ok((finder.find(request, &name, is_folder)?, watched)),
        }
    }

    fn is_watchable(&self, found: &FoundFile) -> bool {
        let opened = &found.opened;
        let is_small = opened.version.len() <= self.memory.largest();
        is_small && opened.is_direct && !opened.has_other_names && found.reading.can_be_watched()
    }

    fn watch(&self, name: &Path) -> Option<Watched> {
        let watcher = self.watcher.as_ref()?;
        let is_watched = watcher.watch(self.root.path(), name);
        is_watched.then(|| watcher.watched(name)).flatten()
    }

    /// Records that a cached file was found unchanged on disk.
    fn renew(
        &self,
        lookup: Lookup<'_>,
        cached: Arc<CachedFile>,
        watched: Option<Watched>,
    ) -> Arc<CachedFile> {
        if watched.is_none() && cached.watched.is_none() {
            cached.checked.store(lookup.now.get(), Relaxed);
            return cached;
        }
        let ranking = match cached.representation.varies {
            true => lookup.ranking,
            false => Ranking::PLAIN,
        };
        let renewed = cached.fresh_copy();
        let renewed = Arc::new(renewed.with_origin(lookup.generation, lookup.now, watched));
        self.memory.insert(lookup.path, ranking, renewed.clone());
        renewed
    }

    fn representation(
        &self,
        request: &FileRequest<'_>,
        found: &FoundFile,
        time: SystemTime,
    ) -> Representation {
        let kind = self.settings.types.of(&found.name);
        let is_plain = found.coding == Coding::Identity;
        let compresses = self.settings.compress
            && is_plain
            && found.opened.version.len() >= compress::MIN_LEN
            && kind::compresses(&kind);
        let coding = self.coding(request).filter(|_| compresses);
        Representation {
            file: found.file.clone(),
            version: found.opened.version,
            modified: found.opened.version.last_modified(time),
            kind,
            coding: found.coding,
            compressed: coding.unwrap_or(Coding::Identity),
            varies: compresses || self.settings.precompressed,
        }
    }

    fn respond(
        &self,
        request: &FileRequest<'_>,
        cached: &CachedFile,
    ) -> Result<Response<Body>, ServeError> {
        let content = &cached.content;
        let modified = cached.representation.modified;
        let len = content.len() as u64;
        respond(request, cached.headers.clone(), modified, len, |part| {
            Ok(match part {
                Content::One(part) => {
                    // The length of content in memory fits into usize.
                    let part = part.start as usize..part.end as usize;
                    Body::full(content.slice(part))
                }
                Content::Several(parts) => {
                    Body::multipart(Multipart::of_memory(parts, content.clone()))
                }
            })
        })
    }
}

/// The key of a cached file, and the time of the request.
#[derive(Clone, Copy, Debug)]
struct Lookup<'a> {
    path: &'a str,
    ranking: Ranking,
    generation: u64,
    now: Moment,
    /// Caches the file if its size and state permit.
    should_cache: bool,
}

/// Sends a file without caching it.
fn send(
    request: &FileRequest<'_>,
    representation: &Representation,
    source: &Source,
    effort: Effort,
    share: &ThreadShare,
) -> Result<Response<Body>, ServeError> {
    let (len, coding) = (source.version().len(), representation.compressed);
    let is_plain = coding == Coding::Identity;
    let headers = representation.headers(is_plain.then_some(len));
    respond(request, headers, representation.modified, len, |content| {
        let begin = |part: Range<u64>| {
            let (offset, left) = (part.start, part.end - part.start);
            Reader::begin(source.clone(), offset, left, effort, share)
        };
        Ok(match content {
            Content::One(part) if is_plain => Body::file(begin(part)?),
            Content::One(part) => compress::stream(Body::file(begin(part)?), coding),
            Content::Several(parts) => {
                let first = parts.first().cloned().unwrap_or(0..0);
                Body::multipart(Multipart::of_file(parts, begin(first)?))
            }
        })
    })
}
