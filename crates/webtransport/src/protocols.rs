//! Names of application protocols, in structured fields (draft-ietf-webtrans-http3-16 §3.3, RFC 9651).

use courser_http3::structured_fields::Parser;
use http::{HeaderMap, HeaderName, HeaderValue};
use thiserror::Error;

/// A list of application protocols in order of preference, as a client offers them.
///
/// ```
/// use courser_webtransport::Protocols;
/// let offered = Protocols::new(["chat.2", "chat.1"])?;
/// assert_eq!(offered.select(["chat.1", "chat.2"]), Some("chat.2"));
/// # Ok::<(), courser_webtransport::InvalidProtocol>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Protocols(Vec<String>);

/// The reason why protocols cannot be offered or chosen.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum InvalidProtocol {
    /// The name has other characters than printable ASCII, or more than 256 bytes.
    #[error("protocol {0:?} is not 1 to 256 printable characters of ASCII")]
    Name(String),
    /// There are more names than a request may have.
    #[error("{0} protocols, allowed are 32")]
    TooMany(usize),
}

impl Protocols {
    /// Creates a list, the most preferred name first.
    ///
    /// # Errors
    ///
    /// Returns an error for more than 32 names, and for a name that is empty, longer than 256 bytes, or not
    /// printable ASCII (limit K308).
    pub fn new<N: Into<String>>(
        names: impl IntoIterator<Item = N>,
    ) -> Result<Self, InvalidProtocol> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        if names.len() > MAX_PROTOCOLS {
            return Err(InvalidProtocol::TooMany(names.len()));
        }
        match names.iter().find(|name| !is_valid(name)) {
            Some(name) => Err(InvalidProtocol::Name(name.clone())),
            None => Ok(Self(names)),
        }
    }

    /// Reads `WT-Available-Protocols`. The list is empty if the field is absent, or if it is not a List of Strings,
    /// as if it were absent. Parameters have no effect. Names after the 32nd, and names longer than 256 bytes, are
    /// left out (limit K308).
    pub fn offered(headers: &HeaderMap) -> Self {
        let mut lines = headers.get_all(AVAILABLE).iter().map(HeaderValue::as_bytes);
        let Some(first) = lines.next() else {
            return Self::default();
        };
        let mut joined = first.to_vec();
        for line in lines {
            joined.extend_from_slice(b", ");
            joined.extend_from_slice(line);
        }
        let names = Parser::new(&joined).list_of_strings().unwrap_or_default();
        Self(
            names
                .into_iter()
                .filter(|name| is_valid(name))
                .take(MAX_PROTOCOLS)
                .collect(),
        )
    }

    /// Reads `WT-Protocol`. `None` if the field is absent, or if it is not a String, as if it were absent.
    pub fn chosen(headers: &HeaderMap) -> Option<String> {
        let mut lines = headers.get_all(CHOSEN).iter();
        match (lines.next(), lines.next()) {
            (Some(line), None) => Parser::new(line.as_bytes()).item_string(),
            _ => None,
        }
    }

    /// Returns the names, the most preferred one first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns true if no protocol is offered.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the list contains a name.
    pub fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|offered| offered == name)
    }

    /// Returns the first name of this list that is among `known`.
    pub fn select<N: AsRef<str>>(&self, known: impl IntoIterator<Item = N>) -> Option<&str> {
        let known: Vec<N> = known.into_iter().collect();
        self.iter()
            .find(|offered| known.iter().any(|known| known.as_ref() == *offered))
    }

    /// Returns the value of `WT-Available-Protocols`, or `None` for an empty list.
    pub(crate) fn to_field(&self) -> Option<HeaderValue> {
        let names: Vec<String> = self.iter().map(quoted).collect();
        let value = names.join(", ");
        (!value.is_empty()).then(|| HeaderValue::from_str(&value).ok())?
    }
}

/// Returns the value of `WT-Protocol` for a valid name.
pub(crate) fn chosen_field(name: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&quoted(name)).ok()
}

/// Serializes a String (RFC 9651 §4.1.6).
fn quoted(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 2);
    text.push('"');
    for character in name.chars() {
        if matches!(character, '"' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
    text
}

fn is_valid(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// The field of a request with the protocols that a client offers.
pub(crate) const AVAILABLE: HeaderName = HeaderName::from_static("wt-available-protocols");
/// The field of a response with the protocol that the server has chosen.
pub(crate) const CHOSEN: HeaderName = HeaderName::from_static("wt-protocol");

/// Largest number of protocols in a request (limit K308).
const MAX_PROTOCOLS: usize = 32;
/// Longest name of a protocol in bytes (limit K308).
const LONGEST_NAME: usize = 256;

#[cfg(test)]
mod tests;
