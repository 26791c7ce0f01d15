//! The control data of requests: their authority and their target.

use crate::lab::{Answered, Findings, Lab, Pair, equal};
use crate::message::{Request, Response, Version};
use crate::upstream::Script;

/// The required outcome of a request.
enum Expected {
    /// It is forwarded with this host, or refused with 421 because the certificate does not name the host.
    Host(&'static str),
    /// It is forwarded with this host, or refused.
    HostOrRefused(&'static str),
    /// It is forwarded with this target.
    Target(&'static str),
    /// It is refused with an error that the client receives.
    Refused,
}

struct Case {
    name: &'static str,
    /// The versions of clients that can send the request.
    versions: &'static [Version],
    request: Request,
    expected: Expected,
}

const ALL: &[Version] = &Version::ALL;
const ONE: &[Version] = &[Version::Http1];
const FRAMED: &[Version] = &[Version::Http2, Version::Http3];

/// Sends each form of an authority. Rules: 9110-008, 9110-038, 9110-043, 9112-013 to 9112-015, 9112-019 to 9112-021,
/// 9113-046, 9113-065 to 9113-071.
#[expect(clippy::too_many_lines, reason = "a table")]
pub async fn authorities(lab: &mut Lab) -> Findings {
    let get = || Request::new("GET", "/host");
    let case = |name, versions, request, expected| Case {
        name,
        versions,
        request,
        expected,
    };
    let refused = |name, versions, request| case(name, versions, request, Expected::Refused);
    let is = |name, versions, request, host| case(name, versions, request, Expected::Host(host));
    let absolute = |target: &str| Request::new("GET", target);
    let cases = [
        is("a name", ALL, get(), "localhost"),
        is(
            "a port",
            ALL,
            get().authority("localhost:8443"),
            "localhost:8443",
        ),
        is("upper case", ALL, get().authority("LOCALHOST"), "localhost"),
        is(
            "IPv4",
            ALL,
            get().authority("127.0.0.1:8443"),
            "127.0.0.1:8443",
        ),
        is("IPv6", ALL, get().authority("[::1]:8443"), "[::1]:8443"),
        refused("none", ALL, get().authority(None)),
        refused("empty", ALL, get().authority("")),
        refused("a user name", ALL, get().authority("user@localhost")),
        refused("a path", ALL, get().authority("localhost/x")),
        refused("a query", ALL, get().authority("localhost?x")),
        refused("a space", ALL, get().authority("local host")),
        refused(
            "a port that is no number",
            ALL,
            get().authority("localhost:x"),
        ),
        refused("two ports", ALL, get().authority("localhost:1:2")),
        refused("a list", ALL, get().authority("localhost, other")),
        refused("two Host lines", ONE, get().with("host", "localhost")),
        refused("two hosts", ONE, get().with("Host", "other")),
        is(
            "Host without :authority",
            FRAMED,
            get().authority(None).with("host", "localhost"),
            "localhost",
        ),
        is(
            "Host and :authority alike",
            FRAMED,
            get().with("host", "localhost"),
            "localhost",
        ),
        refused(
            "Host and :authority differ",
            FRAMED,
            get().with("host", "other"),
        ),
        refused(
            "Host is empty beside :authority",
            FRAMED,
            get().with("host", ""),
        ),
        refused(
            "two Host fields",
            FRAMED,
            get()
                .authority(None)
                .with("host", "localhost")
                .with("host", "localhost"),
        ),
        refused(
            "a user name in Host",
            FRAMED,
            get().authority(None).with("host", "user@localhost"),
        ),
        is(
            "absolute form",
            ONE,
            absolute("https://localhost/host"),
            "localhost",
        ),
        case(
            "absolute form and another Host",
            ONE,
            absolute("https://localhost/host").authority("other"),
            Expected::HostOrRefused("localhost"),
        ),
        refused(
            "absolute form with a user name",
            ONE,
            absolute("https://user@localhost/host"),
        ),
        refused(
            "absolute form without a host",
            ONE,
            absolute("https:///host"),
        ),
        refused(
            "absolute form without Host",
            ONE,
            absolute("https://localhost/host").authority(None),
        ),
    ];
    run(lab, &cases).await
}

/// Sends each form of a target. Rules: 9110-056, 9112-011, 9112-024 to 9112-026, 9113-064, 9113-073, 9113-074.
#[expect(clippy::too_many_lines, reason = "a table")]
pub async fn targets(lab: &mut Lab) -> Findings {
    let case = |name, versions, request, expected| Case {
        name,
        versions,
        request,
        expected,
    };
    let passes = |name, versions, method: &str, path: &str, target| {
        case(
            name,
            versions,
            Request::new(method, path),
            Expected::Target(target),
        )
    };
    let refused = |name, versions, method: &str, path: &str| {
        case(
            name,
            versions,
            Request::new(method, path),
            Expected::Refused,
        )
    };
    let cases = [
        passes(
            "escapes",
            ALL,
            "GET",
            "/a%2fb%C3%A9?x=%26",
            "GET /a%2fb%C3%A9?x=%26",
        ),
        passes("dots", ALL, "GET", "/a/../b/./c", "GET /a/../b/./c"),
        passes("two slashes", ALL, "GET", "//a", "GET //a"),
        passes("an empty query", ALL, "GET", "/a?", "GET /a?"),
        passes(
            "reserved",
            ALL,
            "GET",
            "/!$&'()*+,;=:@",
            "GET /!$&'()*+,;=:@",
        ),
        passes(
            "others in a query",
            ALL,
            "GET",
            "/q?{a}|`^\\[]",
            "GET /q?{a}|`^\\[]",
        ),
        passes(
            "quotes and angle brackets",
            ALL,
            "GET",
            "/q?{\"a\":<b>}&c=\"",
            "GET /q?{%22a%22:%3Cb%3E}&c=%22",
        ),
        passes(
            "bytes that no path has",
            ALL,
            "GET",
            "/<a>`\u{e9}\"{}^|",
            "GET /%3Ca%3E%60%C3%A9\"{}^|",
        ),
        passes("asterisk", ALL, "OPTIONS", "*", "OPTIONS *"),
        passes(
            "OPTIONS in absolute form without a path",
            ONE,
            "OPTIONS",
            "https://localhost",
            "OPTIONS *",
        ),
        passes(
            "OPTIONS in absolute form with a path",
            ONE,
            "OPTIONS",
            "https://localhost/",
            "OPTIONS /",
        ),
        passes(
            "absolute form with quotes",
            ONE,
            "GET",
            "https://localhost/a?\"b\"",
            "GET /a?%22b%22",
        ),
        refused("a fragment", ALL, "GET", "/a#b"),
        refused("a fragment of a query", ALL, "GET", "/a?b#\"c\""),
        refused(
            "a fragment in absolute form",
            ONE,
            "GET",
            "https://localhost/#a",
        ),
        passes(
            "absolute form",
            ONE,
            "GET",
            "https://localhost/a?b",
            "GET /a?b",
        ),
        passes(
            "absolute form without a path",
            ONE,
            "GET",
            "https://localhost",
            "GET /",
        ),
        refused("asterisk of GET", ALL, "GET", "*"),
        refused("no slash", ALL, "GET", "a"),
        refused("no path", FRAMED, "GET", ""),
        refused("a space", FRAMED, "GET", "/a b"),
        refused("two spaces", ONE, "GET", "/a b"),
        refused("CONNECT", ONE, "CONNECT", "localhost:443"),
    ];
    run(lab, &cases).await
}

async fn run(lab: &mut Lab, cases: &[Case]) -> Findings {
    let mut findings = Findings::over(Pair::all());
    for pair in Pair::all() {
        for case in cases
            .iter()
            .filter(|case| case.versions.contains(&pair.client))
        {
            let script = Script::answer(Response::ok());
            let answered = lab.send_beside(pair, script, &case.request).await;
            findings.note(pair, case.name, check(case, &answered));
        }
    }
    findings
}

fn check(case: &Case, answered: &Answered) -> Result<(), String> {
    match case.expected {
        Expected::Refused => answered.refusal().map(drop),
        Expected::Host(_) if answered.answer.status() == 421 => answered.refusal().map(drop),
        Expected::HostOrRefused(_) if answered.upstream.is_empty() => answered.refusal().map(drop),
        Expected::Host(host) | Expected::HostOrRefused(host) => {
            let seen = answered.forwarded()?;
            equal("host", &*seen.get("host").to_ascii_lowercase(), host)?;
            equal("a second host", &*seen.get("host (field)"), "")?;
            equal("status", answered.answer.status(), 200)
        }
        Expected::Target(target) => {
            let seen = answered.forwarded()?;
            equal("target", &*seen.start, target)?;
            equal("host", &*seen.get("host"), "localhost")?;
            equal("status", answered.answer.status(), 200)
        }
    }
}
