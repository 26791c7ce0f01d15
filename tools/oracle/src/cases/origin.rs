//! The server of files as an origin: dates, ranges, conditions, codings, methods.

use crate::client::Client;
use crate::gateway::Gateway;
use crate::lab::{Findings, equal};
use crate::message::{Request, Version};
use crate::seen::Seen;

/// The content of [`FILE`].
pub const CONTENT: &str = "0123456789";
/// The modification time of [`FILE`].
pub const MODIFIED: &str = "Tue, 15 Nov 1994 08:12:31 GMT";
/// The modification time of [`FILE`] in seconds since 1970.
pub const MODIFIED_SECONDS: u64 = 784_887_151;
/// A file with [`CONTENT`], modified at [`MODIFIED`].
pub const FILE: &str = "/a.txt";
/// A file of 2000 bytes that compress well.
pub const LARGE: &str = "/large.js";
/// A file whose modification time lies a day ahead.
pub const FUTURE: &str = "/future.txt";

/// The required response.
struct Expected {
    statuses: &'static [u16],
    content: Option<&'static str>,
    fields: &'static [(&'static str, &'static str)],
}

const fn status(statuses: &'static [u16]) -> Expected {
    Expected {
        statuses,
        content: None,
        fields: &[],
    }
}

const fn whole() -> Expected {
    Expected {
        statuses: &[200],
        content: Some(CONTENT),
        fields: &[("content-range", "")],
    }
}

const fn part(content: &'static str, range: &'static [(&'static str, &'static str)]) -> Expected {
    Expected {
        statuses: &[206],
        content: Some(content),
        fields: range,
    }
}

const UNSATISFIABLE: Expected = Expected {
    statuses: &[416],
    content: None,
    fields: &[("content-range", "bytes */10")],
};

/// Requests ranges. Rules: 9110-139 to 9110-149, 9110-151, 9110-153, 9110-021.
pub async fn ranges(gateway: &Gateway) -> Findings {
    let get = |range: &str| Request::new("GET", FILE).with("range", range);
    let cases = vec![
        (
            "first bytes",
            get("bytes=0-3"),
            part("0123", &[("content-range", "bytes 0-3/10")]),
        ),
        (
            "last bytes",
            get("bytes=-3"),
            part("789", &[("content-range", "bytes 7-9/10")]),
        ),
        (
            "more than there is",
            get("bytes=-100"),
            part(CONTENT, &[("content-range", "bytes 0-9/10")]),
        ),
        (
            "to the end",
            get("bytes=5-"),
            part("56789", &[("content-range", "bytes 5-9/10")]),
        ),
        (
            "beyond the end",
            get("bytes=5-99999999999999999999999"),
            part("56789", &[]),
        ),
        ("upper case", get("BYTES=0-1"), part("01", &[])),
        ("empty elements", get("bytes=,0-1,"), part("01", &[])),
        ("nothing at the end", get("bytes=-0"), UNSATISFIABLE),
        ("behind the end", get("bytes=10-"), UNSATISFIABLE),
        ("another unit", get("items=0-1"), whole()),
        ("no unit", get("0-1"), whole()),
        ("several", get("bytes=0-0,5-9"), status(&[200, 206])),
        ("several, none there", get("bytes=10-,20-"), UNSATISFIABLE),
        (
            "two lines",
            get("bytes=0-1").with("range", "bytes=3-4"),
            status(&[200, 416]),
        ),
        (
            "HEAD",
            Request::new("HEAD", FILE).with("range", "bytes=0-1"),
            status(&[200]),
        ),
    ];
    run(gateway, cases).await
}

/// Sends conditional requests. Rules: 9110-127 to 9110-134, 9110-136, 9110-138, 9110-148, 9110-171.
#[expect(clippy::too_many_lines, reason = "a table")]
pub async fn conditions(gateway: &Gateway) -> Findings {
    let get = || Request::new("GET", FILE);
    let mut client = Client::connect(Version::Http1, gateway).await;
    let tag = client.exchange(&get()).await.get("etag");
    let weak = format!("W/{tag}");
    let not_modified = || Expected {
        statuses: &[304],
        content: Some(""),
        fields: &[],
    };
    let old = "Mon, 14 Nov 1994 08:12:31 GMT";
    let range = || get().with("range", "bytes=0-1");
    let cases = vec![
        ("the tag", get().with("if-none-match", &tag), not_modified()),
        (
            "the tag, weak",
            get().with("if-none-match", &weak),
            not_modified(),
        ),
        (
            "a list with the tag",
            get().with("if-none-match", format!("\"x\", {tag}")),
            not_modified(),
        ),
        ("any tag", get().with("if-none-match", "*"), not_modified()),
        ("another tag", get().with("if-none-match", "\"x\""), whole()),
        (
            "the time",
            get().with("if-modified-since", MODIFIED),
            not_modified(),
        ),
        (
            "the time in the form of RFC 850",
            get().with("if-modified-since", "Tuesday, 15-Nov-94 08:12:31 GMT"),
            not_modified(),
        ),
        (
            "the time in the form of asctime",
            get().with("if-modified-since", "Tue Nov 15 08:12:31 1994"),
            not_modified(),
        ),
        (
            "an earlier time",
            get().with("if-modified-since", old),
            whole(),
        ),
        (
            "no time",
            get().with("if-modified-since", "yesterday"),
            whole(),
        ),
        (
            "two times",
            get()
                .with("if-modified-since", MODIFIED)
                .with("if-modified-since", MODIFIED),
            whole(),
        ),
        (
            "another tag and the time",
            get()
                .with("if-none-match", "\"x\"")
                .with("if-modified-since", MODIFIED),
            whole(),
        ),
        ("must be the tag", get().with("if-match", &tag), whole()),
        (
            "must be the tag, weak",
            get().with("if-match", &weak),
            status(&[412]),
        ),
        (
            "must be another tag",
            get().with("if-match", "\"x\""),
            status(&[412]),
        ),
        ("must be there", get().with("if-match", "*"), whole()),
        (
            "must be older",
            get().with("if-unmodified-since", old),
            status(&[412]),
        ),
        (
            "must be the tag, and older",
            get()
                .with("if-match", &tag)
                .with("if-unmodified-since", old),
            whole(),
        ),
        (
            "part if the tag",
            range().with("if-range", &tag),
            part("01", &[]),
        ),
        (
            "part if the tag, weak",
            range().with("if-range", &weak),
            whole(),
        ),
        (
            "part if another tag",
            range().with("if-range", "\"x\""),
            whole(),
        ),
        (
            "part if the time",
            range().with("if-range", MODIFIED),
            part("01", &[]),
        ),
        (
            "part if another time",
            range().with("if-range", old),
            whole(),
        ),
        ("whole if the tag", get().with("if-range", &tag), whole()),
        (
            "part unless the tag",
            range().with("if-none-match", &tag),
            not_modified(),
        ),
        (
            "nothing there, any tag",
            Request::new("GET", "/none").with("if-none-match", "*"),
            status(&[404]),
        ),
    ];
    run(gateway, cases).await
}

/// Uses methods and hosts. Rules: 9110-083, 9110-084, 9110-096, 9110-111, 9112-013 to 9112-015, 9112-025, 9113-065 to
/// 9113-068.
pub async fn methods_and_hosts(gateway: &Gateway) -> Findings {
    let of = |method: &str| Request::new(method, FILE);
    let host = |authority: &'static str| of("GET").authority(authority);
    let cases = vec![
        ("GET", of("GET"), whole()),
        ("POST", of("POST"), status(&[405])),
        ("DELETE", of("DELETE"), status(&[405])),
        ("an unknown method", of("UNKNOWN"), status(&[501])),
        ("lower case", of("get"), status(&[405, 501])),
        ("no host", of("GET").authority(None), status(&[0, 400])),
        ("an empty host", host(""), status(&[0, 400])),
        ("a user name", host("user@localhost"), status(&[0, 400])),
        ("a path in the host", host("localhost/a"), status(&[0, 400])),
        (
            "another host in Host",
            of("GET").with("host", "other"),
            status(&[0, 400]),
        ),
        (
            "asterisk of GET",
            Request::new("GET", "*"),
            status(&[0, 400]),
        ),
    ];
    run(gateway, cases).await
}

async fn run(gateway: &Gateway, cases: Vec<(&'static str, Request, Expected)>) -> Findings {
    let mut findings = Findings::over(Version::ALL);
    for version in Version::ALL {
        let mut client = Client::connect(version, gateway).await;
        for (name, request, expected) in &cases {
            if !client.is_usable().await {
                client = Client::connect(version, gateway).await;
            }
            let seen = client.exchange(request).await;
            findings.note(version, name, check(expected, &seen));
        }
    }
    findings
}

fn check(expected: &Expected, seen: &Seen) -> Result<(), String> {
    let status = seen.status();
    if !expected.statuses.contains(&status) {
        return Err(format!("{status}, not {:?}:\n{seen}", expected.statuses));
    }
    if status == 0 {
        // A malformed request ends its stream, and nothing else.
        let is_reset = matches!(seen.end, crate::End::Reset(_));
        return equal(&format!("{:?} is a reset", seen.end), is_reset, true);
    }
    equal("complete", seen.is_complete(), true)?;
    equal("dates", seen.all("date").count(), 1)?;
    let date = seen.get("date");
    let is_fixed = date.len() == MODIFIED.len() && date.ends_with(" GMT");
    equal(&format!("{date} has the fixed form"), is_fixed, true)?;
    if let Some(content) = expected.content {
        equal("content", &*String::from_utf8_lossy(&seen.content), content)?;
    }
    for (name, value) in expected.fields {
        equal(name, &*seen.get(name), *value)?;
    }
    match status {
        200 | 206 | 304 => equal("has a tag", seen.get("etag").starts_with('"'), true)?,
        405 => equal("allow", seen.get("allow").contains("GET"), true)?,
        _ => {}
    }
    if matches!(status, 200 | 206) {
        equal("last-modified", &*seen.get("last-modified"), MODIFIED)?;
    }
    Ok(())
}

/// Compares HEAD with GET, and checks content codings and times. Rules: 9110-078, 9110-089, 9110-090, 9110-122 to 9110-126.
pub async fn representations(gateway: &Gateway) -> Findings {
    let mut findings = Findings::over(Version::ALL);
    for version in Version::ALL {
        let mut client = Client::connect(version, gateway).await;
        for path in [FILE, LARGE, "/none", "/"] {
            for coding in ["", "gzip", "gzip;q=0", "gzip;Q=0.0", "x-none"] {
                let get = Request::new("GET", path).with("accept-encoding", coding);
                let mut head = get.clone();
                head.control.method = b"HEAD".to_vec();
                let (get, head) = (client.exchange(&get).await, client.exchange(&head).await);
                let result = same(&get, &head);
                findings.note(version, &format!("HEAD of {path} as {coding:?}"), result);
                let is_coded = get.get("content-encoding") == "gzip";
                let result = equal("is coded", is_coded, path == LARGE && coding == "gzip");
                if path != "/none" && path != "/" {
                    findings.note(version, &format!("{path} as {coding:?}"), result);
                    let vary = get.get("vary").to_ascii_lowercase();
                    let result = match path {
                        LARGE => equal("vary", &*vary, "accept-encoding"),
                        _ => Ok(()),
                    };
                    findings.note(version, &format!("vary of {path} as {coding:?}"), result);
                }
            }
        }
        let seen = client.exchange(&Request::new("GET", FUTURE)).await;
        let (modified, date) = (seen.get("last-modified"), seen.get("date"));
        let is_now = modified.is_empty() || modified == date;
        let result = equal(&format!("{modified} is not after {date}"), is_now, true);
        findings.note(version, "a file of tomorrow", result);
    }
    findings
}

fn same(get: &Seen, head: &Seen) -> Result<(), String> {
    equal("content of HEAD", head.content.len(), 0)?;
    let without_time = |seen: &Seen| {
        let mut seen = seen.clone().without(|name| name == "date");
        seen.content.clear();
        // GET may send chunks where HEAD knows no length.
        seen.framing = crate::Framing::None;
        seen.to_string()
    };
    equal("fields of HEAD", without_time(head), without_time(get))
}
