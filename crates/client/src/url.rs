//! URLs of users: what they may look like, and the credentials in them.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use url::{ParseError, Url};

use super::error::{Error, ErrorKind};

/// A URL for [`Client::get`](super::Client::get) and similar methods.
///
/// Text is parsed as browsers do (the [URL Standard](https://url.spec.whatwg.org/)): spaces and non-ASCII letters
/// of paths and queries are percent-encoded, international host names are converted to ASCII, and `..` is resolved.
/// A [`Uri`] is used as it is. Fragments are dropped, because they are not sent. A user name and a password become
/// [Basic](super::RequestBuilder::basic_auth) credentials, unless the request has an `authorization` field.
///
/// This trait is implemented for `&str`, `String`, `&String`, [`Url`], `&Url`, [`Uri`] and `&Uri`, and cannot be
/// implemented for other types.
///
/// ```
/// # mod courser { pub use courser_client::{self as client, Client}; }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = courser::Client::new()?;
/// let request = client.get("https://bücher.example/a b?q=ü#part").build()?;
/// assert_eq!(request.uri(), "https://xn--bcher-kva.example/a%20b?q=%C3%BC");
/// # Ok(()) }
/// ```
pub trait IntoUrl: sealed::Sealed {}

pub(super) mod sealed {
    use http::Uri;

    use super::super::error::Error;

    /// The conversion behind [`IntoUrl`](super::IntoUrl).
    pub trait Sealed {
        /// Returns the URI, which may have credentials.
        fn into_uri(self) -> Result<Uri, Error>;
    }
}

impl IntoUrl for &str {}
impl sealed::Sealed for &str {
    fn into_uri(self) -> Result<Uri, Error> {
        parse(self)
    }
}

impl IntoUrl for String {}
impl sealed::Sealed for String {
    fn into_uri(self) -> Result<Uri, Error> {
        parse(&self)
    }
}

impl IntoUrl for &String {}
impl sealed::Sealed for &String {
    fn into_uri(self) -> Result<Uri, Error> {
        parse(self)
    }
}

impl IntoUrl for Url {}
impl sealed::Sealed for Url {
    fn into_uri(self) -> Result<Uri, Error> {
        of_url(self)
    }
}

impl IntoUrl for &Url {}
impl sealed::Sealed for &Url {
    fn into_uri(self) -> Result<Uri, Error> {
        of_url(self.clone())
    }
}

impl IntoUrl for Uri {}
impl sealed::Sealed for Uri {
    fn into_uri(self) -> Result<Uri, Error> {
        Ok(self)
    }
}

impl IntoUrl for &Uri {}
impl sealed::Sealed for &Uri {
    fn into_uri(self) -> Result<Uri, Error> {
        Ok(self.clone())
    }
}

/// Parses a URL as browsers do.
fn parse(text: &str) -> Result<Uri, Error> {
    match Url::parse(text) {
        Ok(url) if has_port_for_path(&url) => Err(lacks_scheme(text)),
        Ok(url) => of_url(url),
        Err(ParseError::RelativeUrlWithoutBase) => Err(lacks_scheme(text)),
        Err(error) => {
            let text = format!("'{}' is not a URL: {error}", without_credentials(text));
            Err(Error::new(ErrorKind::Url, text))
        }
    }
}

/// Returns true for text such as `localhost:8080/x`, whose host is a scheme according to the standard.
fn has_port_for_path(url: &Url) -> bool {
    url.cannot_be_a_base() && url.path().starts_with(|first: char| first.is_ascii_digit())
}

fn lacks_scheme(text: &str) -> Error {
    let text = without_credentials(text);
    let text = format!("'{text}' has no scheme: write https:// before it");
    Error::new(ErrorKind::Url, text)
}

fn of_url(mut url: Url) -> Result<Uri, Error> {
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = url.scheme();
        let text = format!("scheme '{scheme}' is not supported: use https:// or http://");
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    url.set_fragment(None);
    let text = String::from(url);
    Uri::try_from(text.as_str()).map_err(|error| {
        let text = format!("'{}' is not a URL: {error}", without_credentials(&text));
        Error::new(ErrorKind::Url, text)
    })
}

/// Removes user name and password from a URI, and returns them as the value of an Authorization field.
pub(super) fn take_credentials(uri: &mut Uri) -> Result<Option<HeaderValue>, Error> {
    let authority = uri.authority().map_or("", Authority::as_str);
    let Some((credentials, host)) = authority.rsplit_once('@') else {
        return Ok(None);
    };
    let wrong = |error: http::Error| {
        let text = format!(
            "'{}' is not a URL: {error}",
            without_credentials(&uri.to_string())
        );
        Error::new(ErrorKind::Url, text)
    };
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let value = match (user, password) {
        ("", "") => None,
        _ => Some(basic(
            &percent_decode_str(user).collect::<Vec<u8>>(),
            &percent_decode_str(password).collect::<Vec<u8>>(),
        )?),
    };
    let stripped = Uri::builder()
        .scheme(uri.scheme_str().unwrap_or_default())
        .authority(host)
        .path_and_query(uri.path_and_query().map_or("/", PathAndQuery::as_str))
        .build()
        .map_err(wrong)?;
    *uri = stripped;
    Ok(value)
}

/// Returns the value of an Authorization field with Basic credentials (RFC 7617 §2). It is marked as sensitive.
pub(super) fn basic(user: &[u8], password: &[u8]) -> Result<HeaderValue, Error> {
    if user.contains(&b':') {
        let text = "a user name with a colon cannot be sent as Basic credentials: the server would \
                    read the part after the colon as the password";
        return Err(Error::new(ErrorKind::Send, text));
    }
    let pair = [user, b":", password].concat();
    let text = format!("Basic {}", STANDARD.encode(pair));
    let mut value = HeaderValue::try_from(text).map_err(|error| {
        Error::new(
            ErrorKind::Send,
            format!("credentials cannot be sent: {error}"),
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns a URL or a reference without user name and password, for messages.
pub(super) fn without_credentials(text: &str) -> Cow<'_, str> {
    let Some(start) = text.find("//").map(|at| at + 2) else {
        return Cow::Borrowed(text);
    };
    let rest = &text[start..];
    // WHATWG: a backslash ends the authority too.
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => Cow::Owned(format!("{}{}", &text[..start], &rest[at + 1..])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests;
