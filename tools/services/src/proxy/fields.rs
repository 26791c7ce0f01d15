//! The table of fields that a proxy treats specially (RFC 9110 §7.6). All other fields are forwarded unchanged.

use http::HeaderValue;

/// The treatment of a field in requests, responses and trailers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldRule {
    /// The name in lower case. One that ends with `*` stands for all names with this prefix that have no rule of
    /// their own.
    pub name: &'static str,
    /// The treatment in header sections of requests.
    pub request: FieldAction,
    /// The treatment in header sections of responses, interim responses included.
    pub response: FieldAction,
    /// The treatment in trailer sections of both directions.
    pub trailer: FieldAction,
    /// The reason for the rule.
    pub reason: &'static str,
}

/// The treatment of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldAction {
    /// Forwards the field unchanged.
    Forward,
    /// Removes the field.
    Remove,
    /// Removes the field and writes one with a value of the proxy where the next hop needs it.
    Replace,
    /// Forwards the field after its value was checked or adjusted.
    Adjust,
}

impl FieldAction {
    /// Returns true if the value that was received is never forwarded.
    pub(super) const fn removes(self) -> bool {
        matches!(self, Self::Remove | Self::Replace)
    }
}

use FieldAction::{Adjust, Forward, Remove, Replace};

const fn rule(
    name: &'static str,
    request: FieldAction,
    response: FieldAction,
    trailer: FieldAction,
    reason: &'static str,
) -> FieldRule {
    FieldRule {
        name,
        request,
        response,
        trailer,
        reason,
    }
}

const HOP: &str = "specific to one connection (RFC 9110 §7.6.1)";
const FRAMING: &str = "frames the content of one message (RFC 9110 §8.6, RFC 9112 §6)";
const ROUTING: &str = "names the target of the request (RFC 9110 §7.2)";
const TARGET: &str = "replaces the target of the request in some frameworks";
const CLIENT: &str = "describes the client, which only the proxy knows (RFC 7239 §8.1)";
const CREDENTIALS: &str = "authenticates one hop (RFC 9110 §11.7)";
const MODIFIER: &str = "modifies the request (RFC 9110 §6.5.1)";
const CONTROL: &str = "controls the response (RFC 9110 §6.5.1)";
const AUTHENTICATION: &str = "authenticates (RFC 9110 §6.5.1)";
const CONTENT: &str = "determines how content is processed (RFC 9110 §6.5.1)";

/// The rules of the proxy, by subject.
pub static FIELD_RULES: [FieldRule; 61] = TABLE;

const TABLE: [FieldRule; 61] = [
    rule("connection", Replace, Replace, Remove, HOP),
    rule("keep-alive", Remove, Remove, Remove, HOP),
    rule("proxy-connection", Remove, Remove, Remove, HOP),
    rule(
        "te",
        Replace,
        Remove,
        Remove,
        "specific to one connection; `trailers` is forwarded (RFC 9110 §10.1.4)",
    ),
    rule(
        "upgrade",
        Replace,
        Replace,
        Remove,
        "specific to one connection; listed protocols are forwarded (RFC 9110 §7.8)",
    ),
    rule(
        "http2-settings",
        Remove,
        Remove,
        Remove,
        "part of the upgrade to h2c, which no longer exists (RFC 9113 §3.1)",
    ),
    rule("transfer-encoding", Replace, Replace, Remove, FRAMING),
    rule("content-length", Adjust, Adjust, Remove, FRAMING),
    rule(
        "trailer",
        Adjust,
        Adjust,
        Remove,
        "announces trailers, some of which are removed (RFC 9110 §6.6.2)",
    ),
    rule(
        "max-forwards",
        Adjust,
        Forward,
        Remove,
        "counts the remaining hops of OPTIONS (RFC 9110 §7.6.2)",
    ),
    rule(
        "via",
        Adjust,
        Adjust,
        Remove,
        "lists the hops of a message (RFC 9110 §7.6.3)",
    ),
    rule(
        "expect",
        Remove,
        Forward,
        Remove,
        "answered by the proxy itself (RFC 9110 §10.1.1)",
    ),
    rule("host", Replace, Forward, Remove, ROUTING),
    rule("x-original-url", Remove, Forward, Remove, TARGET),
    rule("x-original-uri", Remove, Forward, Remove, TARGET),
    rule("x-original-host", Remove, Forward, Remove, TARGET),
    rule("x-original-method", Remove, Forward, Remove, TARGET),
    rule("x-rewrite-url", Remove, Forward, Remove, TARGET),
    rule("x-http-host-override", Remove, Forward, Remove, TARGET),
    rule("forwarded", Replace, Forward, Remove, CLIENT),
    rule("x-forwarded-for", Replace, Forward, Remove, CLIENT),
    rule("x-forwarded-host", Replace, Forward, Remove, CLIENT),
    rule("x-forwarded-proto", Replace, Forward, Remove, CLIENT),
    rule("x-forwarded-*", Remove, Forward, Remove, CLIENT),
    rule("x-original-forwarded-for", Remove, Forward, Remove, CLIENT),
    rule("x-real-ip", Remove, Forward, Remove, CLIENT),
    rule("x-client-ip", Remove, Forward, Remove, CLIENT),
    rule("x-cluster-client-ip", Remove, Forward, Remove, CLIENT),
    rule("true-client-ip", Remove, Forward, Remove, CLIENT),
    rule("x-scheme", Remove, Forward, Remove, CLIENT),
    rule("x-url-scheme", Remove, Forward, Remove, CLIENT),
    rule("front-end-https", Remove, Forward, Remove, CLIENT),
    rule(
        "proxy",
        Remove,
        Forward,
        Remove,
        "becomes the variable HTTP_PROXY of CGI programs (RFC 3875 §4.1.18)",
    ),
    rule(
        "early-data",
        Adjust,
        Forward,
        Remove,
        "marks requests that may be replayed (RFC 8470 §5.1)",
    ),
    rule("proxy-authorization", Remove, Forward, Remove, CREDENTIALS),
    // Part of a 407 response, which is incomplete without it.
    rule("proxy-authenticate", Remove, Forward, Remove, CREDENTIALS),
    rule(
        "alt-svc",
        Forward,
        Remove,
        Remove,
        "names alternatives for the address of the upstream server (RFC 7838 §3)",
    ),
    rule("authorization", Forward, Forward, Remove, AUTHENTICATION),
    rule("www-authenticate", Forward, Forward, Remove, AUTHENTICATION),
    rule("cookie", Forward, Forward, Remove, AUTHENTICATION),
    rule("set-cookie", Forward, Forward, Remove, AUTHENTICATION),
    rule("cache-control", Forward, Forward, Remove, MODIFIER),
    rule("pragma", Forward, Forward, Remove, MODIFIER),
    rule("range", Forward, Forward, Remove, MODIFIER),
    rule("if-match", Forward, Forward, Remove, MODIFIER),
    rule("if-none-match", Forward, Forward, Remove, MODIFIER),
    rule("if-modified-since", Forward, Forward, Remove, MODIFIER),
    rule("if-unmodified-since", Forward, Forward, Remove, MODIFIER),
    rule("if-range", Forward, Forward, Remove, MODIFIER),
    rule("age", Forward, Forward, Remove, CONTROL),
    rule("date", Forward, Forward, Remove, CONTROL),
    rule("expires", Forward, Forward, Remove, CONTROL),
    rule("location", Forward, Forward, Remove, CONTROL),
    rule("retry-after", Forward, Forward, Remove, CONTROL),
    rule("vary", Forward, Forward, Remove, CONTROL),
    rule("warning", Forward, Forward, Remove, CONTROL),
    rule("content-encoding", Forward, Forward, Remove, CONTENT),
    rule("content-type", Forward, Forward, Remove, CONTENT),
    rule("content-range", Forward, Forward, Remove, CONTENT),
    rule("content-location", Forward, Forward, Remove, CONTENT),
    rule("accept-encoding", Forward, Forward, Remove, MODIFIER),
];

/// Returns the action for a field in the header section of a request.
///
/// CGI, WSGI and PHP read every byte of a name that is not a letter or a digit as `_`, so names that differ from
/// one in the table by such bytes alone are removed with it. Other names with `_` are removed unless
/// `keeps_underscores` is true.
pub(super) fn of_request(name: &str, keeps_underscores: bool) -> FieldAction {
    match find(name) {
        Some(rule) => rule.request,
        None => of_unusual(name, keeps_underscores, |rule| rule.request),
    }
}

/// Returns the action for a field in the header section of a response.
pub(super) fn of_response(name: &str) -> FieldAction {
    find(name).map_or(Forward, |rule| rule.response)
}

/// Returns the action for a field in a trailer section. Names are compared as in [`of_request`].
pub(super) fn of_trailer(name: &str, keeps_underscores: bool) -> FieldAction {
    match find(name) {
        Some(rule) => rule.trailer,
        None => of_unusual(name, keeps_underscores, |rule| rule.trailer),
    }
}

/// Returns the action for a name without a rule.
fn of_unusual(
    name: &str,
    keeps_underscores: bool,
    action: impl Fn(&FieldRule) -> FieldAction,
) -> FieldAction {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if name.bytes().all(is_usual) {
        return Forward;
    }
    // Names longer than the buffer can have the prefix of a rule only.
    let mut buffer = [0; LONGEST + 1];
    let length = name.len().min(buffer.len());
    for (to, from) in buffer.iter_mut().zip(name.bytes()) {
        *to = if is_usual(from) { from } else { b'-' };
    }
    let resembles = std::str::from_utf8(&buffer[..length])
        .ok()
        .and_then(find)
        .is_some_and(|rule| action(rule) != Forward);
    match resembles || (name.contains('_') && !keeps_underscores) {
        true => Remove,
        false => Forward,
    }
}

/// Returns the tokens of a list. Invalid bytes elsewhere in the list do not hide them.
pub(super) fn tokens(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    let parts = value.as_bytes().split(|byte| *byte == b',');
    parts
        .map(<[u8]>::trim_ascii)
        .filter(|token| !token.is_empty())
}

/// Returns the rule for a name in lower case.
fn find(name: &str) -> Option<&'static FieldRule> {
    let length = name.len().min(LONGEST + 1);
    let (from, to) = (INDEX.starts[length], INDEX.starts[length + 1]);
    let same_length = &INDEX.order[usize::from(from)..usize::from(to)];
    let first = *name.as_bytes().first()?;
    for index in same_length {
        let rule = &FIELD_RULES[usize::from(*index)];
        // Most names differ in their first byte.
        if rule.name.as_bytes()[0] == first && rule.name == name {
            return Some(rule);
        }
    }
    let prefix = FIELD_RULES[WILDCARD].name.strip_suffix('*')?;
    name.starts_with(prefix).then_some(&FIELD_RULES[WILDCARD])
}

/// The rules in the order of the lengths of their names, because a search happens for each field.
struct Index {
    order: [u8; TABLE.len()],
    /// The position in `order` of the first name with at least this length.
    starts: [u8; LONGEST + 3],
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "there are fewer than 256 rules"
)]
const fn index() -> Index {
    let mut order = [0; TABLE.len()];
    let mut starts = [0; LONGEST + 3];
    let (mut length, mut filled) = (0, 0);
    while length < starts.len() {
        starts[length] = filled as u8;
        let mut at = 0;
        while at < TABLE.len() {
            if TABLE[at].name.len() == length && at != WILDCARD {
                order[filled] = at as u8;
                filled += 1;
            }
            at += 1;
        }
        length += 1;
    }
    Index { order, starts }
}

const fn longest() -> usize {
    let (mut longest, mut at) = (0, 0);
    while at < TABLE.len() {
        if TABLE[at].name.len() > longest {
            longest = TABLE[at].name.len();
        }
        at += 1;
    }
    longest
}

const fn wildcard() -> usize {
    let mut at = 0;
    loop {
        let name = TABLE[at].name.as_bytes();
        if name[name.len() - 1] == b'*' {
            return at;
        }
        at += 1;
    }
}

static INDEX: Index = index();
/// The length of the longest name.
const LONGEST: usize = longest();
/// The position of the rule for a prefix.
const WILDCARD: usize = wildcard();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_found_by_its_name() {
        for (at, rule) in FIELD_RULES.iter().enumerate() {
            assert_eq!(rule.name, rule.name.to_ascii_lowercase());
            let name = rule
                .name
                .replace('*', "anything-that-is-longer-than-all-names");
            assert_eq!(find(&name), Some(rule));
            let again = FIELD_RULES[..at]
                .iter()
                .any(|other| other.name == rule.name);
            assert!(!again, "two rules for {}", rule.name);
        }
        let prefixes = FIELD_RULES.iter().filter(|rule| rule.name.ends_with('*'));
        assert_eq!(prefixes.count(), 1, "find reads one prefix");
        for name in ["", "x", "x-forwarded", "hosts", "hos", "content-lengtx"] {
            assert_eq!(find(name), None, "{name}");
        }
    }

    #[test]
    fn names_that_cgi_confuses_have_the_rule_of_their_model() {
        for name in [
            "x_forwarded_for",
            "x-real_ip",
            "x.forwarded.for",
            "x_forwarded_anything_that_is_longer_than_all_names",
            "content_length",
            "transfer_encoding",
        ] {
            for keeps_underscores in [false, true] {
                assert_eq!(of_request(name, keeps_underscores), Remove, "{name}");
                assert_eq!(of_trailer(name, keeps_underscores), Remove, "{name}");
            }
        }
        for (name, kept) in [
            ("user_id", false),
            ("a_b-c", false),
            ("a.b", true),
            ("a-b", true),
        ] {
            let action = if kept { Forward } else { Remove };
            assert_eq!(of_request(name, false), action, "{name}");
            assert_eq!(of_request(name, true), Forward, "{name}");
            assert_eq!(of_response(name), Forward, "{name}");
        }
    }

    /// The guide has the same table.
    #[test]
    fn guide_lists_the_rules() {
        let row = |rule: &FieldRule| {
            let action = |action: FieldAction| format!("{action:?}").to_lowercase();
            format!(
                "| `{}` | {} | {} | {} | {} |\n",
                rule.name,
                action(rule.request),
                action(rule.response),
                action(rule.trailer),
                rule.reason
            )
        };
        let table: String = FIELD_RULES.iter().map(row).collect();
        let page = include_str!("../../../../docs/guide/src/reverse-proxy.md");
        assert!(
            page.contains(&table),
            "docs/guide/src/reverse-proxy.md lacks:\n{table}"
        );
    }
}
