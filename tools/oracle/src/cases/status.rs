//! Statuses, interim and final.

use crate::lab::{Findings, Lab, Pair, equal};
use crate::message::{Content, Request, Response};
use crate::upstream::Script;

/// Answers with each status. Rules: 9110-030, 9110-072, 9110-158, 9110-162, 9110-172, 9110-176, 9113-081.
pub async fn statuses(lab: &mut Lab) -> Findings {
    let known = (200..=208).chain([226]).chain(300..=308).chain(400..=431);
    let known = known
        .chain([451, 499])
        .chain(500..=511)
        .chain([299, 399, 599]);
    let statuses: Vec<u16> = known.chain([101, 600, 999, 99, 0]).collect();
    let mut findings = Findings::over(Pair::all());
    for pair in Pair::all() {
        for status in &statuses {
            let has_content = !matches!(status, 101 | 204 | 205 | 304);
            let mut response = Response::new(*status).with("x-kept", "1");
            if has_content {
                response.content = Content::length("ok");
            }
            if *status == 401 {
                response = response.with("www-authenticate", "Basic");
            }
            let request = Request::new("GET", "/status");
            let answered = lab.send(pair, Script::answer(response), &request).await;
            let expected = match status {
                // Nobody asked for another protocol, and there is none outside of these.
                0..=199 | 600.. => 502,
                _ => *status,
            };
            let seen = &answered.answer;
            let result = equal("status", seen.status(), expected)
                .and_then(|()| equal("complete", seen.is_complete(), true))
                .and_then(|()| match expected == *status {
                    true => equal("x-kept", &*seen.get("x-kept"), "1"),
                    false => Ok(()),
                })
                .and_then(|()| match (has_content, expected == *status) {
                    (true, true) => equal("content", &*seen.content, b"ok"),
                    (false, true) => equal("content", &*seen.content, b""),
                    _ => Ok(()),
                });
            findings.note(pair, &format!("status {status:03}"), result);
        }
    }
    findings
}

/// Answers with interim responses before the final one. Rules: 9110-161, 9113-045, 8297-001, 8297-003.
pub async fn interim_responses(lab: &mut Lab) -> Findings {
    let mut findings = Findings::over(Pair::all());
    for pair in Pair::all() {
        for status in [102, 103, 199] {
            let response = Response::ok()
                .interim(status, &[("link", "</a>")])
                .interim(status, &[("link", "</b>")]);
            let request = Request::new("GET", "/interim");
            let answered = lab.send(pair, Script::answer(response), &request).await;
            let seen = &answered.answer;
            let interim: Vec<_> = seen.interim.iter().map(|(status, _)| &**status).collect();
            let text = status.to_string();
            let links = format!("{:?}", seen.interim);
            let result = equal("interim", interim, vec![&*text, &*text])
                .and_then(|()| equal("status", seen.status(), 200))
                .and_then(|()| equal("link of the answer", &*seen.get("link"), ""))
                .and_then(
                    |()| match links.contains("content-length") || links.contains("date") {
                        true => Err(format!("has fields of its own: {links}")),
                        false => Ok(()),
                    },
                );
            findings.note(pair, &format!("{status} twice"), result);
        }
    }
    findings
}
