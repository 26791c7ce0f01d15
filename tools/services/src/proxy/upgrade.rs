//! Upgrades to other protocols (RFC 9110 §7.8). A proxy asks for them on its own account, so it forwards only those
//! that it lets through: behind any other one, clients could send requests past it.

use std::sync::Arc;

use http::header::{CONNECTION, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Version};

use super::fields::tokens;

/// The protocols to which clients may upgrade.
#[derive(Clone, Debug)]
pub(super) struct Upgrades(Arc<[HeaderValue]>);

impl Default for Upgrades {
    fn default() -> Self {
        Self(Arc::new([HeaderValue::from_static(WEBSOCKET)]))
    }
}

impl Upgrades {
    /// Adds protocols.
    pub(super) fn with(&self, others: impl IntoIterator<Item = UpgradeProtocol>) -> Self {
        let others = others.into_iter().map(|other| other.0);
        Self(self.0.iter().cloned().chain(others).collect())
    }

    /// Returns the first protocol that the client asks for and may get.
    pub(super) fn requested(&self, parts: &Parts) -> Option<HeaderValue> {
        if parts.version != Version::HTTP_11 || !is_listed(&parts.headers) {
            return None;
        }
        self.first(&parts.headers)
    }

    /// Returns the first protocol of an Upgrade field that is let through.
    pub(super) fn first(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut offered = headers.get_all(UPGRADE).iter().flat_map(tokens);
        offered.find_map(|offered| {
            let mut allowed = self.0.iter();
            let allowed = allowed.find(|it| offered.eq_ignore_ascii_case(it.as_bytes()))?;
            Some(allowed.clone())
        })
    }
}

/// Returns true if the only protocol of a 101 response is the one that was asked for.
pub(super) fn is_switched_to(headers: &HeaderMap, protocol: &HeaderValue) -> bool {
    let mut switched = headers.get_all(UPGRADE).iter().flat_map(tokens);
    let is_same = |it: &[u8]| it.eq_ignore_ascii_case(protocol.as_bytes());
    switched.next().is_some_and(is_same) && switched.next().is_none()
}

fn is_listed(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(CONNECTION);
    let mut tokens = lists.iter().flat_map(tokens);
    tokens.any(|token| token.eq_ignore_ascii_case(b"upgrade"))
}

/// A protocol for the Upgrade field, other than HTTP and TLS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UpgradeProtocol(HeaderValue);

impl UpgradeProtocol {
    /// Parses the name of a protocol, with its version if it has one, such as `example/1`.
    ///
    /// # Errors
    /// A message for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_token = |part: &str| {
            let is_allowed =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            !part.is_empty() && part.bytes().all(is_allowed)
        };
        let is_valid = match text.split_once('/') {
            Some((name, version)) => is_token(name) && is_token(version),
            None => is_token(text),
        };
        if !is_valid {
            return Err(format!(
                "'{text}' is not a protocol of the Upgrade field: use a name such as websocket"
            ));
        }
        let name = text.split('/').next().unwrap_or(text).to_ascii_lowercase();
        if ["h2c", "h2", "http", "tls"].contains(&name.as_str()) {
            return Err(format!(
                "'{text}' would let clients send requests past this server: use h2c://HOST[:PORT] as URL for an \
                 upstream server with HTTP/2"
            ));
        }
        let value = HeaderValue::from_str(text).map_err(|error| format!("'{text}': {error}"))?;
        Ok(Self(value))
    }
}

/// The protocol that is let through by default (RFC 6455).
const WEBSOCKET: &str = "websocket";

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(
        upgrades: &Upgrades,
        fields: &[(&str, &str)],
        version: Version,
    ) -> Option<HeaderValue> {
        let mut request = http::Request::get("/").version(version);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        upgrades.requested(&request.body(()).expect("a request").into_parts().0)
    }

    #[test]
    fn only_listed_protocols_are_requested() {
        let websocket = Upgrades::default();
        let both = websocket.with(UpgradeProtocol::parse("Reverse/1"));
        let listed = ("connection", "keep-alive, Upgrade");
        for (protocols, by_default, with_another) in [
            ("WebSocket", Some("websocket"), Some("websocket")),
            ("reverse/1, websocket", Some("websocket"), Some("Reverse/1")),
            ("reverse/2", None, None),
            ("h2c", None, None),
            ("", None, None),
        ] {
            let fields = [listed, ("upgrade", protocols)];
            let is = |upgrades, version| requested(upgrades, &fields, version);
            let of = |text: Option<&'static str>| text.map(HeaderValue::from_static);
            assert_eq!(
                is(&websocket, Version::HTTP_11),
                of(by_default),
                "{protocols}"
            );
            assert_eq!(is(&both, Version::HTTP_11), of(with_another), "{protocols}");
            for version in [Version::HTTP_10, Version::HTTP_2, Version::HTTP_3] {
                assert_eq!(is(&both, version), None, "{protocols}");
            }
        }
        let unlisted = [("upgrade", "websocket")];
        assert_eq!(requested(&websocket, &unlisted, Version::HTTP_11), None);
        assert_eq!(requested(&websocket, &[listed], Version::HTTP_11), None);
    }

    #[test]
    fn other_protocol_of_a_101_is_not_believed() {
        let websocket = HeaderValue::from_static("websocket");
        for (values, is_same) in [
            (&["WebSocket"][..], true),
            (&[], false),
            (&["h2c"], false),
            (&["websocket, h2c"], false),
            (&["websocket", "h2c"], false),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(UPGRADE, HeaderValue::from_static(value));
            }
            assert_eq!(is_switched_to(&headers, &websocket), is_same, "{values:?}");
        }
    }

    #[test]
    fn protocols_past_the_proxy_are_refused() {
        for (text, word) in [
            ("", "websocket"),
            ("a b", "websocket"),
            ("a/b/c", "websocket"),
            ("h2c", "past this server"),
            ("HTTP/2.0", "past this server"),
            ("TLS/1.2", "past this server"),
        ] {
            let error = UpgradeProtocol::parse(text).expect_err(text);
            assert!(error.contains(word), "{error}");
        }
    }
}
