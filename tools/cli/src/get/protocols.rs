//! `--proto` and `--proto-redir`: the schemes that may be used.

use super::exit::{FAILED_INIT, Failed, UNSUPPORTED_PROTOCOL};

/// The schemes of URLs that may be requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Protocols {
    http: bool,
    https: bool,
}

impl Protocols {
    /// Parses a list such as `=https` or `-http`. Other protocols of curl have no effect.
    pub(super) fn parse(flag: &str, text: Option<&str>) -> Result<Self, Failed> {
        let mut allowed = Self {
            http: true,
            https: true,
        };
        for item in text.iter().flat_map(|text| text.split(',')) {
            let modifiers = item.len() - item.trim_start_matches(['=', '-', '+']).len();
            let (modifiers, name) = item.split_at(modifiers);
            let is_allowed = !modifiers.contains('-');
            if modifiers.contains('=') {
                allowed = Self {
                    http: false,
                    https: false,
                };
            }
            match name.to_ascii_lowercase().as_str() {
                "http" => allowed.http = is_allowed,
                "https" => allowed.https = is_allowed,
                "all" => {
                    allowed = Self {
                        http: is_allowed,
                        https: is_allowed,
                    };
                }
                "" => {
                    let text =
                        format!("{flag} '{item}' names no protocol: use =https, for example");
                    return Err(Failed::new(FAILED_INIT, text));
                }
                _ => {}
            }
        }
        if !allowed.http && !allowed.https {
            let text = format!("{flag} allows neither http nor https");
            return Err(Failed::new(FAILED_INIT, text));
        }
        Ok(allowed)
    }

    /// Returns an error if a scheme must not be used.
    pub(super) fn check(self, flag: &str, scheme: Option<&str>) -> Result<(), Failed> {
        let is_allowed = match scheme {
            Some("http") => self.http,
            Some("https") => self.https,
            // The client reports other schemes.
            _ => true,
        };
        match is_allowed {
            true => Ok(()),
            false => {
                let scheme = scheme.unwrap_or_default();
                let text = format!("{flag} does not allow {scheme} URLs");
                Err(Failed::new(UNSUPPORTED_PROTOCOL, text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_curl_does() {
        for (text, http, https) in [
            ("=https", false, true),
            ("-http", false, true),
            ("https", true, true),
            ("-all,https", false, true),
            ("=http,https", true, true),
            ("=HTTPS,-ftp", false, true),
            ("+https,-https", true, false),
        ] {
            let parsed = Protocols::parse("--proto", Some(text));
            assert_eq!(parsed, Ok(Protocols { http, https }), "{text}");
        }
        for wrong in ["=", "-all", "=ftp", ""] {
            assert!(Protocols::parse("--proto", Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn forbidden_schemes_are_named() {
        let only = Protocols::parse("--proto", Some("=https")).expect("a list");
        assert_eq!(only.check("--proto", Some("https")), Ok(()));
        let failed = only.check("--proto", Some("http")).expect_err("forbidden");
        assert_eq!(failed.code, UNSUPPORTED_PROTOCOL);
        assert!(
            failed.text.contains("--proto") && failed.text.contains("http URLs"),
            "{failed}"
        );
    }
}
