//! Fields in which the gateway names itself and the client.

use crate::lab::{Answered, Findings, Lab, Pair, equal};
use crate::message::{Request, Response, Version};
use crate::upstream::{Script, UpstreamVersion};

/// Looks at the fields that the gateway adds. Rules: 9110-052, 9110-053, 9110-109, 7239-001 to 7239-006, 9110-041.
pub async fn own_fields(lab: &mut Lab) -> Findings {
    let mut findings = Findings::over(Pair::all());
    for pair in Pair::all() {
        let request = Request::new("GET", "/own")
            .with("via", "1.0 first")
            .with("forwarded", "for=192.0.2.1")
            .with("x-forwarded-for", "192.0.2.1")
            .with("te", "trailers");
        let response = Response::ok().with("via", "1.0 first");
        let answered = lab.send(pair, Script::answer(response), &request).await;
        findings.note(pair, "via", via(pair, &answered));
        findings.note(pair, "forwarded", forwarded(&answered));
        findings.note(pair, "te", te(pair, &answered));
    }
    findings
}

fn via(pair: Pair, answered: &Answered) -> Result<(), String> {
    answered.forwarded()?;
    let there = match pair.client {
        Version::Http1 => "1.1 ",
        Version::Http2 => "2",
        Version::Http3 => "3",
    };
    let back = match pair.upstream {
        UpstreamVersion::Http1 => "1.1 ",
        UpstreamVersion::H2c => "2",
    };
    for (seen, version) in [(&answered.upstream[0], there), (&answered.answer, back)] {
        let lines = seen.get("via").replace('|', ", ");
        let hops: Vec<&str> = lines.split(", ").collect();
        let [first, own] = hops[..] else {
            return Err(format!("via: {lines}"));
        };
        equal("the hop before", first, "1.0 first")?;
        equal(
            &format!("{own} begins with {version}"),
            own.starts_with(version),
            true,
        )?;
    }
    Ok(())
}

fn forwarded(answered: &Answered) -> Result<(), String> {
    answered.forwarded()?;
    let seen = &answered.upstream[0];
    equal(
        "x-forwarded-for",
        &*seen.get("x-forwarded-for"),
        "127.0.0.1",
    )?;
    equal(
        "x-forwarded-proto",
        &*seen.get("x-forwarded-proto"),
        "https",
    )?;
    equal(
        "x-forwarded-host",
        &*seen.get("x-forwarded-host"),
        "localhost",
    )?;
    let element = seen.get("forwarded");
    let mut pairs: Vec<&str> = element.split(';').collect();
    pairs.sort_unstable();
    let plain = ["for=127.0.0.1", "host=localhost", "proto=https"];
    let quoted = ["for=127.0.0.1", "host=\"localhost\"", "proto=https"];
    equal(
        &format!("forwarded: {element}"),
        pairs == plain || pairs == quoted,
        true,
    )
}

fn te(pair: Pair, answered: &Answered) -> Result<(), String> {
    answered.forwarded()?;
    let seen = &answered.upstream[0];
    if seen.get("te").is_empty() {
        // It concerns one hop, so it may be dropped.
        return Ok(());
    }
    equal("te", &*seen.get("te"), "trailers")?;
    let listed = seen.get("connection").to_ascii_lowercase();
    let is_listed = listed.split(',').any(|option| option.trim() == "te");
    equal(
        "connection lists te",
        is_listed,
        pair.upstream == UpstreamVersion::Http1,
    )
}

/// Counts hops. Rules: 9110-050, 9110-051, 9110-098.
pub async fn max_forwards(lab: &mut Lab) -> Findings {
    let mut findings = Findings::over(Pair::all());
    for pair in Pair::all() {
        for (method, hops, expected) in [
            ("OPTIONS", "3", Some("2")),
            ("OPTIONS", "1", Some("0")),
            ("OPTIONS", "0", None),
            ("GET", "0", Some("0")),
            ("TRACE", "0", None),
        ] {
            let request = Request::new(method, "/hops").with("max-forwards", hops);
            let answered = lab
                .send(pair, Script::answer(Response::ok()), &request)
                .await;
            let result = match (expected, &answered.upstream[..]) {
                (None, []) => {
                    let status = answered.answer.status();
                    let is_answer = matches!(status, 200 | 204 | 405 | 501);
                    equal(&format!("{status} is an answer"), is_answer, true)
                }
                (None, [seen, ..]) => Err(format!("reached the upstream server:\n{seen}")),
                (Some(left), _) => answered
                    .forwarded()
                    .and_then(|seen| equal("hops", &*seen.get("max-forwards"), left)),
            };
            findings.note(pair, &format!("{method} with {hops}"), result);
        }
        let request = Request::new("TRACE", "/trace").with("authorization", "Basic dTpw");
        let answered = lab
            .send(pair, Script::answer(Response::ok()), &request)
            .await;
        findings.note(pair, "TRACE", answered.refusal().map(drop));
    }
    findings
}
