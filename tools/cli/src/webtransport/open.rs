//! Opens the session.

use std::time::Duration;

use bytes::Bytes;
use courser::h3;
use courser::webtransport;
use courser::webtransport::{ConnectError, Protocols, Session, SessionRequest};
use courser_diagnose::WebTransport;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use super::args::Arguments;
use super::connect::Connected;
use crate::get::exit::{BAD_OPTION_VALUE, Failed, HTTP_STATUS, HTTP3, TIMED_OUT, WEIRD_ANSWER};

/// Checks the flags of the request, and returns the function that makes it for a URI.
pub(super) fn request(
    arguments: &Arguments,
) -> Result<impl FnOnce(&Uri) -> SessionRequest, Failed> {
    let wrong = |text: String| Failed::new(BAD_OPTION_VALUE, text);
    let protocols = Protocols::new(arguments.protocol.iter().cloned());
    let protocols = protocols.map_err(|error| wrong(format!("--protocol: {error}")))?;
    let mut headers = HeaderMap::new();
    for field in &arguments.headers {
        let malformed = || wrong(format!("--header '{field}' is not NAME: VALUE"));
        let (name, value) = field.split_once(':').ok_or_else(malformed)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| malformed())?;
        let value = HeaderValue::try_from(value.trim()).map_err(|_| malformed())?;
        headers.append(name, value);
    }
    if let Some(origin) = &arguments.origin {
        let value = HeaderValue::try_from(origin.as_str());
        let value = value.map_err(|_| wrong(format!("--origin '{origin}' is not an origin")))?;
        headers.insert(header::ORIGIN, value);
    }
    Ok(move |uri: &Uri| {
        let request = SessionRequest::new(uri.clone()).headers(headers);
        match protocols.is_empty() {
            true => request,
            false => request.protocols(protocols).require_protocol(),
        }
    })
}

/// Opens the session. A failure tells what the server has announced or answered, and what to do.
pub(super) async fn open(
    arguments: &Arguments,
    connected: &Connected,
    request: SessionRequest,
) -> Result<Session, Failed> {
    let opening = webtransport::connect(&connected.http3, request);
    let Ok(opened) = timeout(arguments.timeout, opening).await else {
        let seconds = arguments.timeout.as_secs_f64();
        let text =
            format!("the server has not answered the request for a session within {seconds} s");
        return Err(Failed::new(TIMED_OUT, text));
    };
    let error = match opened {
        Ok(session) => return Ok(session),
        Err(error) => error,
    };
    Err(match error {
        ConnectError::Unavailable(reason) => {
            let announced = announced(&connected.http3).await;
            let seen = announced.map_or_else(String::new, |it| describe(&it));
            Failed::new(HTTP3, format!("{reason}{seen}"))
        }
        ConnectError::Refused(response) => refused(*response).await,
        ConnectError::WrongProtocol => {
            let offered = arguments.protocol.join(", ");
            let text =
                format!("the server has chosen none of the protocols of --protocol: {offered}");
            Failed::new(WEIRD_ANSWER, text)
        }
        error => Failed::new(HTTP3, error.to_string()),
    })
}

/// Returns what the server announces, or `None` if the connection has ended before.
pub(super) async fn announced(http3: &h3::Client) -> Option<WebTransport> {
    let known = http3.settings().await?;
    let others = http3.extension().settings().await?;
    let mut announced = WebTransport::of(&others, &known);
    announced.has_datagrams = Some(http3.quic().max_datagram_size().is_some());
    Some(announced)
}

/// Describes an announcement that is not sufficient.
fn describe(announced: &WebTransport) -> String {
    let missing = announced.missing();
    let missing = match missing.is_empty() {
        true => String::new(),
        false => format!(" It lacks {}.", missing.join(", and ")),
    };
    format!(
        ". The server announces: {announced}.{missing} Enable WebTransport in the server \
         ('courser serve --webtransport-echo' has it), and see 'courser probe' for what browsers need"
    )
}

async fn refused(response: Response<impl Content>) -> Failed {
    let status = response.status();
    let hint = match status {
        StatusCode::FORBIDDEN => ": it may refuse the origin, see --origin",
        StatusCode::NOT_FOUND => ": nothing is at this path",
        StatusCode::METHOD_NOT_ALLOWED => ": this path has no sessions",
        StatusCode::NOT_IMPLEMENTED => ": it has no WebTransport here",
        StatusCode::UNAUTHORIZED => ": pass credentials with --header 'authorization: ...'",
        StatusCode::TOO_MANY_REQUESTS => ": try again later",
        status if status.is_redirection() => {
            ": redirects are not followed, use the URL that it names"
        }
        _ => "",
    };
    let location = response.headers().get(header::LOCATION);
    let location = location.map_or_else(String::new, |it| {
        format!(" ({})", String::from_utf8_lossy(it.as_bytes()))
    });
    let text = content(response).await;
    let text = match text.trim() {
        "" => String::new(),
        // Servers without a text of their own repeat the status.
        text if text == status.to_string() => String::new(),
        text => format!(". It says: {text}"),
    };
    let text = format!("the server has refused the session with {status}{hint}{location}{text}");
    Failed::new(HTTP_STATUS, text)
}

/// The content of a refusal.
trait Content: http_body::Body<Data = Bytes> + Unpin {}

impl<B: http_body::Body<Data = Bytes> + Unpin> Content for B {}

/// Returns the beginning of the content of a response, which may be text for humans.
async fn content(response: Response<impl Content>) -> String {
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    let read = async {
        while let Some(Ok(frame)) = body.frame().await {
            bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
            if bytes.len() >= MAX_TEXT {
                break;
            }
        }
    };
    let _ = timeout(CONTENT_TIMEOUT, read).await;
    bytes.truncate(MAX_TEXT);
    let text = String::from_utf8_lossy(&bytes);
    // Pages are for browsers.
    let is_page = text.trim_start().starts_with('<');
    if is_page {
        String::new()
    } else {
        text.into_owned()
    }
}

/// Largest number of bytes of a refusal that are shown (limit K564), and the time to wait for them.
const MAX_TEXT: usize = 300;
const CONTENT_TIMEOUT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    #[tokio::test]
    async fn refusals_have_a_hint_and_the_text_of_the_server() {
        let respond = |status: u16, text: &'static str| {
            let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
            *response.status_mut() = StatusCode::from_u16(status).expect("a status");
            response
        };
        let failed = refused(respond(403, "origin `x` is not allowed\n")).await;
        assert_eq!(failed.code, HTTP_STATUS);
        assert_eq!(
            failed.text,
            "the server has refused the session with 403 Forbidden: it may refuse the origin, see --origin. \
             It says: origin `x` is not allowed"
        );
        let failed = refused(respond(405, "405 Method Not Allowed\n")).await;
        assert!(
            failed.text.ends_with("this path has no sessions"),
            "{failed}"
        );
        let failed = refused(respond(404, "<html>no</html>")).await;
        assert!(failed.text.ends_with("nothing is at this path"), "{failed}");
        // Limit K564.
        let long: &'static str = "x".repeat(10_000).leak();
        let failed = refused(respond(500, long)).await;
        assert!(failed.text.len() < 500, "{failed}");
    }
}
