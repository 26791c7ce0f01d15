//! Messages that end before their end never look complete.

use std::time::Duration;

use crate::client::Client;
use crate::lab::{Findings, Lab, Pair, equal};
use crate::message::{Content, Ending, Request, Response, Version};
use crate::seen::End;
use crate::upstream::{Script, UpstreamVersion, When};
use crate::wire::Step;
use crate::{h1, h2, h3};

/// Cuts requests after some of their bytes, by an end and by a reset. Rules: 9110-027, 9112-053, 9113-048, 9112-084.
pub async fn requests_that_are_cut(lab: &mut Lab) -> Findings {
    let mut findings = Findings::over(Pair::all());
    let contents = [
        (
            "length",
            Content::Length(vec![b"one".to_vec(), b"two".to_vec()]),
        ),
        (
            "unknown length",
            Content::Unknown(vec![b"one".to_vec(), b"two".to_vec()]),
        ),
    ];
    for pair in Pair::all() {
        let mut sent = 0;
        for (name, content) in &contents {
            for ending in [Ending::Cut, Ending::Reset] {
                let request = Request::new("POST", "/cut").content(content.clone());
                for length in cuts(pair.client, &request, ending) {
                    sent += 1;
                    lab.upstream(pair.upstream)
                        .script(Script::answer(Response::ok()));
                    cut(lab, pair, &request, ending, length).await;
                    // What the cut request became has arrived before what comes after it.
                    let healthy = Request::new("GET", "/healthy");
                    let after = lab
                        .send(pair, Script::answer(Response::ok()), &healthy)
                        .await;
                    let whole = after
                        .upstream
                        .iter()
                        .find(|seen| seen.start.ends_with("/cut") && seen.is_complete());
                    let result = match whole {
                        Some(seen) => Err(format!("became a complete request:\n{seen}")),
                        None => equal("the next", after.answer.status(), 200),
                    };
                    findings.note(
                        pair,
                        &format!("{name}, {ending:?} at byte {length}"),
                        result,
                    );
                }
            }
        }
        assert!(sent > 10, "too few cuts over {}", pair.client);
    }
    findings
}

/// Returns some places to cut at: in the header section, and each byte behind it that is not the last.
fn cuts(version: Version, request: &Request, ending: Ending) -> Vec<usize> {
    let (head, all) = match version {
        Version::Http1 => {
            let all = h1::request(request);
            let head = all.windows(4).position(|four| four == b"\r\n\r\n");
            (head.expect("a header section") + 4, all.len())
        }
        Version::Http2 => {
            let frames = h2::request(request, 1);
            let all: usize = frames.iter().map(|frame| frame.encode().len()).sum();
            (frames[0].encode().len(), all)
        }
        Version::Http3 => {
            let all = h3::request(request).len();
            let mut bare = request.clone();
            bare.content = Content::None;
            (h3::request(&bare).len(), all)
        }
    };
    // In HTTP/3 the end of the stream is the end of a request of unknown length, and only a reset cuts it.
    let is_whole = version == Version::Http3
        && ending == Ending::Cut
        && matches!(request.content, Content::Unknown(_));
    let behind = if is_whole { head..head } else { head..all };
    (1..head).step_by(19).chain(behind.step_by(2)).collect()
}

async fn cut(lab: &mut Lab, pair: Pair, request: &Request, ending: Ending, length: usize) {
    let mut client = Client::connect(pair.client, lab.gateway(pair.upstream)).await;
    match &mut client {
        Client::Http1(wire) => {
            wire.send(&h1::request(request)[..length]).await;
            end(wire, ending).await;
        }
        Client::Http2(connection) => {
            let stream = connection.open();
            let frames = h2::request(request, stream);
            let bytes: Vec<u8> = frames.iter().flat_map(h2::Frame::encode).collect();
            connection.wire.send(&bytes[..length]).await;
            end(&mut connection.wire, ending).await;
        }
        Client::Http3(connection) => {
            let bytes = h3::request(request);
            if let Ok(pending) = connection.begin(&bytes[..length], ending).await {
                pending.answer().await;
            }
        }
    }
}

async fn end(wire: &mut crate::Wire, ending: Ending) {
    // A reset overtakes what was sent; the gateway should read that first.
    tokio::time::sleep(Duration::from_millis(2)).await;
    if ending == Ending::Cut {
        wire.close().await;
    } else {
        wire.reset();
    }
}

/// Cuts responses after some of their bytes. The client gets an error status or a message that is not complete. Rules: 9110-027,
/// 9112-063, 9113-049, 9110-179.
pub async fn responses_that_are_cut(lab: &mut Lab) -> Findings {
    let mut findings = Findings::over(Pair::all());
    let pieces = || vec![b"one".to_vec(), b"two".to_vec()];
    let responses = [
        (
            "length",
            Response::new(200).content(Content::Length(pieces())),
        ),
        (
            "chunks",
            Response::new(200).content(Content::Unknown(pieces())),
        ),
    ];
    for pair in Pair::all() {
        for (name, response) in &responses {
            for ending in [Ending::Cut, Ending::Reset] {
                let scripts = match pair.upstream {
                    UpstreamVersion::Http1 => cut_bytes(response, ending),
                    UpstreamVersion::H2c => cut_frames(response, ending),
                };
                for (place, script) in scripts {
                    let request = Request::new("POST", "/cut");
                    let answered = lab.send(pair, script, &request).await;
                    let seen = &answered.answer;
                    let is_error = (500..600).contains(&seen.status());
                    let result = match (is_error, seen.end) {
                        (true, End::Complete) | (false, End::Cut | End::Reset(_)) => Ok(()),
                        _ => Err(format!("was answered with:\n{seen}")),
                    };
                    findings.note(pair, &format!("{name}, {ending:?} at {place}"), result);
                }
            }
        }
    }
    findings
}

fn cut_bytes(response: &Response, ending: Ending) -> Vec<(usize, Script)> {
    let bytes = h1::response(response);
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let head = head.expect("a header section") + 4;
    let places = (0..head).step_by(13).chain((head..bytes.len()).step_by(2));
    let script = |place: usize| {
        let last = match ending {
            Ending::Reset => Step::Reset,
            _ => Step::Close,
        };
        let steps = vec![Step::Send(bytes[..place].to_vec()), last];
        (place, Script::Raw(When::AtEnd, steps))
    };
    places.map(script).collect()
}

fn cut_frames(response: &Response, ending: Ending) -> Vec<(usize, Script)> {
    let frames = h2::response(response, 1);
    let script = |place: usize| {
        let mut some = frames[..place].to_vec();
        if ending == Ending::Reset {
            some.push(h2::Frame::reset(1, 2));
            return (place, Script::Frames(When::AtEnd, some));
        }
        let mut cut = response.clone().ending(Ending::Cut);
        cut.content = match &response.content {
            Content::Length(pieces) => Content::Length(pieces[..place.min(1)].to_vec()),
            other => Content::Unknown(other.pieces()[..place.min(1)].to_vec()),
        };
        (place, Script::Answer(When::AtEnd, cut))
    };
    (0..frames.len()).map(script).collect()
}
