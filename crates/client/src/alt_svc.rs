//! Alternatives over HTTP/3 that origins have announced (RFC 7838).

mod alternative;
mod file;
mod parse;
pub(super) mod reach;

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use self::alternative::Alternative;
use self::parse::Announcement;
use super::error::{Error, ErrorKind};
use super::origin::Origin;

/// What an announcement changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// No alternatives before and since, or the announcement was malformed.
    Nothing,
    /// The same alternatives as before.
    Renewed,
    /// Other alternatives than before.
    Announced,
    /// Alternatives that were known before, and none since.
    Withdrawn,
}

/// The alternatives that origins have announced. The number of origins is limited: the one whose alternatives
/// expire first is removed.
#[derive(Debug, Default)]
pub(super) struct AltSvcCache {
    origins: HashMap<Origin, Vec<Alternative>>,
    latest: Option<Latest>,
}

/// The latest announcement. Servers repeat theirs in every response, so it is parsed at most once a second.
#[derive(Debug)]
struct Latest {
    origin: Origin,
    value: String,
    at: SystemTime,
}

impl Latest {
    fn is_repeated(&self, now: SystemTime, origin: &Origin, value: &str) -> bool {
        let age = now.duration_since(self.at);
        age.is_ok_and(|age| age < PARSE_INTERVAL) && self.value == value && self.origin == *origin
    }
}

impl AltSvcCache {
    /// Processes the values of the `alt-svc` fields of a response, or of an ALTSVC frame, which replace all
    /// previous ones. Malformed values change nothing.
    pub(super) fn on_announced<'a>(
        &mut self,
        now: SystemTime,
        origin: &Origin,
        mut values: impl Iterator<Item = &'a str>,
    ) -> Change {
        let (Some(first), second) = (values.next(), values.next()) else {
            return Change::Nothing;
        };
        let latest = self.latest.as_ref();
        if second.is_none() && latest.is_some_and(|it| it.is_repeated(now, origin, first)) {
            return Change::Renewed;
        }
        let change = self.on_changed(now, origin, [first].into_iter().chain(second).chain(values));
        let is_latest = second.is_none() && matches!(change, Change::Renewed | Change::Announced);
        self.latest = is_latest.then(|| Latest {
            origin: origin.clone(),
            value: first.to_owned(),
            at: now,
        });
        change
    }

    fn on_changed<'a>(
        &mut self,
        now: SystemTime,
        origin: &Origin,
        values: impl Iterator<Item = &'a str>,
    ) -> Change {
        // Responses to http:// URLs are not authenticated (RFC 7838 §2.1).
        if !origin.is_secure() {
            return Change::Nothing;
        }
        let mut announced: Option<Vec<Alternative>> = None;
        for value in values {
            match parse::parse(value) {
                Some(Announcement::Clear) => return self.on_withdrawn(origin),
                Some(Announcement::Services(services)) => {
                    let known = announced.get_or_insert_default();
                    for service in services {
                        let is_own_port = service.port == origin.port();
                        let is_open = is_own_port || !reach::is_blocked(service.port);
                        let is_supported = service.protocol == "h3" && is_open;
                        if is_supported && known.len() < MAX_ALTERNATIVES {
                            let max_age = service.max_age.min(MAX_AGE);
                            known.push(Alternative {
                                host: service.host,
                                port: service.port,
                                expires: now + max_age,
                                persists: service.persists,
                            });
                        }
                    }
                }
                None => {}
            }
        }
        match announced {
            Some(known) if known.is_empty() => self.on_withdrawn(origin),
            Some(known) => {
                let is_known = self.origins.get(origin).is_some_and(|before| {
                    let mut pairs = before.iter().zip(&known);
                    before.len() == known.len()
                        && pairs.all(|(before, known)| {
                            before.expires > now && before.is_same_server(known)
                        })
                });
                self.insert(now, origin, known);
                match is_known {
                    true => Change::Renewed,
                    false => Change::Announced,
                }
            }
            None => Change::Nothing,
        }
    }

    fn on_withdrawn(&mut self, origin: &Origin) -> Change {
        match self.origins.remove(origin) {
            Some(_) => Change::Withdrawn,
            None => Change::Nothing,
        }
    }

    /// Returns the unexpired alternatives of an origin.
    pub(super) fn alternatives(&self, now: SystemTime, origin: &Origin) -> Vec<Alternative> {
        let known = self.origins.get(origin).into_iter().flatten();
        known.filter(|known| known.expires > now).cloned().collect()
    }

    /// Removes the alternatives of an origin after one of them responded with status 421 (RFC 7838 §6).
    pub(super) fn forget(&mut self, origin: &Origin) {
        self.latest = None;
        self.origins.remove(origin);
    }

    /// Removes the alternatives that do not persist, because other ones may be close or reachable in another
    /// network (RFC 7838 §2.2).
    pub(super) fn on_network_changed(&mut self) {
        self.latest = None;
        self.origins.retain(|_, known| {
            known.retain(|alternative| alternative.persists);
            !known.is_empty()
        });
    }

    /// Reads a file in curl's format. A missing file counts as empty.
    pub(super) fn load(now: SystemTime, path: &Path) -> Result<Self, Error> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(unusable(path, "read", &error)),
        };
        let mut cache = Self::default();
        cache.read(now, &text);
        Ok(cache)
    }

    /// Adds the alternatives in the text of a file.
    fn read(&mut self, now: SystemTime, text: &str) {
        for (origin, alternative) in file::read(text) {
            let is_own_port = alternative.port == origin.port();
            let is_open = is_own_port || !reach::is_blocked(alternative.port);
            if is_open && alternative.expires > now {
                let mut known = self.origins.remove(&origin).unwrap_or_default();
                if known.len() < MAX_ALTERNATIVES {
                    known.push(alternative);
                }
                self.insert(now, &origin, known);
            }
        }
    }

    /// Replaces the file atomically, in curl's format.
    pub(super) fn save(&self, now: SystemTime, path: &Path) -> Result<(), Error> {
        let text = file::write(now, &self.origins);
        courser_base::replace_file(path, text.as_bytes())
            .map_err(|error| unusable(path, "write", &error))
    }

    fn insert(&mut self, now: SystemTime, origin: &Origin, known: Vec<Alternative>) {
        if self.origins.len() >= MAX_ORIGINS && !self.origins.contains_key(origin) {
            self.origins
                .retain(|_, known| known.iter().any(|known| known.expires > now));
        }
        if self.origins.len() >= MAX_ORIGINS && !self.origins.contains_key(origin) {
            let expiry = |known: &[Alternative]| known.iter().map(|known| known.expires).max();
            let soonest = self
                .origins
                .iter()
                .min_by_key(|(_, known)| expiry(known))
                .map(|(origin, _)| origin.clone());
            soonest.map(|origin| self.origins.remove(&origin));
        }
        self.origins.insert(origin.clone(), known);
    }
}

/// Parses a file of alternatives and returns the file to save, for the fuzz targets.
pub fn rewrite_file(now: SystemTime, text: &str) -> String {
    let mut cache = AltSvcCache::default();
    cache.read(now, text);
    file::write(now, &cache.origins)
}

/// Parses an `alt-svc` field and returns the file to save, for the fuzz targets.
pub fn announce(now: SystemTime, value: &str) -> String {
    let mut cache = AltSvcCache::default();
    let uri = http::Uri::from_static("https://a.example/");
    if let Ok(origin) = Origin::of(&uri) {
        cache.on_announced(now, &origin, std::iter::once(value));
    }
    file::write(now, &cache.origins)
}

fn unusable(path: &Path, verb: &str, error: &std::io::Error) -> Error {
    let text = format!("cannot {verb} Alt-Svc cache {}: {error}", path.display());
    Error::new(ErrorKind::Config, text)
}

/// Largest number of origins, about 100 bytes each: more than a person visits.
const MAX_ORIGINS: usize = 1024;
/// A lifetime is a day and more, so one that ends a second early is as good.
const PARSE_INTERVAL: Duration = Duration::from_secs(1);
/// Largest number of alternatives per origin. Real origins announce one or two.
const MAX_ALTERNATIVES: usize = 4;
/// Longest lifetime of an alternative; browsers limit it similarly.
const MAX_AGE: Duration = Duration::from_secs(90 * 24 * 3600);

#[cfg(test)]
mod tests;
