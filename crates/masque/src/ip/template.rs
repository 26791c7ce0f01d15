//! URI templates of IP proxies (RFC 9484 §3).

use std::str::FromStr;

use percent_encoding::AsciiSet;

use super::scope::{InvalidScope, Scope};
use crate::target::InvalidTarget;
use crate::template::{ENCODED, InvalidTemplate, InvalidValue, UriTemplate, decode};

/// The URI template of a proxy for IP packets, with the variables `target` and `ipproto`, both of which are optional.
///
/// A client uses a whole URI, a proxy a [path](Self::path). Simple expansion (`{target}`) and form expansion
/// (`{?target,ipproto}`) are supported. Further variables are undefined, and expand to nothing.
///
/// ```
/// use courser_masque::ip::{Scope, Template};
/// let template: Template = "https://proxy.example/ip{?target,ipproto}".parse()?;
/// let uri = template.expand(&Scope::new("2001:db8::/32", "17")?);
/// assert_eq!(uri, "https://proxy.example/ip?target=2001%3Adb8%3A%3A%2F32&ipproto=17");
///
/// let paths = Template::path(Template::WELL_KNOWN)?;
/// assert_eq!(paths.find("/.well-known/masque/ip/*/*/")?, Scope::default());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template(UriTemplate);

/// The reason why a path has no scope.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Mismatch {
    /// The path is not that of the template.
    #[error("the path is not one of the template")]
    NotThis,
    /// The path has the form of the template, but no valid scope.
    #[error("{0}")]
    Malformed(#[from] InvalidScope),
}

impl Template {
    /// The path of a proxy whose template is not known otherwise (RFC 9484 §3).
    pub const WELL_KNOWN: &str = "/.well-known/masque/ip/{target}/{ipproto}/";

    /// Creates the template of a client.
    ///
    /// # Errors
    /// Returns an error if the template is not absolute, lacks a path, or has an operator other than simple and form
    /// expansion.
    pub fn new(text: &str) -> Result<Self, InvalidTemplate> {
        UriTemplate::absolute(text, &[]).map(Self)
    }

    /// Creates the template of a proxy that is known by its host and port only, such as `proxy.example:4433`.
    ///
    /// # Errors
    /// Returns an error if `authority` is no host with or without a port.
    pub fn of_proxy(authority: &str) -> Result<Self, InvalidTemplate> {
        Self::new(&format!("https://{authority}{}", Self::WELL_KNOWN))
    }

    /// Creates the template of a proxy, whose host and port may be any.
    ///
    /// # Errors
    /// Returns an error if the path has other variables than `target` and `ipproto`, or if a value could not be told
    /// from the text after it.
    pub fn path(text: &str) -> Result<Self, InvalidTemplate> {
        UriTemplate::path(text, &[], &VARIABLES).map(Self)
    }

    /// Returns the template as it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns true if requests of the template can have this scope: a template without a variable has `*` for it.
    pub fn can_express(&self, scope: &Scope) -> bool {
        let has = |wanted| self.0.variables().any(|name| name == wanted);
        (scope.target() == "*" || has(TARGET)) && (scope.ipproto() == "*" || has(PROTOCOL))
    }

    /// Returns the URI of a scope, or its path and query for a template of a path. Every character of a value other than
    /// letters, digits, `*`, `-`, `.`, `_` and `~` is percent-encoded (RFC 9484 §4.6).
    pub fn expand(&self, scope: &Scope) -> String {
        let (target, protocol) = (scope.target(), scope.ipproto());
        self.0
            .expand(&[(TARGET, &target), (PROTOCOL, &protocol)], VALUE)
    }

    /// Returns the scope of a path with its query. Values are decoded once.
    ///
    /// The text of the template has to occur byte by byte: `..` and other forms of the same path are none.
    ///
    /// # Errors
    /// Returns [`Mismatch::NotThis`] for another path, and [`Mismatch::Malformed`] if the path has the form of the
    /// template, but its target or protocol is invalid.
    pub fn find(&self, path_and_query: &str) -> Result<Scope, Mismatch> {
        let values = self.0.find(path_and_query, VARIABLES);
        let [target, protocol] = values.ok_or(Mismatch::NotThis)?;
        Ok(Scope::new(&decoded(target)?, &decoded(protocol)?)?)
    }
}

impl FromStr for Template {
    type Err = InvalidTemplate;

    fn from_str(text: &str) -> Result<Self, InvalidTemplate> {
        Self::new(text)
    }
}

fn decoded(value: Option<&str>) -> Result<String, InvalidScope> {
    let Some(value) = value else {
        return Ok("*".to_owned());
    };
    decode(value, b"*").map_err(|error| {
        InvalidScope::Target(match error {
            InvalidValue::PercentEncoding => InvalidTarget::PercentEncoding,
            InvalidValue::Character => InvalidTarget::Host(value.chars().take(64).collect()),
        })
    })
}

/// The variables of an IP proxy.
const VARIABLES: [&str; 2] = [TARGET, PROTOCOL];
const TARGET: &str = "target";
const PROTOCOL: &str = "ipproto";

/// Characters that are percent-encoded: `*` stands for all targets, as in the examples of RFC 9484 §4.2.
const VALUE: &AsciiSet = &ENCODED.remove(b'*');

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(target: &str, protocol: &str) -> Scope {
        Scope::new(target, protocol).unwrap()
    }

    /// MQ-ip-001.
    #[test]
    fn templates_carry_scopes_both_ways() {
        for (template, expected) in [
            (
                Template::WELL_KNOWN,
                "/.well-known/masque/ip/2001%3Adb8%3A%3A%2F32/17/",
            ),
            (
                "/ip?t={target}&i={ipproto}",
                "/ip?t=2001%3Adb8%3A%3A%2F32&i=17",
            ),
            (
                "/ip{?target,ipproto}",
                "/ip?target=2001%3Adb8%3A%3A%2F32&ipproto=17",
            ),
            ("/{ipproto,target}", "/17,2001%3Adb8%3A%3A%2F32"),
        ] {
            let paths = Template::path(template).unwrap();
            let wanted = scope("2001:db8::/32", "17");
            assert!(paths.can_express(&wanted));
            assert_eq!(paths.expand(&wanted), expected);
            assert_eq!(paths.find(expected), Ok(wanted), "{template}");
            let any = paths.expand(&Scope::default());
            assert!(any.contains('*') && !any.contains('%'), "{any}");
            assert_eq!(paths.find(&any), Ok(Scope::default()));
        }
    }

    /// MQ-ip-001: variables may be missing, in templates and in forms.
    #[test]
    fn variables_are_optional() {
        let fixed = Template::path("/vpn").unwrap();
        assert_eq!(fixed.find("/vpn"), Ok(Scope::default()));
        assert!(fixed.can_express(&Scope::default()));
        assert!(!fixed.can_express(&scope("*", "17")));
        let form = Template::path("/ip{?target,ipproto}").unwrap();
        assert_eq!(form.find("/ip"), Ok(Scope::default()));
        assert_eq!(form.find("/ip?ipproto=6"), Ok(scope("*", "6")));
        assert_eq!(
            form.find("/ip?target=192.0.2.1"),
            Ok(scope("192.0.2.1", "*"))
        );
        assert_eq!(
            form.find("/ip?target=192.0.2.1&x=1"),
            Err(Mismatch::NotThis)
        );
        let client = Template::new("https://proxy.example/{?user}").unwrap();
        assert_eq!(client.expand(&Scope::default()), "https://proxy.example/");
    }

    /// MQ-ip-002, attack A370.
    #[test]
    fn tricks_with_percent_encoding_find_no_scope() {
        let paths = Template::path(Template::WELL_KNOWN).unwrap();
        for path in [
            "/.well-known/masque/ip/*/*",
            "/.well-known/masque/ip/10.0.0.0/8/*/",
            "/.well-known/masque/ip/../*/*/",
            "/.well-known/masque/ip%2f*/*/",
            "/.well-known/masque/ip/*/*/?x=1",
            "//.well-known/masque/ip/*/*/",
        ] {
            assert_eq!(paths.find(path), Err(Mismatch::NotThis), "{path}");
        }
        for value in [
            "",
            "%",
            "%2",
            "%zz",
            "10.0.0.0%252F8",
            "10.0.0.1%2F8",
            "%00",
            "a%00b",
            "..",
            "%2e%2e%2f",
            "2001:db8::1",
            "**",
            "%2A%2A",
            "10.0.0.0%2F8%2F8",
            "192.0.2.1%0d%0a",
            "fe80%3A%3A1%25eth0",
        ] {
            let found = paths.find(&format!("/.well-known/masque/ip/{value}/*/"));
            assert!(
                matches!(found, Err(Mismatch::Malformed(_))),
                "{value} {found:?}"
            );
        }
        assert_eq!(
            paths.find("/.well-known/masque/ip/%2A/%2a/"),
            Ok(Scope::default())
        );
    }

    #[test]
    fn templates_of_other_forms_are_refused() {
        for text in [
            "",
            "/ip/{target}/",
            "http://a/{target}",
            "https://{target}/",
            "https://a/{+target}",
            "https://a",
        ] {
            assert!(Template::new(text).is_err(), "{text}");
        }
        for text in [
            "/ip/{host}/",
            "/{target}{ipproto}/",
            "/{target}x",
            "/{target,target}/",
        ] {
            assert!(Template::path(text).is_err(), "{text}");
        }
    }
}
