//! URLs of MASQUE proxies: `masque://HOST[:PORT]`, or a URI template of CONNECT-UDP.

use std::sync::Arc;

use http::Uri;

use super::error::{Error, ErrorKind};

/// The URL of a MASQUE proxy, for which the matcher of proxies has a placeholder: it knows other schemes only.
#[derive(Clone, Debug)]
pub(super) struct MasqueUrl {
    /// A host that does not exist, for which the matcher has an `http` URL.
    pub(super) placeholder: String,
    /// The scheme `https`, and the authority of the proxy.
    pub(super) uri: Uri,
    /// The template without credentials.
    pub(super) template: Arc<str>,
}

/// Returns the parts of a URL: user and password with the `@` behind them, the URL without them. `None` for URLs of
/// other proxies.
fn split(url: &str) -> Option<(&str, String)> {
    let (scheme, rest) = url.split_once("://")?;
    let is_template = rest.contains('{');
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "masque" => "masque",
        "https" if is_template => "https",
        _ => return None,
    };
    let end = rest.find(['/', '?', '{']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, place) = match authority.rfind('@') {
        Some(at) => authority.split_at(at + 1),
        None => ("", authority),
    };
    let path = if scheme == "masque" && path == "/" {
        ""
    } else {
        path
    };
    Some((user, format!("{scheme}://{place}{path}")))
}

/// Checks the URL of a MASQUE proxy. `None` for URLs of other proxies.
#[cfg(feature = "masque")]
pub(super) fn parse(url: &str) -> Option<Result<(Uri, Arc<str>), Error>> {
    use courser_masque_tokio::Template;

    let (_, bare) = split(url)?;
    // Messages have no user and password.
    let wrong = |reason: &dyn std::fmt::Display| {
        let text = format!("'{bare}' is not a MASQUE proxy: {reason}");
        Error::new(ErrorKind::Config, text)
    };
    let template = match bare.strip_prefix("masque://") {
        Some(authority) if authority.contains(['/', '?', '{']) => {
            let reason = "use masque://HOST[:PORT], or a template that begins with https://";
            return Some(Err(wrong(&reason)));
        }
        Some(authority) => format!("https://{authority}{}", Template::WELL_KNOWN),
        None => bare.clone(),
    };
    let (_, place) = bare.split_once("://")?;
    let place = place.split(['/', '?']).next().unwrap_or_default();
    Some(
        match (
            Template::new(&template),
            format!("https://{place}/").parse(),
        ) {
            (Ok(_), Ok(uri)) if !has_valid_port(&uri) => {
                Err(wrong(&"the port is not from 1 to 65535"))
            }
            (Ok(_), Ok(uri)) => Ok((uri, template.into())),
            (Err(error), _) => Err(wrong(&error)),
            (_, Err(error)) => Err(wrong(&error)),
        },
    )
}

/// Returns true if the port is valid, or there is none. URIs with larger numbers are accepted otherwise.
#[cfg(feature = "masque")]
fn has_valid_port(uri: &Uri) -> bool {
    let authority = uri.authority().map(http::uri::Authority::as_str);
    uri.port_u16().is_some_and(|port| port > 0) || authority == uri.host()
}

#[cfg(not(feature = "masque"))]
pub(super) fn parse(url: &str) -> Option<Result<(Uri, Arc<str>), Error>> {
    let (_, bare) = split(url)?;
    let text = format!("'{bare}' is a MASQUE proxy, which needs the feature masque of courser");
    Some(Err(Error::new(ErrorKind::Unsupported, text)))
}

/// Returns the URL for the matcher. That of a MASQUE proxy, which was checked, is replaced by a placeholder.
pub(super) fn place(url: String, known: &mut Vec<MasqueUrl>) -> String {
    let (Some((user, _)), Some(Ok((uri, template)))) = (split(&url), parse(&url)) else {
        return url;
    };
    let placeholder = format!("{}.masque.invalid", known.len());
    let replaced = format!("http://{user}{placeholder}");
    known.push(MasqueUrl {
        placeholder,
        uri,
        template,
    });
    replaced
}

#[cfg(all(test, feature = "masque"))]
mod tests {
    use super::*;

    const PATH: &str = "/.well-known/masque/udp/{target_host}/{target_port}/";

    #[test]
    fn urls_of_masque_proxies_are_recognized() {
        for (url, uri, template) in [
            ("masque://p", "https://p/", format!("https://p{PATH}")),
            (
                "MASQUE://u:w@p:4433/",
                "https://p:4433/",
                format!("https://p:4433{PATH}"),
            ),
            (
                "masque://[::1]:1",
                "https://[::1]:1/",
                format!("https://[::1]:1{PATH}"),
            ),
            (
                "https://u@p:1/x{?target_host,target_port}",
                "https://p:1/",
                "https://p:1/x{?target_host,target_port}".to_owned(),
            ),
        ] {
            let (parsed, found) = parse(url).expect(url).expect(url);
            assert_eq!(
                (parsed.to_string().as_str(), &*found),
                (uri, template.as_str())
            );
        }
        for url in [
            "http://p",
            "https://p/",
            "socks5h://p",
            "p:1",
            "http://p/{x}",
        ] {
            assert!(parse(url).is_none(), "{url}");
        }
    }

    #[test]
    fn mistakes_are_explained_without_passwords() {
        for url in [
            "masque://",
            "masque://u:secret@",
            "masque://u:secret@p/path",
            "masque://u:secret@p:99999",
            "masque://u:secret@p:0",
            "https://u:secret@p:99999/{target_host}/{target_port}/",
            "https://u:secret@p/{target_host}",
            "https://u:secret@p/{target_host}/{target_port}/{other",
        ] {
            let error = parse(url).expect(url).expect_err(url).to_string();
            assert!(error.contains("is not a MASQUE proxy"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn placeholders_keep_credentials() {
        let mut known = Vec::new();
        let placed = place("masque://u:w@p:1".to_owned(), &mut known);
        assert_eq!(placed, "http://u:w@0.masque.invalid");
        assert_eq!(place("http://p".to_owned(), &mut known), "http://p");
        assert_eq!(known.len(), 1);
        assert_eq!(known[0].uri, "https://p:1/");
    }
}
