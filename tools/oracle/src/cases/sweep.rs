//! Each byte in each place: all versions agree.

use std::collections::BTreeMap;

use crate::lab::{Findings, Lab, Pair};
use crate::message::{Request, Response, Version};
use crate::upstream::{Script, UpstreamVersion};

/// The outcome of a request with a swept byte.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Outcome {
    Unchanged,
    /// Percent-encoded.
    Escaped,
    Dropped,
    Refused,
    Wrong(String),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Method,
    Path,
    Query,
    Name,
    Value,
    ValueStart,
    ValueEnd,
}

const PLACES: [Place; 7] = [
    Place::Method,
    Place::Path,
    Place::Query,
    Place::Name,
    Place::Value,
    Place::ValueStart,
    Place::ValueEnd,
];

/// Sends each kind of byte in method, path, query, name and value. A request is forwarded, perhaps with a byte of its target
/// percent-encoded, or refused, alike in all versions unless their syntax differs. Rules: 9110-017 to 9110-020, 9110-022,
/// 9112-011, 9112-026, 9113-052 to 9113-054, 9113-074, 9113-091, 9112-083.
pub async fn bytes(lab: &mut Lab) -> Findings {
    let swept: Vec<u8> = (0..=0x2f)
        .chain(*b"0:;<=>?@AZ[\\]^_`az{|}~")
        .chain([0x7f, 0x80, 0xa0, 0xff])
        .collect();
    let mut findings = Findings::over(Pair::all());
    for upstream in UpstreamVersion::ALL {
        for place in PLACES {
            for byte in &swept {
                let mut outcomes = BTreeMap::new();
                for version in Version::ALL {
                    if is_syntax(version, place, *byte) {
                        continue;
                    }
                    let pair = Pair {
                        client: version,
                        upstream,
                    };
                    let outcome = outcome(lab, pair, place, *byte).await;
                    outcomes.insert(version, outcome);
                }
                for (version, outcome) in &outcomes {
                    let case = format!("{:?} in {place:?}", char::from(*byte));
                    let result = judge(place, *byte, *version, outcome, &outcomes);
                    let pair = Pair {
                        client: *version,
                        upstream,
                    };
                    findings.note(pair, &case, result);
                }
            }
        }
    }
    findings
}

/// Returns true if the byte ends the part that it is in, so that the request is another one.
const fn is_syntax(version: Version, place: Place, byte: u8) -> bool {
    if matches!(version, Version::Http1) {
        let is_line_end = matches!(byte, b'\r' | b'\n');
        let is_end = match place {
            Place::Method | Place::Path | Place::Query => matches!(byte, b' '),
            Place::Name => matches!(byte, b':'),
            Place::Value | Place::ValueStart | Place::ValueEnd => false,
        };
        return is_line_end || is_end;
    }
    false
}

async fn outcome(lab: &mut Lab, pair: Pair, place: Place, byte: u8) -> Outcome {
    let with = |before: &[u8], after: &[u8]| [before, &[byte], after].concat();
    let mut request = Request::new("GET", "/sweep");
    let (mut name, mut value) = (b"x-a".to_vec(), b"v".to_vec());
    match place {
        Place::Method => request.control.method = with(b"A", b"B"),
        Place::Path => request.control.path = with(b"/a", b"b"),
        Place::Query => request.control.path = with(b"/a?b", b"c"),
        Place::Name => name = with(b"x", b"y"),
        Place::Value => value = with(b"v", b"w"),
        Place::ValueStart => value = with(b"", b"w"),
        Place::ValueEnd => value = with(b"v", b""),
    }
    let request = request.with(&name, &value);
    let answered = lab
        .send(pair, Script::answer(Response::ok()), &request)
        .await;
    let seen = match answered.forwarded() {
        Ok(seen) => seen,
        Err(_) => {
            return match answered.refusal() {
                Ok(_) => Outcome::Refused,
                Err(what) => Outcome::Wrong(what),
            };
        }
    };
    let start = [&request.control.method[..], b" ", &request.control.path].concat();
    let escaped = String::from_utf8_lossy(&start).replacen(
        &*String::from_utf8_lossy(&[byte]),
        &format!("%{byte:02X}"),
        1,
    );
    if matches!(place, Place::Path | Place::Query) && seen.start == escaped {
        return Outcome::Escaped;
    }
    if seen.start != String::from_utf8_lossy(&start) && place != Place::Name {
        return Outcome::Wrong(format!("arrived as {}", seen.start));
    }
    let lower = String::from_utf8_lossy(&name.to_ascii_lowercase()).into_owned();
    match &seen.all(&lower).collect::<Vec<_>>()[..] {
        [] if place == Place::Name => Outcome::Dropped,
        [same] if *same == value => Outcome::Unchanged,
        // The same value: whitespace around it is no part of it, and only HTTP/1.1 may have it.
        [same] if *same == value.trim_ascii() && pair.client == Version::Http1 => {
            Outcome::Unchanged
        }
        _ => Outcome::Wrong(format!("arrived as\n{seen}")),
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn judge(
    place: Place,
    byte: u8,
    version: Version,
    outcome: &Outcome,
    all: &BTreeMap<Version, Outcome>,
) -> Result<(), String> {
    if let Outcome::Wrong(what) = outcome {
        return Err(what.clone());
    }
    let is_framed = version != Version::Http1;
    let is_space = matches!(byte, b' ' | b'\t');
    let expected: &[Outcome] = match place {
        Place::Method if is_token(byte) => &[Outcome::Unchanged],
        Place::Method => &[Outcome::Refused],
        Place::Name if byte == b'_' => &[Outcome::Dropped, Outcome::Refused],
        Place::Name if byte.is_ascii_uppercase() && is_framed => &[Outcome::Refused],
        Place::Name if is_token(byte) => &[Outcome::Unchanged],
        Place::Name => &[Outcome::Refused],
        Place::Value | Place::ValueStart | Place::ValueEnd => match byte {
            0 | b'\r' | b'\n' => &[Outcome::Refused],
            _ if is_space && place != Place::Value && is_framed => &[Outcome::Refused],
            b' '..=b'~' | b'\t' | 0x80.. => &[Outcome::Unchanged],
            // Other control characters may pass or be refused, alike in all versions.
            _ => &[Outcome::Unchanged, Outcome::Refused],
        },
        Place::Path | Place::Query => match byte {
            // No target has whitespace, control characters or a fragment.
            0..=b' ' | 0x7f | b'#' => &[Outcome::Refused],
            // No URI has these, but they have only one meaning.
            b'<' | b'>' | 0x80.. => &[Outcome::Escaped],
            b'"' if place == Place::Query => &[Outcome::Escaped],
            b'`' if place == Place::Path => &[Outcome::Escaped],
            _ => &[Outcome::Unchanged],
        },
    };
    if !expected.contains(outcome) {
        return Err(format!("{outcome:?}, not one of {expected:?}"));
    }
    let differs = all.values().any(|other| other != outcome);
    if expected.len() > 1 && differs {
        return Err(format!("the versions differ: {all:?}"));
    }
    Ok(())
}
