//! Facts about requests that hyper, h2 and the `http` crate cannot express.
//!
//! The parts that read the bytes of a connection before them attach such a fact to the request as a field line, which is
//! removed before the service receives the request.

use std::sync::{Arc, OnceLock};

use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderName, Uri};

use crate::cause::Cause;

/// A fact about a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    /// The request is malformed and must be refused.
    Malformed(Cause),
    /// The request has this target, and not the one in its place.
    Target(Vec<u8>),
}

/// The marks of one connection. Clones belong to the same connection.
///
/// A mark contains random digits. Otherwise clients could send marks.
#[derive(Clone, Default, Debug)]
pub(crate) struct Marks(Arc<OnceLock<String>>);

impl Marks {
    /// Returns the name and value of a field line with a mark. Returns `None` if the system has no random numbers.
    pub(crate) fn field(&self, mark: &Mark) -> Option<(&'static str, Vec<u8>)> {
        let mut value = self.digits()?.as_bytes().to_vec();
        match mark {
            Mark::Malformed(cause) => {
                value.push(b'm');
                value.extend_from_slice(cause.name().as_bytes());
            }
            Mark::Target(target) => {
                value.push(b't');
                value.extend_from_slice(target);
            }
        }
        Some((NAME, value))
    }

    /// Removes the mark from the fields of a request, and gives the request its target. Returns the reason for which it
    /// must be refused, if it is malformed.
    #[inline]
    pub(crate) fn take(&self, head: &mut Parts) -> Option<Cause> {
        let digits = self.0.get()?;
        take(digits, head)
    }

    fn digits(&self) -> Option<&str> {
        if let Some(digits) = self.0.get() {
            return Some(digits);
        }
        let mut secret = [0; 8];
        SystemRandom::new().fill(&mut secret).ok()?;
        let digits = format!("{:016x}", u64::from_ne_bytes(secret));
        Some(self.0.get_or_init(|| digits))
    }
}

#[cold]
fn take(digits: &str, head: &mut Parts) -> Option<Cause> {
    let name = HeaderName::from_static(NAME);
    let own = |value: &http::HeaderValue| {
        Some(value.as_bytes().strip_prefix(digits.as_bytes())?.to_vec())
    };
    let mark = head
        .headers
        .get_all(&name)
        .iter()
        .filter_map(own)
        .next_back();
    head.headers.remove(&name);
    match mark?.split_first()? {
        (b't', target) => set_target(&mut head.uri, target).err(),
        (_, name) => {
            let named = Cause::ALL.iter().find(|it| it.name().as_bytes() == name);
            Some(named.copied().unwrap_or(Cause::InvalidRequest))
        }
    }
}

/// Replaces the path and query of a URI.
fn set_target(uri: &mut Uri, target: &[u8]) -> Result<(), Cause> {
    let mut parts = std::mem::take(uri).into_parts();
    // A target that is longer than the `http` crate accepts.
    let target = PathAndQuery::try_from(target).map_err(|_| Cause::InvalidTarget)?;
    parts.path_and_query = Some(target);
    *uri = Uri::from_parts(parts).map_err(|_| Cause::InvalidTarget)?;
    Ok(())
}

const NAME: &str = "courser-mark";

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(value: &[u8]) -> Parts {
        let request = Request::get("https://localhost/x").header(NAME, value);
        request.body(()).expect("valid").into_parts().0
    }

    #[test]
    fn only_own_marks_count() {
        let (marks, others) = (Marks::default(), Marks::default());
        let malformed = Mark::Malformed(Cause::InvalidField);
        let (_, foreign) = others.field(&malformed).expect("random");
        let mut before = head(&foreign);
        assert_eq!(marks.take(&mut before), None, "no mark has been made");
        assert_eq!(before.headers.len(), 1);
        let (_, value) = marks.field(&malformed).expect("random");
        let mut own = head(&value);
        own.headers
            .append(NAME, "of the client".parse().expect("valid"));
        assert_eq!(marks.take(&mut own), Some(Cause::InvalidField));
        assert!(own.headers.is_empty());
        let mut foreign = head(&foreign);
        assert_eq!(marks.take(&mut foreign), None);
        assert!(foreign.headers.is_empty());
    }

    #[test]
    fn targets_replace_those_in_their_place() {
        let marks = Marks::default();
        let taken = |target: &[u8]| {
            let (_, value) = marks.field(&Mark::Target(target.to_vec())).expect("random");
            let mut head = head(&value);
            let refused = marks.take(&mut head);
            (refused, head.uri.to_string())
        };
        assert_eq!(taken(b"/?%22"), (None, "https://localhost/?%22".to_owned()));
        let too_long = [b"/", &[b'a'; 70_000][..]].concat();
        assert_eq!(taken(&too_long).0, Some(Cause::InvalidTarget));
    }
}
