//! Answers to requests for files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use http::Response;

use crate::age::{self, Clock, Moment};
use crate::asked::Asked;
use crate::body::Body;
use crate::buffers;
use crate::builder::Builder;
use crate::coding::{Coding, Ranking};
use crate::compress;
use crate::content::{Reader, Source};
use crate::find::{Finder, Found, FoundFile};
use crate::kind;
use crate::memory::{Kept, Memory};
use crate::representation::Representation;
use crate::respond::{not_acceptable, respond, with_slash};
use crate::root::Root;
use crate::stats::Counters;
use crate::trouble::{Effort, Patience, Trouble};
use crate::watch::{Watched, Watcher};

/// The state that all clones of a service share.
#[derive(Debug)]
pub(crate) struct OpenFolder {
    pub(crate) root: Root,
    pub(crate) settings: Builder,
    pub(crate) memory: Memory,
    pub(crate) counters: Counters,
    pub(crate) clock: Clock,
    /// The moment when the listener was last called about an exhausted system.
    pub(crate) last_notice: AtomicU64,
    /// The generation of the root that is watched.
    generation: AtomicU64,
    watcher: Option<Watcher>,
}

/// A response, or a folder for which the folder handler responds.
#[derive(Debug)]
pub(crate) enum Answer {
    Response(Response<Body>),
    Folder(PathBuf),
}

impl OpenFolder {
    pub(crate) fn new(root: Root, settings: Builder) -> Self {
        Self {
            memory: Memory::new(settings.memory),
            counters: Counters::default(),
            last_notice: AtomicU64::default(),
            clock: Clock::start(),
            generation: AtomicU64::new(0),
            watcher: Watcher::new().filter(|_| settings.memory > 0),
            root,
            settings,
        }
    }

    /// Answers a request.
    ///
    /// # Errors
    /// Fails if the request takes more effort, or if the file cannot be served.
    pub(crate) fn answer(&self, asked: &Asked<'_>, effort: Effort) -> Result<Answer, Trouble> {
        if self.settings.compress && asked.accepts_none(Coding::COMPRESSED_HERE) {
            return Ok(Answer::Response(not_acceptable()));
        }
        let now = self.clock.now();
        if let Some(watcher) = &self.watcher {
            watcher.read_reports(now);
        }
        let generation = self.generation(now, effort.patience)?;
        let place = Lookup {
            path: asked.path(),
            ranking: self.ranking(asked),
            generation,
            now,
            should_keep: false,
        };
        let kept = self.kept(place);
        if let Some(kept) = &kept
            && self.is_current(kept, place)
        {
            self.counters.on_hit();
            return Ok(Answer::Response(self.respond(asked, kept)?));
        }
        // Content that required waiting is worth keeping at once.
        let should_keep = effort.patience == Patience::Any
            || kept.is_some()
            || self.memory.note(place.path, place.ranking);
        let place = Lookup {
            should_keep,
            ..place
        };
        self.answer_from_disk(asked, place, kept, effort)
    }

    /// Returns the generation of the root. If another root was watched before, stops watching its
    /// folders.
    fn generation(&self, now: Moment, patience: Patience) -> Result<u64, Trouble> {
        let generation = self.root.generation(now, patience)?;
        if self.generation.load(Relaxed) != generation {
            self.generation.store(generation, Relaxed);
            if let Some(watcher) = &self.watcher {
                watcher.forget_all();
            }
        }
        Ok(generation)
    }

    /// Returns the codings that make a difference for a request.
    fn ranking(&self, asked: &Asked<'_>) -> Ranking {
        if self.settings.precompressed {
            return asked.ranking(Coding::ANY);
        }
        match self.coding(asked) {
            Some(coding) => Ranking::of(std::iter::once(coding)),
            None => Ranking::PLAIN,
        }
    }

    /// Returns the coding in which files are to be compressed for a request.
    fn coding(&self, asked: &Asked<'_>) -> Option<Coding> {
        if !self.settings.compress || asked.wants_part || asked.accepts_anything() {
            return None;
        }
        let best = asked.codings(Coding::COMPRESSED_HERE).next();
        best.filter(|coding| *coding != Coding::Identity)
    }

    fn kept(&self, place: Lookup<'_>) -> Option<Arc<Kept>> {
        if let Some(kept) = self.memory.get(place.path, place.ranking) {
            return Some(kept);
        }
        if place.ranking == Ranking::PLAIN || self.settings.precompressed {
            return None;
        }
        // Content that all clients receive uncompressed is kept once.
        let plain = self.memory.get(place.path, Ranking::PLAIN);
        plain.filter(|plain| !plain.representation.varies)
    }

    /// Returns true if the last check on disk is recent enough.
    fn is_current(&self, kept: &Kept, place: Lookup<'_>) -> bool {
        let checked = Moment::of(kept.checked.load(Relaxed));
        let age = match (&self.watcher, &kept.watched) {
            (Some(watcher), Some(watched)) if watched.is_unchanged(watcher) => age::WATCHED,
            (Some(_), Some(_)) => return false,
            _ => age::UNWATCHED,
        };
        kept.generation == place.generation && place.now.is_within(checked, age)
    }

    /// Answers a request by checking the file on disk.
    fn answer_from_disk(
        &self,
        asked: &Asked<'_>,
        place: Lookup<'_>,
        kept: Option<Arc<Kept>>,
        effort: Effort,
    ) -> Result<Answer, Trouble> {
        let (found, watched) = match self.find(asked, place, effort.patience) {
            Ok((Found::File(found), watched)) => (found, watched),
            Ok((Found::NeedsSlash, _)) => {
                return with_slash(asked, &self.settings.prefix).map(Answer::Response);
            }
            Ok((Found::Folder(folder), _)) => return Ok(Answer::Folder(folder)),
            Err(trouble) => {
                if kept.is_some() && !matches!(trouble, Trouble::WouldBlock) {
                    self.memory.remove(place.path, place.ranking);
                }
                return Err(trouble);
            }
        };
        if let Some(kept) = kept
            && kept.representation.is_of(&found)
            && kept.generation == found.opened.generation
        {
            let kept = self.renew(place, kept, watched);
            self.counters.on_hit();
            return Ok(Answer::Response(self.respond(asked, &kept)?));
        }
        let representation = self.representation(asked, &found);
        let generation = found.opened.generation;
        let source = Source::new(found.opened, found.reading);
        let unsettled = source.version().unsettled_for(SystemTime::now());
        if !unsettled.is_zero() && !effort.takes_unsettled {
            return Err(Trouble::Unsettled(unsettled));
        }
        let len = source.version().len();
        let is_compressed = representation.compressed != Coding::Identity;
        let is_once = !place.should_keep && !is_compressed && len <= buffers::SIZE as u64;
        if len > self.memory.largest() || !unsettled.is_zero() || is_once {
            self.counters.on_miss();
            return send(asked, &representation, &source, effort).map(Answer::Response);
        }
        let content = source.read_whole(effort.patience)?;
        let kept = Kept::new(representation, content, effort.patience)?;
        let kept = Arc::new(kept.with_origin(generation, place.now, watched));
        let ranking = match kept.representation.varies {
            true => place.ranking,
            false => Ranking::PLAIN,
        };
        if place.should_keep || kept.representation.compressed != Coding::Identity {
            self.memory.keep(place.path, ranking, kept.clone());
        }
        self.counters.on_miss();
        Ok(Answer::Response(self.respond(asked, &kept)?))
    }

    /// Finds the file that a request names, and watches it if it can be kept.
    fn find(
        &self,
        asked: &Asked<'_>,
        place: Lookup<'_>,
        patience: Patience,
    ) -> Result<(Found, Option<Watched>), Trouble> {
        let finder = Finder {
            root: &self.root,
            dotfiles: self.settings.dotfiles,
            precompressed: self.settings.precompressed,
            now: place.now,
            patience,
        };
        let name = finder.name(asked.path())?;
        let watcher = self.watcher.as_ref().filter(|_| place.should_keep);
        let watched = watcher.and_then(|it| it.watched(&name));
        let found = finder.find(asked, &name)?;
        let Found::File(file) = &found else {
            return Ok((found, None));
        };
        if !place.should_keep || !self.is_watchable(file) {
            return Ok((found, None));
        }
        if watched.is_some() {
            return Ok((found, watched));
        }
        match self.watch(&name) {
            None => Ok((found, None)),
            // The file may have changed before it was watched.
            watched => Ok((finder.find(asked, &name)?, watched)),
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

    /// Records that a kept file was found unchanged.
    fn renew(&self, place: Lookup<'_>, kept: Arc<Kept>, watched: Option<Watched>) -> Arc<Kept> {
        if watched.is_none() && kept.watched.is_none() {
            kept.checked.store(place.now.get(), Relaxed);
            return kept;
        }
        let ranking = match kept.representation.varies {
            true => place.ranking,
            false => Ranking::PLAIN,
        };
        let renewed = kept.fresh_copy();
        let renewed = Arc::new(renewed.with_origin(place.generation, place.now, watched));
        self.memory.keep(place.path, ranking, renewed.clone());
        renewed
    }

    fn representation(&self, asked: &Asked<'_>, found: &FoundFile) -> Representation {
        let kind = kind::of(&found.name);
        let is_plain = found.coding == Coding::Identity;
        let compresses = self.settings.compress
            && is_plain
            && found.opened.version.len() >= compress::LEAST
            && kind::compresses(&kind);
        let coding = self.coding(asked).filter(|_| compresses);
        Representation {
            file: found.file.clone(),
            version: found.opened.version,
            kind,
            coding: found.coding,
            compressed: coding.unwrap_or(Coding::Identity),
            varies: compresses || self.settings.precompressed,
        }
    }

    fn respond(&self, asked: &Asked<'_>, kept: &Kept) -> Result<Response<Body>, Trouble> {
        let content = &kept.content;
        let modified = kept.representation.modified();
        let len = content.len() as u64;
        respond(asked, kept.headers.clone(), modified, len, |part| {
            // The length of content in memory fits into usize.
            let part = part.start as usize..part.end as usize;
            Ok(Body::full(content.slice(part)))
        })
    }
}

/// The key of an answer in memory, and the time of the request.
#[derive(Clone, Copy, Debug)]
struct Lookup<'a> {
    path: &'a str,
    ranking: Ranking,
    generation: u64,
    now: Moment,
    /// Keeps the file if possible.
    should_keep: bool,
}

/// Sends a file that is not kept.
fn send(
    asked: &Asked<'_>,
    representation: &Representation,
    source: &Source,
    effort: Effort,
) -> Result<Response<Body>, Trouble> {
    let (len, coding) = (source.version().len(), representation.compressed);
    let is_plain = coding == Coding::Identity;
    let headers = representation.headers(is_plain.then_some(len));
    let modified = representation.modified();
    respond(asked, headers, modified, len, |part| {
        let reader = Reader::begin(source.clone(), part.start, part.end - part.start, effort)?;
        let body = Body::file(reader);
        Ok(match is_plain {
            true => body,
            false => compress::stream(body, coding),
        })
    })
}
