//! A request with all its redirects.

use std::sync::Arc;
use std::time::Duration;

use http::header;
use http::request::Parts;
use http::{Request, Response, Version};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Limited};

use super::body::Body;
use super::cookies;
use super::core::Core;
use super::error::{Error, ErrorKind};
use super::exchange::exchange;
use super::history::{History, Hop};
use super::redirect::Redirect;
use super::request_body::RequestBody;
use super::request_head;
use super::url;

/// Sends a request, and follows redirects as far as the policy allows.
pub(super) async fn follow(
    core: &Arc<Core>,
    request: Request<RequestBody>,
) -> Result<Response<Body>, Error> {
    let (mut parts, mut body) = request.into_parts();
    add_defaults(core, &mut parts)?;
    let policy = &core.settings.redirects;
    let mut hops: Vec<Hop> = Vec::new();
    loop {
        check_scheme(core, &parts)?;
        let replay = body.handle();
        let mut response = exchange_with_cookies(core, &mut parts, body).await?;
        let (status, headers) = (response.status(), response.headers());
        let redirect = match policy.is_none() {
            true => None,
            false => Redirect::of(&parts.method, &parts.uri, status, headers)?,
        };
        let Some(mut redirect) = redirect else {
            return Ok(with_history(response, parts, hops));
        };
        let credentials = url::take_credentials(&mut redirect.uri)?;
        hops.push(Hop::of(&parts, &mut response));
        let follows = policy.follows(&redirect.uri, status, &hops)?;
        let next = match (follows, redirect.keeps_body) {
            (false, _) => None,
            // A body that was sent and cannot be repeated leaves the redirect to the caller.
            (true, true) => replay.restart(),
            (true, false) => Some(RequestBody::empty()),
        };
        let Some(next) = next else {
            if let Some(hop) = hops.pop() {
                *response.headers_mut() = hop.headers;
            }
            return Ok(with_history(response, parts, hops));
        };
        discard(response).await;
        body = next;
        redirect.clean(&mut parts.headers);
        if let Some(credentials) = credentials {
            parts.headers.insert(header::AUTHORIZATION, credentials);
        }
        parts.method = redirect.method;
        parts.uri = redirect.uri;
    }
}

/// Adds what the settings say about every request, and replaces credentials in the URL by a field.
fn add_defaults(core: &Core, parts: &mut Parts) -> Result<(), Error> {
    let settings = &core.settings;
    let headers = &mut parts.headers;
    if let Some(credentials) = url::take_credentials(&mut parts.uri)? {
        let authorization = headers.entry(header::AUTHORIZATION);
        authorization.or_insert(credentials);
    }
    for name in settings.default_headers.keys() {
        if !headers.contains_key(name) {
            for value in settings.default_headers.get_all(name) {
                headers.append(name, value.clone());
            }
        }
    }
    if settings.decompresses {
        request_head::request_codings(headers);
    }
    if let Some(name) = &settings.user_agent
        && !headers.contains_key(header::USER_AGENT)
    {
        headers.insert(header::USER_AGENT, name.clone());
    }
    Ok(())
}

fn check_scheme(core: &Core, parts: &Parts) -> Result<(), Error> {
    if core.settings.https_only && parts.uri.scheme_str() == Some("http") {
        let text = format!("only https is allowed, and '{}' is not secure", parts.uri);
        return Err(Error::new(ErrorKind::Url, text));
    }
    Ok(())
}

/// Sends a request with the cookies of the store, and stores those of the response.
async fn exchange_with_cookies(
    core: &Arc<Core>,
    parts: &mut Parts,
    body: RequestBody,
) -> Result<Response<Body>, Error> {
    let Some(store) = core.settings.cookies.as_deref() else {
        return exchange(core, parts, body).await;
    };
    let own = cookies::apply(store, parts);
    let response = exchange(core, parts, body).await?;
    cookies::restore(&mut parts.headers, own);
    cookies::store(store, &parts.uri, response.headers());
    Ok(response)
}

/// Reads the rest of a short response. Over HTTP/1.1 the connection can then carry the next request.
///
/// Over other versions the next request does not wait. To drop the response would cancel it if its end comes later than
/// its header section, as with many servers: servers count cancelled requests as an attack, and some fail on them.
async fn discard(response: Response<Body>) {
    if response.body().is_end_stream() {
        return;
    }
    let has_own_connection = response.version() <= Version::HTTP_11;
    let mut body = Limited::new(response.into_body(), MAX_DISCARDED);
    let rest = async move { while let Some(Ok(_)) = body.frame().await {} };
    // A response that is longer or slower costs its connection, or is cancelled.
    let rest = tokio::time::timeout(MAX_DISCARD_TIME, rest);
    if !has_own_connection {
        tokio::spawn(rest);
        return;
    }
    let _ = rest.await;
    // Lets the tasks run that read the end of the response and return the connection to the pool.
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
    }
}

fn with_history(mut response: Response<Body>, parts: Parts, hops: Vec<Hop>) -> Response<Body> {
    response.body_mut().set_url(&parts.uri);
    let history = History::new(parts.uri, hops);
    response.extensions_mut().insert(history);
    response
}

/// The most of a redirect's content that is read to keep its connection, K523: more takes longer than a new connection.
const MAX_DISCARDED: usize = 64 * 1024;
/// The longest time for it, K523.
const MAX_DISCARD_TIME: Duration = Duration::from_secs(1);
/// Turns of other tasks until a connection has returned: that of the connection, and that which waits for it.
const TURNS: usize = 3;
