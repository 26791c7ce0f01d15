//! Selection of the proxy for a request.

use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use super::error::{Error, ErrorKind};

/// The proxies of a client. Requests through a proxy do not use QUIC.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Proxy {
    /// The proxies in the environment variables `http_proxy`, `HTTPS_PROXY` and `ALL_PROXY`, except for the
    /// hosts in `NO_PROXY`. If a proxy cannot be used, requests through it fail.
    #[default]
    Environment,
    /// Connects directly and ignores the environment.
    Direct,
    /// This proxy for all hosts except those in a list in the format of `NO_PROXY`.
    Url {
        /// The URL of the proxy, `http://user:password@host:port`, or with another scheme:
        ///
        /// - `https`: connects to the proxy over TLS,
        /// - `socks5h`: SOCKS5 (RFC 1928), with names resolved by the proxy,
        /// - `socks5`: SOCKS5, with names resolved by the client,
        /// - `socks4a`, `socks4`: SOCKS4 with and without names; IPv4 only, and a password is ignored.
        ///
        /// The default port of SOCKS proxies is 1080.
        url: String,
        /// Hosts, domains and networks to connect to directly, separated by commas.
        except: String,
    },
}

/// The configured proxies and the hosts to which they apply.
#[derive(Debug)]
pub(super) struct Proxies {
    matcher: Matcher,
    /// Proxies that cannot be used. [`Matcher`] would silently skip them, so it has invalid names in their
    /// place, and a request through such a name fails with the reason.
    unusable: Vec<Unusable>,
}

#[derive(Debug)]
struct Unusable {
    placeholder: String,
    kind: ErrorKind,
    text: String,
}

impl Proxies {
    /// Reads the proxies from environment variables; `variable` returns their values.
    pub(super) fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut unusable = Vec::new();
        // In a CGI program, HTTP_PROXY may come from a field of the client's request.
        if variable("REQUEST_METHOD").is_some() {
            let matcher = Matcher::builder().build();
            return Self { matcher, unusable };
        }
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
                return Some(value);
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
        let matcher = Matcher::builder()
            .all(checked(["ALL_PROXY", "all_proxy"]).unwrap_or_default())
            .http(checked(["HTTP_PROXY", "http_proxy"]).unwrap_or_default())
            .https(checked(["HTTPS_PROXY", "https_proxy"]).unwrap_or_default())
            .no(first(["NO_PROXY", "no_proxy"]).map_or_else(String::new, |(_, value)| value))
            .build();
        Self { matcher, unusable }
    }

    /// Returns one proxy for all hosts except those in `except`.
    pub(super) fn of_url(url: &str, except: &str) -> Result<Self, Error> {
        check(url, "the proxy's URL").map_err(|(kind, text)| Error::new(kind, text))?;
        let matcher = Matcher::builder()
            .all(url.to_owned())
            .no(except.to_owned())
            .build();
        Ok(Self {
            matcher,
            unusable: Vec::new(),
        })
    }

    /// Returns the proxy for requests to `uri`, which must be passed to
    /// [`expect_usable`](Self::expect_usable).
    pub(super) fn intercept(&self, uri: &Uri) -> Option<Intercept> {
        self.matcher.intercept(uri)
    }

    /// Returns an error if a proxy that was selected for a request cannot be used.
    pub(super) fn expect_usable(&self, proxy: &Uri) -> Result<(), Error> {
        let mut unusable = self.unusable.iter();
        match unusable.find(|unusable| proxy.host() == Some(&unusable.placeholder)) {
            Some(unusable) => Err(Error::new(unusable.kind, unusable.text.clone())),
            None => Ok(()),
        }
    }
}

/// Checks the URL of a proxy. `source` names its origin in messages.
fn check(url: &str, source: &str) -> Result<(), (ErrorKind, String)> {
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
                 socks5h, socks5, socks4a or socks4"
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
        let Some(intercept) = proxies.intercept(&url.parse().expect("a URL")) else {
            return Ok(None);
        };
        let proxy = intercept.uri();
        proxies
            .expect_usable(proxy)
            .map_err(|error| error.to_string())?;
        Ok(proxy.host().map(str::to_owned))
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
