//! Creates the requests of a plan.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use courser::client::Redirect;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Uri};
use url::Url;

use super::content::{self, Content};
use super::exit::{FAILED_INIT, Failed};
use super::plan::{NetrcPlan, RequestPlan, Upload};
use super::target::Target;
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
    /// The fragment of the URL, which is not sent.
    pub(crate) fragment: Option<String>,
    /// True to name the URL of the request before a redirect in Referer.
    has_auto_referer: bool,
    /// The statuses of redirects after which POST is kept.
    keeps_post: [bool; 3],
    netrc: Option<NetrcPlan>,
}

impl Message {
    /// Creates the first request to a URL.
    pub(crate) fn new(
        plan: &RequestPlan,
        url: &str,
        upload: Option<&Upload>,
    ) -> Result<Self, Failed> {
        let mut target = Target::parse(plan.scheme, url, plan.keeps_dots)?;
        let content = upload.map_or(&plan.content, |upload| &upload.content);
        let content = content.clone();
        if let Some(query) = &plan.query {
            target.add_query(query);
        }
        if let Some(upload) = upload.filter(|upload| upload.content != Content::Stdin) {
            target.add_file_name(&upload.file);
        }
        let uri = target.uri(plan.target.as_deref())?;
        plan.protocols.check("--proto", uri.scheme_str())?;
        let method = method(plan, upload.is_some())?;
        let mut headers = HeaderMap::new();
        credentials(&mut headers, plan, target.url())?;
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        if plan.accepts_json {
            headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        }
        simple_fields(&mut headers, plan)?;
        if let Some(kind) = content.kind() {
            headers.insert(header::CONTENT_TYPE, value("the content type", kind)?);
        }
        let mut given = Vec::new();
        for field in fields(plan)? {
            apply_field(&mut headers, &field, &mut given)?;
        }
        mark_credentials(&mut headers);
        Ok(Self {
            method,
            uri,
            headers,
            content,
            forces_method: plan.method.is_some(),
            keeps_credentials: plan.keeps_credentials,
            fragment: target.fragment().map(str::to_owned),
            has_auto_referer: plan.has_auto_referer,
            keeps_post: plan.keeps_post,
            netrc: plan.netrc.clone(),
        })
    }

    /// Returns the URL with its fragment.
    pub(crate) fn effective_url(&self) -> String {
        match &self.fragment {
            Some(fragment) => format!("{}#{fragment}", self.uri),
            None => self.uri.to_string(),
        }
    }

    /// Changes the request to that after a redirect. `location` is the reference in the response.
    pub(crate) fn redirected(&mut self, redirect: Redirect, status: StatusCode, location: &[u8]) {
        let is_kept = match status.as_u16() {
            301 => self.keeps_post[0],
            302 => self.keeps_post[1],
            303 => self.keeps_post[2],
            _ => false,
        };
        let mut redirect = Redirect {
            is_same_origin: redirect.is_same_origin || self.keeps_credentials,
            ..redirect
        };
        if is_kept && self.method == Method::POST {
            redirect.keeps_body = true;
            redirect.method = Method::POST;
        }
        redirect.clean(&mut self.headers);
        if !redirect.keeps_body {
            self.content = Content::None;
        }
        if !self.forces_method {
            self.method = redirect.method;
        }
        let before = std::mem::replace(&mut self.uri, redirect.uri);
        // RFC 9110 §10.2.2: a reference without a fragment inherits that of the URL before it.
        if let Some(at) = location.iter().position(|byte| *byte == b'#') {
            self.fragment = Some(String::from_utf8_lossy(&location[at + 1..]).into_owned());
        }
        if self.has_auto_referer {
            self.name_referer(&before);
        }
        self.add_netrc();
    }

    /// Names the URL of the request before a redirect in Referer, but not to an http URL after an https one
    /// (RFC 9110 §10.1.3).
    fn name_referer(&mut self, before: &Uri) {
        self.headers.remove(header::REFERER);
        let is_weaker =
            before.scheme_str() == Some("https") && self.uri.scheme_str() == Some("http");
        if let Some(value) = HeaderValue::try_from(before.to_string())
            .ok()
            .filter(|_| !is_weaker)
        {
            self.headers.insert(header::REFERER, value);
        }
    }

    /// Adds the credentials of .netrc for the host after a redirect.
    fn add_netrc(&mut self) {
        let host = self.uri.host().unwrap_or_default();
        let found = self.netrc.as_ref().and_then(|it| it.netrc.find(host, None));
        if let Some(user) = found.filter(|_| !self.headers.contains_key(header::AUTHORIZATION))
            && let Ok(mut value) = HeaderValue::try_from(basic(&user))
        {
            value.set_sensitive(true);
            self.headers.insert(header::AUTHORIZATION, value);
        }
    }
}

fn method(plan: &RequestPlan, is_upload: bool) -> Result<Method, Failed> {
    if let Some(name) = &plan.method {
        return Method::from_bytes(name.as_bytes())
            .map_err(|_| Failed::new(FAILED_INIT, format!("'{name}' is not a method")));
    }
    Ok(match plan.content {
        _ if plan.is_head => Method::HEAD,
        _ if is_upload => Method::PUT,
        Content::None => Method::GET,
        _ => Method::POST,
    })
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
    let host = url.host_str().unwrap_or_default();
    let in_netrc = |user: Option<&str>| plan.netrc.as_ref()?.netrc.find(host, user);
    let user = match (&plan.user, &plan.netrc) {
        (Some(user), _) => Some(user.clone()),
        (None, None) => in_url(),
        (None, Some(netrc)) if netrc.is_optional => in_url().or_else(|| in_netrc(None)),
        (None, Some(_)) => {
            let name = percent_decode(url.username());
            let name = Some(&*name).filter(|name| !name.is_empty());
            in_netrc(name).or_else(in_url)
        }
    };
    if let Some(user) = user {
        headers.insert(header::AUTHORIZATION, value("--user", &basic(&user))?);
    }
    Ok(())
}

/// Returns credentials of the scheme Basic (RFC 7617).
fn basic(user: &str) -> String {
    let colon = if user.contains(':') { "" } else { ":" };
    format!("Basic {}", BASE64_STANDARD.encode(format!("{user}{colon}")))
}

fn simple_fields(headers: &mut HeaderMap, plan: &RequestPlan) -> Result<(), Failed> {
    if let Some(name) = &plan.user_agent {
        match name.as_str() {
            "" => drop(headers.remove(header::USER_AGENT)),
            name => drop(headers.insert(header::USER_AGENT, value("--user-agent", name)?)),
        }
    }
    for (name, text) in &plan.conditions {
        headers.insert(name, value("the condition", text)?);
    }
    if let Some(referer) = &plan.referer {
        headers.insert(header::REFERER, value("--referer", referer)?);
    }
    if !plan.cookies.is_empty() {
        let cookies = plan.cookies.join("; ");
        headers.insert(header::COOKIE, value("--cookie", &cookies)?);
    }
    if let Some(range) = &plan.range {
        // As in curl, a single number means the rest from there on.
        let dash = if range.contains('-') { "" } else { "-" };
        let range = format!("bytes={range}{dash}");
        headers.insert(header::RANGE, value("--range", &range)?);
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

/// Applies `Name: value`, `Name:` to remove a field, or `Name;` for an empty one. `given` are the fields of the
/// user so far.
fn apply_field(
    headers: &mut HeaderMap,
    field: &str,
    given: &mut Vec<HeaderName>,
) -> Result<(), Failed> {
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
    let replaces = !given.contains(&name) || name == header::HOST || name == header::COOKIE;
    let text = value("--header", text)?;
    if replaces {
        headers.insert(name.clone(), text);
    } else {
        headers.append(name.clone(), text);
    }
    given.push(name);
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
#[cfg(test)]
mod tests {
    use super::super::exit::URL_MALFORMED;
    use super::super::netrc::Netrc;
    use super::super::protocols::Protocols;
    use super::*;

    fn message(change: impl FnOnce(&mut RequestPlan), url: &str) -> Result<Message, Failed> {
        let mut plan = RequestPlan {
            scheme: "http",
            method: None,
            is_head: false,
            content: Content::None,
            query: None,
            user: None,
            bearer: None,
            user_agent: None,
            referer: None,
            cookies: Vec::new(),
            range: None,
            fields: Vec::new(),
            keeps_credentials: false,
            keeps_dots: false,
            target: None,
            protocols: Protocols::parse("--proto", None).expect("the default"),
            has_auto_referer: false,
            keeps_post: [false; 3],
            netrc: None,
            conditions: Vec::new(),
            accepts_json: false,
        };
        change(&mut plan);
        Message::new(&plan, url, None)
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
            method(|request| request.content = Content::Stdin),
            Method::POST
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

    #[test]
    fn repeated_fields_are_all_sent() {
        let headers = ["Accept: a", "Accept: b", "Host: x", "Host: y"];
        let message = message(
            |request| request.fields = headers.map(str::to_owned).to_vec(),
            "a.test",
        )
        .expect("a request");
        let accepted: Vec<_> = message.headers.get_all(header::ACCEPT).iter().collect();
        assert_eq!(accepted, ["a", "b"]);
        assert_eq!(message.headers.get_all(header::HOST).iter().count(), 1);
    }

    #[test]
    fn range_of_one_number_is_the_rest() {
        for (range, sent) in [
            ("5", "bytes=5-"),
            ("-5", "bytes=-5"),
            ("0-1,5-", "bytes=0-1,5-"),
        ] {
            let message = message(|plan| plan.range = Some(range.to_owned()), "a.test");
            assert_eq!(message.expect("a request").headers[header::RANGE], sent);
        }
    }

    fn redirect(message: &Message, status: u16, location: &'static str) -> (Redirect, StatusCode) {
        let status = StatusCode::from_u16(status).expect("a status");
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, HeaderValue::from_static(location));
        let found = Redirect::of(&message.method, &message.uri, status, &headers);
        (found.expect("a URL").expect("a redirect"), status)
    }

    #[test]
    fn referer_and_fragment_follow_redirects() {
        let mut message = message(
            |plan| plan.has_auto_referer = true,
            "http://u:p@a.test/x?y#z",
        )
        .expect("a request");
        assert_eq!(message.effective_url(), "http://a.test/x?y#z");
        let location = "https://b.test/1";
        let (found, status) = redirect(&message, 302, location);
        message.redirected(found, status, location.as_bytes());
        assert_eq!(message.headers[header::REFERER], "http://a.test/x?y");
        assert_eq!(message.effective_url(), "https://b.test/1#z");
        let location = "http://b.test/2#other";
        let (found, status) = redirect(&message, 302, location);
        message.redirected(found, status, location.as_bytes());
        assert!(!message.headers.contains_key(header::REFERER));
        assert_eq!(message.effective_url(), "http://b.test/2#other");
    }

    #[test]
    fn post_is_kept_after_redirects_on_request() {
        for (index, code) in [301, 302, 303].into_iter().enumerate() {
            for keeps in [true, false] {
                let mut message = message(
                    |plan| {
                        plan.content = text();
                        plan.keeps_post[index] = keeps;
                    },
                    "a.test",
                )
                .expect("a request");
                let (found, status) = redirect(&message, code, "/x");
                message.redirected(found, status, b"/x");
                assert_eq!(message.method == Method::POST, keeps, "{code}");
                assert_eq!(message.content != Content::None, keeps, "{code}");
            }
        }
    }

    #[test]
    fn credentials_of_netrc_belong_to_their_host() {
        let file = std::env::temp_dir().join(format!("courser-netrc-{}", std::process::id()));
        let text = "machine a.test login a password 1 machine b.test login b password 2";
        std::fs::write(&file, text).expect("written");
        let netrc = Netrc::read(&file, false).expect("a file");
        std::fs::remove_file(&file).expect("removed");
        let with = |is_optional| {
            let netrc = netrc.clone();
            move |plan: &mut RequestPlan| plan.netrc = Some(NetrcPlan { netrc, is_optional })
        };
        let mut first = message(with(false), "http://a.test/").expect("a request");
        assert_eq!(first.headers[header::AUTHORIZATION], "Basic YTox");
        let (found, status) = redirect(&first, 302, "http://b.test/");
        first.redirected(found, status, b"");
        assert_eq!(first.headers[header::AUTHORIZATION], "Basic Yjoy");
        let (found, status) = redirect(&first, 302, "http://c.test/");
        first.redirected(found, status, b"");
        assert!(!first.headers.contains_key(header::AUTHORIZATION));
        let in_url = "http://me:x@a.test/";
        let optional = message(with(true), in_url).expect("a request");
        assert_eq!(optional.headers[header::AUTHORIZATION], "Basic bWU6eA==");
    }
}
