//! Selection of the proxy for a request.

use std::fmt;
use std::sync::Arc;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use super::error::{Error, ErrorKind};
use super::masque_url::{self, MasqueUrl};
use super::origin::Origin;

/// The proxies of a client. Requests use HTTP/3 through MASQUE proxies only.
///
/// ```
/// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use courser::Client;
/// use courser::client::Proxy;
///
/// // One proxy for all URLs, with exceptions.
/// let proxy = Proxy::all("http://user:password@proxy.example:3128").except("localhost,.internal");
/// // One for each scheme of URLs: `https` URLs go through SOCKS, `http` URLs directly.
/// let by_scheme = Proxy::by_scheme(None, Some("socks5h://127.0.0.1"));
/// // A function of the URL of the request.
/// let chosen = Proxy::function(|url| match url.host() {
///     Some(host) if host.ends_with(".onion") => Some("socks5h://127.0.0.1:9050".to_owned()),
///     _ => None,
/// });
/// let client = Client::builder().proxy(chosen).build()?;
/// # drop((proxy, by_scheme, client));
/// # Ok(()) }
/// ```
///
/// The URL of a proxy is `http://user:password@host:port`, or has another scheme:
///
/// - `https`: connects to the proxy over TLS,
/// - `socks5h`: SOCKS5 (RFC 1928), with names resolved by the proxy,
/// - `socks5`: SOCKS5, with names resolved by the client,
/// - `socks4a`, `socks4`: SOCKS4 with and without names; IPv4 only, and a password is ignored,
/// - `masque`: connects to the proxy over HTTP/3, with the feature `masque`; see [`Proxy::masque`].
///
/// The default port of SOCKS proxies is 1080. Exceptions are a list in the format of `NO_PROXY`: hosts, domains
/// and networks to connect to directly, separated by commas.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Proxy {
    /// The proxies in the environment variables `http_proxy`, `HTTPS_PROXY` and `ALL_PROXY`, except for the
    /// hosts in `NO_PROXY`. If a proxy cannot be used, requests through it fail.
    #[default]
    Environment,
    /// Connects directly and ignores the environment.
    Direct,
    /// This proxy for all hosts except those in a list.
    Url {
        /// The URL of the proxy.
        url: String,
        /// The exceptions.
        except: String,
    },
    /// One proxy for URLs of each scheme, except for the hosts in a list.
    Schemes {
        /// The URL of the proxy for `http` URLs. `None` to connect directly.
        http: Option<String>,
        /// The URL of the proxy for `https` URLs. `None` to connect directly.
        https: Option<String>,
        /// The exceptions.
        except: String,
    },
    /// A function that chooses the proxy of each request; see [`Proxy::function`].
    Function(ProxyFunction),
}

/// A function that chooses the proxy of a request.
#[derive(Clone)]
pub struct ProxyFunction(Arc<Choose>);

type Choose = dyn Fn(&Uri) -> Option<String> + Send + Sync;

impl Proxy {
    /// Returns one proxy for all hosts, without exceptions.
    pub fn all(url: impl Into<String>) -> Self {
        Self::Url {
            url: url.into(),
            except: String::new(),
        }
    }

    /// Returns the proxies for `http` and for `https` URLs, without exceptions.
    pub fn by_scheme(http: Option<&str>, https: Option<&str>) -> Self {
        Self::Schemes {
            http: http.map(str::to_owned),
            https: https.map(str::to_owned),
            except: String::new(),
        }
    }

    /// Chooses the proxy of each request by a function of its URL, which returns the URL of the proxy, or `None` to
    /// connect directly.
    ///
    /// It is called for every request and redirect, in the task that sends it, so it must not block. If it returns
    /// an invalid URL, the request fails with [`ErrorKind::Config`] or [`ErrorKind::Unsupported`].
    pub fn function(choose: impl Fn(&Uri) -> Option<String> + Send + Sync + 'static) -> Self {
        Self::Function(ProxyFunction(Arc::new(choose)))
    }

    /// Returns a MASQUE proxy for all hosts, without exceptions: a URI template of CONNECT-UDP (RFC 9298 §2) such as
    /// `https://proxy.example/.well-known/masque/udp/{target_host}/{target_port}/`, or `HOST[:PORT]` or
    /// `masque://HOST[:PORT]` for the well-known one. The default port is 443. A user and password may stand before the
    /// host.
    ///
    /// The client has one connection over HTTP/3 to the proxy. Requests use HTTP/3 to their servers through
    /// CONNECT-UDP, and HTTP/2 or HTTP/1.1 through CONNECT on the same connection: if the proxy refuses CONNECT-UDP, if the
    /// server does not answer over QUIC, or if the version of the request asks for it. A proxy that is not reached over
    /// QUIC is used like one with the scheme `https`.
    ///
    /// ```
    /// # mod courser { pub use courser_client::{self as client, Client}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use courser::Client;
    /// use courser::client::Proxy;
    ///
    /// let proxy = Proxy::masque("alice:token@proxy.example:4433")?.except("localhost");
    /// let client = Client::builder().proxy(proxy).build()?;
    /// assert!(Proxy::masque("https://proxy.example/{target_host}").is_err());
    /// # drop(client);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if it is neither a template with both variables nor a host.
    #[cfg(feature = "masque")]
    pub fn masque(proxy: &str) -> Result<Self, Error> {
        let is_url = proxy.contains("://");
        let url = match is_url {
            true => proxy.to_owned(),
            false => format!("masque://{proxy}"),
        };
        match masque_url::parse(&url) {
            Some(parsed) => parsed.map(|_| Self::all(url)),
            None => Err(Error::new(
                ErrorKind::Config,
                "a MASQUE proxy is HOST[:PORT] or a template with {target_host} and {target_port}",
            )),
        }
    }

    /// Connects directly to these hosts, domains and networks, separated by commas as in `NO_PROXY`. Has no effect
    /// on [`Environment`](Self::Environment), [`Direct`](Self::Direct) and [`Function`](Self::Function).
    #[must_use]
    pub fn except(mut self, list: impl Into<String>) -> Self {
        if let Self::Url { except, .. } | Self::Schemes { except, .. } = &mut self {
            *except = list.into();
        }
        self
    }
}

impl PartialEq for ProxyFunction {
    /// Returns true for clones of the same function.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ProxyFunction {}

impl fmt::Debug for ProxyFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProxyFunction").finish_non_exhaustive()
    }
}

/// The proxy of a connection, with its credentials. Connections with different credentials are not shared.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Via {
    /// The URL without credentials.
    pub(super) uri: Uri,
    /// The value of `proxy-authorization`.
    pub(super) authorization: Option<HeaderValue>,
    /// The user and password of a SOCKS proxy.
    pub(super) credentials: Option<(String, String)>,
    /// The URI template of a MASQUE proxy.
    pub(super) template: Option<Arc<str>>,
}

impl Via {
    fn of(intercept: &Intercept) -> Self {
        let raw = intercept.raw_auth();
        Self {
            uri: intercept.uri().clone(),
            authorization: intercept.basic_auth().cloned(),
            credentials: raw.map(|(user, password)| (user.to_owned(), password.to_owned())),
            template: None,
        }
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.template {
            Some(_) => "masque",
            None => self.uri.scheme_str().unwrap_or("http"),
        };
        let authority = self.uri.authority().map_or("", |it| it.as_str());
        // The matcher removes credentials; this only makes sure of it.
        let place = authority.rsplit('@').next().unwrap_or_default();
        write!(f, "{scheme}://{place}")
    }
}

impl fmt::Debug for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The configured proxies and the hosts to which they apply.
#[derive(Debug)]
pub(super) struct Proxies {
    rule: Rule,
    /// Proxies that cannot be used. [`Matcher`] would silently skip them, so it has invalid names in their
    /// place, and a request through such a name fails with the reason.
    unusable: Vec<Unusable>,
    /// MASQUE proxies, for which [`Matcher`] has placeholders too.
    masque: Vec<MasqueUrl>,
}

#[derive(Debug)]
enum Rule {
    Hosts(Box<Matcher>),
    Function(ProxyFunction),
}

#[derive(Debug)]
struct Unusable {
    placeholder: String,
    kind: ErrorKind,
    text: String,
}

impl Proxies {
    /// Returns the proxies of a setting, or `None` if all connections are direct.
    pub(super) fn of(proxy: &Proxy) -> Result<Option<Self>, Error> {
        Ok(match proxy {
            Proxy::Environment => Self::of_environment(|name| std::env::var(name).ok()),
            Proxy::Direct => None,
            Proxy::Url { url, except } => Some(Self::of_url(url, except)?),
            Proxy::Schemes {
                http,
                https,
                except,
            } => Self::of_schemes(http.as_deref(), https.as_deref(), except)?,
            Proxy::Function(function) => Some(Self {
                rule: Rule::Function(function.clone()),
                unusable: Vec::new(),
                masque: Vec::new(),
            }),
        })
    }

    /// Reads the proxies from environment variables; `variable` returns their values. Returns `None` if there are
    /// none.
    fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        // In a CGI program, HTTP_PROXY may come from a field of the client's request.
        if variable("REQUEST_METHOD").is_some() {
            return None;
        }
        let (mut unusable, mut masque) = (Vec::new(), Vec::new());
        let first = |names: [&'static str; 2]| {
            let mut named = names.into_iter();
            named.find_map(|name| variable(name).map(|value| (name, value)))
        };
        let mut checked = |names| {
            let (name, value) = first(names)?;
            if value.is_empty() {
                return None;
            }
            let Err((kind, text)) = check(&value, name) else {
                return Some(masque_url::place(value, &mut masque));
            };
            let placeholder = format!("{}.unusable.invalid", unusable.len());
            let url = format!("http://{placeholder}");
            unusable.push(Unusable {
                placeholder,
                kind,
                text,
            });
            Some(url)
        };
        let all = checked(["ALL_PROXY", "all_proxy"]);
        let http = checked(["HTTP_PROXY", "http_proxy"]);
        let https = checked(["HTTPS_PROXY", "https_proxy"]);
        // Without a proxy, no request has to look for one.
        if all.is_none() && http.is_none() && https.is_none() {
            return None;
        }
        let matcher = Matcher::builder()
            .all(all.unwrap_or_default())
            .http(http.unwrap_or_default())
            .https(https.unwrap_or_default())
            .no(first(["NO_PROXY", "no_proxy"]).map_or_else(String::new, |(_, value)| value))
            .build();
        Some(Self {
            rule: Rule::Hosts(Box::new(matcher)),
            unusable,
            masque,
        })
    }

    /// Returns one proxy for all hosts except those in `except`.
    fn of_url(url: &str, except: &str) -> Result<Self, Error> {
        check(url, "the proxy's URL").map_err(|(kind, text)| Error::new(kind, text))?;
        let mut masque = Vec::new();
        let url = masque_url::place(url.to_owned(), &mut masque);
        let matcher = Matcher::builder().all(url).no(except.to_owned());
        Ok(Self::of_matcher(matcher.build(), masque))
    }

    /// Returns one proxy for each scheme, or `None` if neither has one.
    fn of_schemes(
        http: Option<&str>,
        https: Option<&str>,
        except: &str,
    ) -> Result<Option<Self>, Error> {
        for (scheme, url) in [("http", http), ("https", https)] {
            let source = format!("the URL of the proxy for {scheme}");
            if let Some(url) = url {
                check(url, &source).map_err(|(kind, text)| Error::new(kind, text))?;
            }
        }
        if http.is_none() && https.is_none() {
            return Ok(None);
        }
        let mut masque = Vec::new();
        let mut place = |url: Option<&str>| {
            let url = url.unwrap_or_default().to_owned();
            masque_url::place(url, &mut masque)
        };
        let matcher = Matcher::builder().http(place(http)).https(place(https));
        let matcher = matcher.no(except.to_owned()).build();
        Ok(Some(Self::of_matcher(matcher, masque)))
    }

    fn of_matcher(matcher: Matcher, masque: Vec<MasqueUrl>) -> Self {
        Self {
            rule: Rule::Hosts(Box::new(matcher)),
            unusable: Vec::new(),
            masque,
        }
    }

    /// Returns the proxy for requests to a URL of `origin`, or `None` for a direct connection.
    ///
    /// # Errors
    /// Returns an error if the selected proxy cannot be used.
    pub(super) fn choose(&self, origin: &Origin, uri: &Uri) -> Result<Option<Arc<Via>>, Error> {
        match &self.rule {
            Rule::Hosts(matcher) => {
                let Ok(uri) = origin.to_string().parse() else {
                    return Ok(None);
                };
                let Some(intercept) = matcher.intercept(&uri) else {
                    return Ok(None);
                };
                let via = Via::of(&intercept);
                self.expect_usable(&via.uri)?;
                Ok(Some(Arc::new(self.of_place(via))))
            }
            Rule::Function(function) => {
                let Some(url) = function.0(uri) else {
                    return Ok(None);
                };
                let chosen = Self::of_url(&url, "")?;
                let Rule::Hosts(matcher) = &chosen.rule else {
                    return Ok(None);
                };
                let intercept = matcher.intercept(uri);
                let via = intercept.map(|intercept| chosen.of_place(Via::of(&intercept)));
                Ok(via.map(Arc::new))
            }
        }
    }

    /// Replaces the placeholder of a MASQUE proxy.
    fn of_place(&self, mut via: Via) -> Via {
        let mut known = self.masque.iter();
        if let Some(masque) = known.find(|it| via.uri.host() == Some(&it.placeholder)) {
            via.uri = masque.uri.clone();
            via.template = Some(masque.template.clone());
        }
        via
    }

    /// Returns an error if a proxy that was selected for a request cannot be used.
    fn expect_usable(&self, proxy: &Uri) -> Result<(), Error> {
        let mut unusable = self.unusable.iter();
        match unusable.find(|unusable| proxy.host() == Some(&unusable.placeholder)) {
            Some(unusable) => Err(Error::new(unusable.kind, unusable.text.clone())),
            None => Ok(()),
        }
    }
}

/// Checks the URL of a proxy. `source` names its origin in messages.
fn check(url: &str, source: &str) -> Result<(), (ErrorKind, String)> {
    if let Some(parsed) = masque_url::parse(url) {
        let wrong = |error: Error| (error.kind(), format!("{source}: {error}"));
        return parsed.map(|_| ()).map_err(wrong);
    }
    let uri = url.parse::<Uri>().ok();
    let uri = uri.filter(|uri| uri.host().is_some_and(|host| !host.is_empty()));
    let Some(uri) = uri else {
        // The message omits the URL, because it may contain a password.
        let text =
            format!("{source} is not a proxy URL: use http://host:port or socks5h://host:port");
        return Err((ErrorKind::Config, text));
    };
    match uri.scheme_str() {
        None | Some("http" | "https" | "socks4" | "socks4a" | "socks5" | "socks5h") => Ok(()),
        Some(scheme) => {
            let text = format!(
                "{source}: proxies with the scheme '{scheme}' are not supported: use http, https, \
                 socks5h, socks5, socks4a, socks4 or masque"
            );
            Err((ErrorKind::Unsupported, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the proxy for a URL with these variables, or the error that prevents its use.
    fn chosen(url: &str, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let proxies = Proxies::of_environment(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        });
        proxies.map_or(Ok(None), |proxies| host_of(&proxies, url))
    }

    fn host_of(proxies: &Proxies, url: &str) -> Result<Option<String>, String> {
        let uri = url.parse().expect("a URL");
        let origin = Origin::of(&uri).expect("an origin");
        let via = proxies.choose(&origin, &uri);
        let via = via.map_err(|error| error.to_string())?;
        Ok(via.and_then(|via| via.uri.host().map(str::to_owned)))
    }

    fn of(proxy: &Proxy) -> Option<Proxies> {
        Proxies::of(proxy).expect("valid")
    }

    #[test]
    fn schemes_have_proxies_of_their_own() {
        let both = Proxy::by_scheme(Some("http://a"), Some("socks5h://s")).except("direct.test");
        let only = Proxy::by_scheme(None, Some("http://s"));
        for (proxy, url, expected) in [
            (&both, "http://example.org/x", Some("a")),
            (&both, "https://example.org/x", Some("s")),
            (&both, "https://direct.test/", None),
            (&only, "http://example.org/", None),
            (&only, "https://example.org/", Some("s")),
        ] {
            let proxies = of(proxy).expect("proxies");
            let expected = Ok(expected.map(str::to_owned));
            assert_eq!(host_of(&proxies, url), expected, "{proxy:?} {url}");
        }
        assert!(of(&Proxy::by_scheme(None, None)).is_none());
        let wrong = Proxy::by_scheme(None, Some("ftp://s"));
        let error = Proxies::of(&wrong).expect_err("not supported");
        assert!(error.to_string().contains("proxy for https"), "{error}");
    }

    #[test]
    fn functions_choose_by_the_whole_url() {
        let proxy = Proxy::function(|url| match url.path() {
            "/direct" => None,
            "/wrong" => Some("gopher://p".to_owned()),
            _ => Some("http://u:w@p:3128".to_owned()),
        });
        assert_eq!(proxy, proxy.clone());
        let proxies = of(&proxy).expect("proxies");
        let url = |path| format!("https://example.org{path}");
        assert_eq!(host_of(&proxies, &url("/direct")), Ok(None));
        assert_eq!(host_of(&proxies, &url("/")), Ok(Some("p".to_owned())));
        let error = host_of(&proxies, &url("/wrong")).expect_err("not supported");
        assert!(error.contains("'gopher'"), "{error}");
    }

    #[test]
    fn proxies_are_shown_without_credentials() {
        let proxies = of(&Proxy::all("http://user:word@p:3128")).expect("proxies");
        let uri = URL.parse().expect("a URL");
        let origin = Origin::of(&uri).expect("an origin");
        let via = proxies.choose(&origin, &uri).expect("usable").expect("one");
        assert_eq!(via.to_string().trim_end_matches('/'), "http://p:3128");
        assert!(!format!("{via:?} {:?}", via.uri).contains("word"));
        assert!(via.authorization.is_some());
    }

    const URL: &str = "https://example.org";

    #[test]
    fn variables_name_proxies() {
        let through = |host: &str| Ok(Some(host.to_owned()));
        for usable in ["p:3128", "http://p:3128", "socks5h://u:p@p"] {
            assert_eq!(
                chosen(URL, &[("ALL_PROXY", usable)]),
                through("p"),
                "{usable}"
            );
        }
        assert_eq!(chosen(URL, &[("ALL_PROXY", "")]), Ok(None));
        let both = [("ALL_PROXY", "http://a"), ("https_proxy", "http://s")];
        assert_eq!(chosen(URL, &both), through("s"));
        assert_eq!(chosen("http://example.org", &both), through("a"));
        let not = [("ALL_PROXY", "http://a"), ("no_proxy", "example.org")];
        assert_eq!(chosen(URL, &not), Ok(None));
        let in_cgi = [("REQUEST_METHOD", "GET"), ("ALL_PROXY", "http://a")];
        assert_eq!(chosen(URL, &in_cgi), Ok(None));
    }

    #[test]
    fn unusable_proxy_is_an_error_only_if_selected() {
        let error = chosen(URL, &[("https_proxy", "ftp://p")]).expect_err("an unsupported scheme");
        assert!(
            error.contains("https_proxy") && error.contains("'ftp'"),
            "{error}"
        );
        let error = chosen(URL, &[("ALL_PROXY", "http://u:secret@")]).expect_err("no host");
        assert!(error.contains("ALL_PROXY is not a proxy URL"), "{error}");
        assert!(!error.contains("secret"), "{error}");
        // An unusable proxy is no error if another proxy, or none, is selected.
        let both = [("ALL_PROXY", "socks://p"), ("HTTPS_PROXY", "http://s")];
        assert_eq!(chosen(URL, &both), Ok(Some("s".to_owned())));
        let error = chosen("http://example.org", &both).expect_err("an unsupported scheme");
        assert!(
            error.contains("ALL_PROXY") && error.contains("'socks'"),
            "{error}"
        );
        let not = [("ALL_PROXY", "socks://p"), ("NO_PROXY", "*")];
        assert_eq!(chosen(URL, &not), Ok(None));
        let first = [("ALL_PROXY", "http://a"), ("all_proxy", "ftp://p")];
        assert_eq!(chosen(URL, &first), Ok(Some("a".to_owned())));
    }
}
