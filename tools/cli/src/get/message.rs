//! Creates the requests of a plan.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use courser::client::Redirect;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri};
use url::Url;

use super::content::{self, Content};
use super::exit::{FAILED_INIT, Failed, URL_MALFORMED};
use super::plan::RequestPlan;
use crate::transfer::percent_decode;

/// A request, with the source of its body.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) content: Content,
    /// True with --request, whose method also applies after redirects.
    forces_method: bool,
    /// True with --location-trusted, which sends credentials to all hosts.
    keeps_credentials: bool,
}

impl Message {
    /// Creates the first request to a URL.
    pub(crate) fn new(plan: &RequestPlan, url: &str) -> Result<Self, Failed> {
        let mut url = parse_url(plan.scheme, url)?;
        let content = plan.content.clone();
        if let Some(query) = &plan.query {
            add_query(&mut url, query);
        }
        if let Some(file) = &plan.upload
            && url.path().ends_with('/')
        {
            add_file_name(&mut url, file);
        }
        let method = method(plan)?;
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        credentials(&mut headers, plan, &url)?;
        simple_fields(&mut headers, plan)?;
        if let Some(kind) = content.kind() {
            headers.insert(header::CONTENT_TYPE, value("the content type", kind)?);
        }
        for field in fields(plan)? {
            apply_field(&mut headers, &field)?;
        }
        mark_credentials(&mut headers);
        // Credentials and fragments are not sent as part of the URL.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_fragment(None);
        let uri = url.as_str().parse().map_err(|error| {
            Failed::new(URL_MALFORMED, format!("'{url}' is not a URL: {error}"))
        })?;
        Ok(Self {
            method,
            uri,
            headers,
            content,
            forces_method: plan.method.is_some(),
            keeps_credentials: plan.keeps_credentials,
        })
    }

    /// Changes the request to that after a redirect.
    pub(crate) fn redirected(&mut self, redirect: Redirect) {
        let trusted = self.keeps_credentials;
        let redirect = Redirect {
            is_same_origin: redirect.is_same_origin || trusted,
            ..redirect
        };
        redirect.clean(&mut self.headers);
        if !redirect.keeps_body {
            self.content = Content::None;
        }
        if !self.forces_method {
            self.method = redirect.method;
        }
        self.uri = redirect.uri;
    }
}

/// Parses a URL, whose scheme may be missing.
fn parse_url(scheme: &str, text: &str) -> Result<Url, Failed> {
    let whole = match text.contains("://") {
        true => text.to_owned(),
        false => format!("{scheme}://{text}"),
    };
    let url = Url::parse(&whole)
        .map_err(|error| Failed::new(URL_MALFORMED, format!("'{text}' is not a URL: {error}")))?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err(Failed::new(URL_MALFORMED, format!("'{text}' has no host")));
    }
    Ok(url)
}

fn method(plan: &RequestPlan) -> Result<Method, Failed> {
    if let Some(name) = &plan.method {
        return Method::from_bytes(name.as_bytes())
            .map_err(|_| Failed::new(FAILED_INIT, format!("'{name}' is not a method")));
    }
    Ok(match plan.content {
        _ if plan.is_head => Method::HEAD,
        Content::None => Method::GET,
        _ if plan.upload.is_some() => Method::PUT,
        _ => Method::POST,
    })
}

fn add_query(url: &mut Url, more: &str) {
    let query = match url.query() {
        Some(query) if !query.is_empty() => format!("{query}&{more}"),
        _ => more.to_owned(),
    };
    url.set_query(Some(&query));
}

/// Appends the name of the uploaded file to the URL of a folder.
fn add_file_name(url: &mut Url, path: &str) {
    let name = std::path::Path::new(path).file_name();
    if let (Some(name), Ok(mut segments)) = (name, url.path_segments_mut()) {
        segments.pop_if_empty().push(&name.to_string_lossy());
    }
}

fn credentials(headers: &mut HeaderMap, plan: &RequestPlan, url: &Url) -> Result<(), Failed> {
    if let Some(token) = &plan.bearer {
        let token = value("--oauth2-bearer", &format!("Bearer {token}"))?;
        headers.insert(header::AUTHORIZATION, token);
        return Ok(());
    }
    let in_url = || {
        let user = percent_decode(url.username());
        let password = percent_decode(url.password().unwrap_or_default());
        (!url.username().is_empty()).then(|| format!("{user}:{password}"))
    };
    let user = plan.user.clone().or_else(in_url);
    if let Some(user) = user {
        let user = if user.contains(':') {
            user
        } else {
            format!("{user}:")
        };
        let coded = format!("Basic {}", BASE64_STANDARD.encode(user));
        headers.insert(header::AUTHORIZATION, value("--user", &coded)?);
    }
    Ok(())
}

fn simple_fields(headers: &mut HeaderMap, plan: &RequestPlan) -> Result<(), Failed> {
    if let Some(name) = &plan.user_agent {
        match name.as_str() {
            "" => drop(headers.remove(header::USER_AGENT)),
            name => drop(headers.insert(header::USER_AGENT, value("--user-agent", name)?)),
        }
    }
    if let Some(referer) = &plan.referer {
        headers.insert(header::REFERER, value("--referer", referer)?);
    }
    if !plan.cookies.is_empty() {
        let cookies = plan.cookies.join("; ");
        headers.insert(header::COOKIE, value("--cookie", &cookies)?);
    }
    if let Some(range) = &plan.range {
        headers.insert(header::RANGE, value("--range", &format!("bytes={range}"))?);
    }
    Ok(())
}

/// Returns all fields of --header, with those in files.
fn fields(plan: &RequestPlan) -> Result<Vec<String>, Failed> {
    let mut fields = Vec::new();
    for field in &plan.fields {
        match field.strip_prefix('@') {
            Some(path) => {
                let text = content::read(path)?;
                let text = String::from_utf8_lossy(&text);
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                fields.extend(lines.map(str::to_owned));
            }
            None => fields.push(field.clone()),
        }
    }
    Ok(fields)
}

/// Applies `Name: value`, `Name:` to remove a field, or `Name;` for an empty one.
fn apply_field(headers: &mut HeaderMap, field: &str) -> Result<(), Failed> {
    let wrong = || {
        let text = format!("--header '{field}' is not 'Name: value'");
        Failed::new(FAILED_INIT, text)
    };
    let (name, text, is_empty) = match field.split_once(':') {
        Some((name, text)) => (name, text.trim(), false),
        None => (field.strip_suffix(';').ok_or_else(wrong)?, "", true),
    };
    let name: HeaderName = name.trim().parse().map_err(|_| wrong())?;
    if text.is_empty() && !is_empty {
        headers.remove(name);
        return Ok(());
    }
    let replaces = DEFAULTS.contains(&name);
    let text = value("--header", text)?;
    if replaces {
        headers.insert(name, text);
    } else {
        headers.append(name, text);
    }
    Ok(())
}

/// Marks credentials of all flags as sensitive, so that HPACK and QPACK do not store them in dynamic tables
/// (RFC 7541 §7.1.3, RFC 9204 §7.1.3), and --verbose hides them.
fn mark_credentials(headers: &mut HeaderMap) {
    for (name, value) in headers.iter_mut() {
        if is_credential(name) {
            value.set_sensitive(true);
        }
    }
}

/// Returns true for fields whose values give access to an account.
pub(crate) fn is_credential(name: &HeaderName) -> bool {
    [
        header::AUTHORIZATION,
        header::PROXY_AUTHORIZATION,
        header::COOKIE,
        header::SET_COOKIE,
    ]
    .contains(name)
}

fn value(what: &str, text: &str) -> Result<HeaderValue, Failed> {
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| {
        let text = format!(
            "{what} contains characters that are not allowed in a field, such as line breaks"
        );
        Failed::new(FAILED_INIT, text)
    })
}

const USER_AGENT: &str = concat!("courser/", env!("CARGO_PKG_VERSION"));
/// Fields with a default value. A field of the user replaces them.
const DEFAULTS: [HeaderName; 8] = [
    header::USER_AGENT,
    header::ACCEPT,
    header::CONTENT_TYPE,
    header::AUTHORIZATION,
    header::COOKIE,
    header::HOST,
    header::REFERER,
    header::RANGE,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn message(change: impl FnOnce(&mut RequestPlan), url: &str) -> Result<Message, Failed> {
        let mut plan = RequestPlan {
            scheme: "http",
            method: None,
            is_head: false,
            content: Content::None,
            query: None,
            upload: None,
            user: None,
            bearer: None,
            user_agent: None,
            referer: None,
            cookies: Vec::new(),
            range: None,
            fields: Vec::new(),
            keeps_credentials: false,
        };
        change(&mut plan);
        Message::new(&plan, url)
    }

    fn text() -> Content {
        let (bytes, kind) = ("x".into(), None);
        Content::Bytes { bytes, kind }
    }

    #[test]
    fn credentials_of_urls_become_a_field() {
        let message = message(|_| {}, "http://user:p%40ss@a.test/x#y").expect("a request");
        assert_eq!(message.uri, "http://a.test/x");
        assert_eq!(message.headers[header::AUTHORIZATION], "Basic dXNlcjpwQHNz");
    }

    #[test]
    fn credentials_of_all_flags_are_sensitive() {
        let lines = ["authorization: Bearer t", "Proxy-Authorization: Basic x"];
        let by_header = message(
            |request| request.fields = lines.map(str::to_owned).to_vec(),
            "a.test",
        );
        let by_cookie = message(|request| request.cookies = vec!["a=b".to_owned()], "a.test");
        let by_token = message(|request| request.bearer = Some("t".to_owned()), "a.test");
        let by_url = message(|_| {}, "http://user:pass@a.test/");
        let mut seen = 0;
        for message in [by_header, by_cookie, by_token, by_url] {
            for (name, value) in &message.expect("a request").headers {
                assert_eq!(value.is_sensitive(), is_credential(name), "{name}");
                seen += usize::from(value.is_sensitive());
            }
        }
        assert_eq!(seen, 5);
    }

    #[test]
    fn fields_are_added_replaced_and_removed() {
        let headers = ["User-Agent: me", "Accept:", "X-A: 1", "x-a: 2", "X-Empty;"];
        let message = message(
            |request| request.fields = headers.map(str::to_owned).to_vec(),
            "a.test",
        )
        .expect("a request");
        assert_eq!(message.headers[header::USER_AGENT], "me");
        assert!(!message.headers.contains_key(header::ACCEPT));
        assert_eq!(message.headers.get_all("x-a").iter().count(), 2);
        assert_eq!(message.headers["x-empty"], "");
        assert_eq!(message.uri, "http://a.test/");
    }

    #[test]
    fn method_follows_from_the_content() {
        let method = |change: fn(&mut RequestPlan)| message(change, "a").expect("a request").method;
        assert_eq!(method(|_| {}), Method::GET);
        assert_eq!(method(|request| request.is_head = true), Method::HEAD);
        assert_eq!(method(|request| request.content = text()), Method::POST);
        assert_eq!(
            method(|request| request.method = Some("PURGE".to_owned())),
            "PURGE"
        );
        assert_eq!(
            method(|request| {
                request.content = Content::Stdin;
                request.upload = Some("-".to_owned());
            }),
            Method::PUT
        );
    }

    #[test]
    fn query_is_appended_to_that_of_the_url() {
        let message = message(
            |request| request.query = Some("q=a%20b".to_owned()),
            "http://a.test/?x=1",
        )
        .expect("a request");
        assert_eq!(message.uri, "http://a.test/?x=1&q=a%20b");
        assert_eq!(message.method, Method::GET);
    }

    #[test]
    fn errors_have_exit_codes_of_curl() {
        assert_eq!(
            message(|_| {}, "http://").expect_err("no host").code,
            URL_MALFORMED
        );
        let no_colon = message(|request| request.fields.push("x".to_owned()), "a");
        assert_eq!(no_colon.expect_err("no colon").code, FAILED_INIT);
    }
}
