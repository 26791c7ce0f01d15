//! Content codings, and their negotiation by `Accept-Encoding` (RFC 9110 §12.5.3).

use http::header::ACCEPT_ENCODING;
use http::{HeaderMap, HeaderValue};

/// A content coding. Of two codings with the same weight, the later one in this list is preferred.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Coding {
    Identity,
    Deflate,
    Gzip,
    Brotli,
    Zstd,
}

impl Coding {
    pub(crate) const ANY: &'static [Self] = &Self::ALL;

    const ALL: [Self; 5] = [
        Self::Identity,
        Self::Deflate,
        Self::Gzip,
        Self::Brotli,
        Self::Zstd,
    ];

    /// The codings that this build can compress with, best first.
    pub(crate) const COMPRESSED_HERE: &'static [Self] = &[
        #[cfg(feature = "zstd")]
        Self::Zstd,
        #[cfg(feature = "brotli")]
        Self::Brotli,
        Self::Gzip,
        Self::Deflate,
    ];

    /// The codings of precompressed files, best first.
    pub(crate) const ON_DISK: &'static [Self] = &[Self::Zstd, Self::Brotli, Self::Gzip];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Deflate => "deflate",
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    pub(crate) const fn header_value(self) -> HeaderValue {
        HeaderValue::from_static(self.name())
    }

    /// Returns the suffix of precompressed files.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Identity => "",
            Self::Deflate => ".zz",
            Self::Gzip => ".gz",
            Self::Brotli => ".br",
            Self::Zstd => ".zst",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("x-gzip") {
            return Some(Self::Gzip);
        }
        let is_this = |coding: &Self| coding.name().eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(is_this)
    }
}

/// The weights that a client gives to codings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Accepted([Weight; 5]);

/// A weight in thousandths, plus one for every acceptable coding. Content without coding is
/// acceptable even to clients that do not name it.
type Weight = u16;

const REFUSED: Weight = 0;
const UNNAMED: Weight = 1;

impl Accepted {
    /// The weights for a client that sends no `Accept-Encoding`.
    pub(crate) const ANYTHING: Self = Self([UNNAMED, REFUSED, REFUSED, REFUSED, REFUSED]);

    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        if !headers.contains_key(ACCEPT_ENCODING) {
            return Self::ANYTHING;
        }
        let (mut named, mut wildcard) = ([None; 5], None);
        let values = headers.get_all(ACCEPT_ENCODING).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        for item in values.flat_map(|value| value.split(',')) {
            let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
            let Some(weight) = weight(parameters.trim()) else {
                continue;
            };
            let name = name.trim();
            if name == "*" {
                wildcard = wildcard.or(Some(weight));
            } else if let Some(coding) = Coding::of_name(name) {
                named[coding as usize].get_or_insert(weight);
            }
        }
        let mut weights = named.map(|named| named.or(wildcard).unwrap_or(REFUSED));
        if named[0].is_none() && wildcard.is_none() {
            weights[0] = UNNAMED;
        }
        Self(weights)
    }

    /// Returns the codings among `available` that the client accepts, best first, including
    /// [`Identity`](Coding::Identity) if the client accepts content without coding.
    pub(crate) fn ranked(self, available: &[Coding]) -> impl Iterator<Item = Coding> + use<> {
        let mut ranked = Coding::ALL.map(|coding| {
            let is_available = coding == Coding::Identity || available.contains(&coding);
            let weight = self.0[coding as usize];
            (if is_available { weight } else { REFUSED }, coding)
        });
        ranked.sort_unstable();
        let accepted = ranked.into_iter().rev();
        accepted
            .take_while(|(weight, _)| *weight > REFUSED)
            .map(|(_, coding)| coding)
    }
}

/// The codings that a client accepts, in order, as digits of a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Ranking(u16);

impl Ranking {
    pub(crate) fn of(codings: impl Iterator<Item = Coding>) -> Self {
        Self(codings.fold(0, |ranking, coding| ranking << 3 | (coding as u16 + 1)))
    }

    /// The ranking of clients that accept only content without coding.
    pub(crate) const PLAIN: Self = Self(Coding::Identity as u16 + 1);
}

/// Parses the weight after a coding, such as `q=0.5`. Returns one if there is none, and `None` if
/// it is malformed.
fn weight(parameters: &str) -> Option<Weight> {
    if parameters.is_empty() {
        return Some(WHOLE);
    }
    let value = parameters
        .strip_prefix("q=")
        .or_else(|| parameters.strip_prefix("Q="))?;
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let is_valid = fraction.len() <= 3 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    if !is_valid {
        return None;
    }
    let thousandths = format_args!("{fraction:0<3}").to_string().parse().ok()?;
    match (whole, thousandths) {
        ("0", 0) => Some(REFUSED),
        ("0", thousandths) => Some(thousandths + UNNAMED),
        ("1", 0) => Some(WHOLE),
        _ => None,
    }
}

const WHOLE: Weight = 1000 + UNNAMED;

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(accept: &'static str, available: &[Coding]) -> Vec<&'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(accept));
        let ranked = Accepted::from_headers(&headers).ranked(available);
        ranked.map(Coding::name).collect()
    }

    #[test]
    fn clients_without_the_field_get_no_coding() {
        let ranked = Accepted::from_headers(&HeaderMap::new()).ranked(Coding::ON_DISK);
        assert_eq!(ranked.collect::<Vec<_>>(), [Coding::Identity]);
    }

    #[test]
    fn weights_come_first_and_then_our_preference() {
        let all = [Coding::Gzip, Coding::Brotli, Coding::Zstd];
        for (accept, expected) in [
            (
                "gzip, deflate, br, zstd",
                &["zstd", "br", "gzip", "identity"][..],
            ),
            ("gzip;q=0.9, br;q=0.8", &["gzip", "br", "identity"]),
            ("br;q=0.001, gzip;q=0", &["br", "identity"]),
            ("GZIP", &["gzip", "identity"]),
            ("x-gzip", &["gzip", "identity"]),
            ("identity, gzip;q=0.5", &["identity", "gzip"]),
            ("*", &["zstd", "br", "gzip", "identity"]),
            ("*;q=0.5, gzip", &["gzip", "zstd", "br", "identity"]),
            ("gzip, identity;q=0", &["gzip"]),
            ("gzip, *;q=0", &["gzip"]),
            ("identity;q=0", &[]),
            ("*;q=0", &[]),
            ("", &["identity"]),
            ("unheard-of", &["identity"]),
            ("gzip;q=2", &["identity"]),
            ("gzip;q=1.001", &["identity"]),
            ("gzip;q=0.0000", &["identity"]),
            ("gzip;level=9", &["identity"]),
        ] {
            assert_eq!(ranked(accept, &all), expected, "{accept:?}");
        }
    }

    #[test]
    fn unavailable_codings_are_not_ranked() {
        assert_eq!(
            ranked("br, gzip;q=0.5", &[Coding::Gzip]),
            ["gzip", "identity"]
        );
        assert_eq!(ranked("br, identity;q=0", &[Coding::Gzip]), [""; 0]);
    }
}
