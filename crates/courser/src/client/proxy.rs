//! Proxies that are of no use are errors.

use super::error::{Error, ErrorKind};

/// Says of a proxy in the environment that nobody can use it: the library that reads it would go
/// past it without a word. `variable` gives the value of an environment variable.
pub(super) fn check_environment(variable: impl Fn(&str) -> Option<String>) -> Result<(), Error> {
    // What a CGI program finds there was sent by its client.
    let is_cgi = variable("REQUEST_METHOD").is_some();
    let kinds = [
        ("ALL_PROXY", "all_proxy"),
        ("HTTP_PROXY", "http_proxy"),
        ("HTTPS_PROXY", "https_proxy"),
    ];
    for (upper, lower) in kinds {
        if is_cgi && upper == "HTTP_PROXY" {
            continue;
        }
        let found = [upper, lower]
            .into_iter()
            .find_map(|name| variable(name).map(|value| (name, value)));
        if let Some((name, value)) = found
            && !value.is_empty()
        {
            check(&value, name)?;
        }
    }
    Ok(())
}

/// `source` says where it comes from.
pub(super) fn check(url: &str, source: &str) -> Result<(), Error> {
    let uri = url.parse::<http::Uri>().ok();
    let uri = uri.filter(|uri| uri.host().is_some_and(|host| !host.is_empty()));
    let Some(uri) = uri else {
        // It may hold a password.
        let text = format!("{source} is none: write http://host:port or socks5h://host:port");
        return Err(Error::new(ErrorKind::Config, text));
    };
    match uri.scheme_str() {
        None | Some("http" | "https" | "socks4" | "socks4a" | "socks5" | "socks5h") => Ok(()),
        // It would not be used, without a word.
        Some(scheme) => {
            let text = format!(
                "{source}: proxies with the scheme '{scheme}' are not supported: use http, https, \
                 socks5h, socks5, socks4a or socks4"
            );
            Err(Error::new(ErrorKind::Unsupported, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(variables: &[(&str, &str)]) -> Result<(), String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        check_environment(variable).map_err(|error| error.to_string())
    }

    #[test]
    fn proxies_of_the_environment_that_nobody_can_use_are_named() {
        for usable in ["", "proxy:3128", "http://proxy:3128", "socks5h://u:p@proxy"] {
            assert_eq!(checked(&[("ALL_PROXY", usable)]), Ok(()), "{usable}");
        }
        let error =
            checked(&[("https_proxy", "ftp://proxy")]).expect_err("a scheme of another kind");
        assert!(
            error.contains("https_proxy") && error.contains("'ftp'"),
            "{error}"
        );
        let error = checked(&[("ALL_PROXY", "http://u:secret@")]).expect_err("no host");
        assert!(error.contains("ALL_PROXY is none"), "{error}");
        assert!(!error.contains("secret"), "{error}");
        // The first of the two names counts, as where it is used.
        let both = [("ALL_PROXY", "http://proxy"), ("all_proxy", "ftp://proxy")];
        assert_eq!(checked(&both), Ok(()));
        let in_cgi = [("REQUEST_METHOD", "GET"), ("HTTP_PROXY", "ftp://proxy")];
        assert_eq!(checked(&in_cgi), Ok(()));
    }
}
