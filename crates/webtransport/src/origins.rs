//! The origins whose pages may open sessions (draft-ietf-webtrans-http3-16 §3.2, RFC 6454).

use http::header::ORIGIN;
use http::uri::{Authority, Uri};
use http::{HeaderMap, HeaderValue};
use thiserror::Error;

/// The policy of a server for the `Origin` field of session requests.
///
/// A browser sends the origin of the page that opens a session, and any page can try to reach any server. Programs
/// that are no browsers usually send none, and pass unless the policy is [`required`](Self::required). Refused
/// requests are answered with 403.
///
/// ```
/// use courser_webtransport::Origins;
/// let origins = Origins::same_host().and("https://app.example")?.required();
/// # Ok::<(), courser_webtransport::InvalidOrigin>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origins {
    base: Base,
    listed: Vec<Origin>,
    is_required: bool,
}

/// The origins that need not be listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Base {
    /// The origin of the host and port that the request asks for.
    SameHost,
    /// None.
    Listed,
    /// All.
    Any,
}

/// An origin, as far as it is compared.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Origin {
    /// `null`: a sandboxed document, a file, or a redirect across origins.
    Null,
    /// A scheme, a host in lower case, and a port.
    Tuple {
        scheme: String,
        host: String,
        port: Option<u16>,
    },
}

/// A text that is not an origin.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "`{0}` is not an origin: allowed are a scheme and a host with an optional port, without wildcards, such as https://app.example:8443, and null"
)]
pub struct InvalidOrigin(String);

/// The reason why a request is refused because of its origin.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum OriginError {
    /// The policy allows other origins.
    #[error("origin `{0}` is not allowed")]
    NotAllowed(String),
    /// The request has several `Origin` fields.
    #[error("more than one Origin field")]
    Several,
    /// The field is not an origin.
    #[error("an Origin field that is not an origin")]
    Invalid,
    /// The request has no `Origin` field, and the policy requires one.
    #[error("no Origin field, which this server requires")]
    Absent,
}

impl Origins {
    /// Allows pages of the host and port that the request asks for. This is the default.
    pub const fn same_host() -> Self {
        Self::of(Base::SameHost)
    }

    /// Allows the listed origins only; add them with [`and`](Self::and).
    pub const fn listed() -> Self {
        Self::of(Base::Listed)
    }

    /// Allows pages of any origin, `null` included. Any web site can then open sessions from the browsers of its
    /// visitors, inside their networks and with the credentials that the server accepts.
    pub const fn any() -> Self {
        Self::of(Base::Any)
    }

    const fn of(base: Base) -> Self {
        Self {
            base,
            listed: Vec::new(),
            is_required: false,
        }
    }

    /// Also allows an origin, such as `https://app.example:8443` or `null`.
    ///
    /// # Errors
    ///
    /// Returns an error for a text that is not an origin.
    pub fn and(mut self, origin: &str) -> Result<Self, InvalidOrigin> {
        let origin = Origin::parse(origin).ok_or_else(|| InvalidOrigin(origin.to_owned()))?;
        self.listed.push(origin);
        Ok(self)
    }

    /// Refuses requests without an `Origin` field, which browsers always send.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Checks the `Origin` field of a request for `authority`. Returns the field, if there is one.
    ///
    /// # Errors
    ///
    /// Returns the reason why the request is refused.
    pub fn check(
        &self,
        headers: &HeaderMap,
        authority: &Authority,
    ) -> Result<Option<HeaderValue>, OriginError> {
        let mut fields = headers.get_all(ORIGIN).iter();
        let field = match (fields.next(), fields.next()) {
            (None, _) if self.is_required => return Err(OriginError::Absent),
            (None, _) => return Ok(None),
            (Some(_), Some(_)) => return Err(OriginError::Several),
            (Some(field), None) => field,
        };
        let text = field.to_str().map_err(|_| OriginError::Invalid)?;
        let origin = Origin::parse(text).ok_or(OriginError::Invalid)?;
        match self.allows(&origin, authority) {
            true => Ok(Some(field.clone())),
            false => Err(OriginError::NotAllowed(text.to_owned())),
        }
    }

    fn allows(&self, origin: &Origin, authority: &Authority) -> bool {
        let is_in_base = match self.base {
            Base::Any => true,
            Base::Listed => false,
            Base::SameHost => *origin == Origin::of_resource(authority),
        };
        is_in_base || self.listed.contains(origin)
    }
}

impl Default for Origins {
    fn default() -> Self {
        Self::same_host()
    }
}

impl Origin {
    /// Returns the origin of a resource with scheme https.
    fn of_resource(authority: &Authority) -> Self {
        Self::Tuple {
            scheme: "https".to_owned(),
            host: authority.host().to_ascii_lowercase(),
            port: authority.port_u16().or(Some(443)),
        }
    }

    /// Parses the serialization of one origin (RFC 6454 §6.2, §7.1).
    fn parse(text: &str) -> Option<Self> {
        if text == "null" {
            return Some(Self::Null);
        }
        let (scheme, authority) = text.split_once("://")?;
        // `Uri` accepts an empty scheme.
        if scheme.is_empty()
            || text.len() > LONGEST
            || authority.contains(['/', '@', '?', '#', '*'])
        {
            return None;
        }
        // Checks the syntax of the parts.
        let uri: Uri = text.parse().ok()?;
        let authority = uri.authority()?;
        // `Uri` accepts ports above 65535.
        let port = match authority.as_str().strip_prefix(authority.host())? {
            "" => default_port(scheme),
            port => Some(port.strip_prefix(':')?.parse().ok()?),
        };
        (!authority.host().is_empty()).then(|| Self::Tuple {
            scheme: scheme.to_ascii_lowercase(),
            host: authority.host().to_ascii_lowercase(),
            port,
        })
    }
}

fn default_port(scheme: &str) -> Option<u16> {
    if scheme.eq_ignore_ascii_case("https") {
        Some(443)
    } else if scheme.eq_ignore_ascii_case("http") {
        Some(80)
    } else {
        None
    }
}

/// Longest text that is parsed as an origin in bytes (attack A259): a scheme, a name of 253 bytes and a port.
const LONGEST: usize = 320;

#[cfg(test)]
mod tests;
