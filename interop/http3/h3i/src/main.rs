//! Sequences that no client may send, sent by h3i to our server: `interop-h3i PORT`. Each line of
//! the tables says what is sent and what has to come of it.

mod connection;
mod message;

use std::time::Duration;

use h3i::actions::h3::{Action, ExpectedStreamSendResult, WaitType};
use h3i::client::connection_summary::ConnectionSummary;
use h3i::client::sync_client;
use h3i::config::Config;
use h3i::frame::H3iFrame;
use h3i::quiche::h3::Header;
use h3i::quiche::h3::frame::Frame;

/// The reaction that a sequence must cause.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    /// The server closes the connection with this code.
    Closed(u64),
    /// The server resets the stream of the request with this code, or answers with 400.
    Refused(u64),
    /// The server answers with this status.
    Answered(u16),
}

struct Case {
    name: &'static str,
    /// The section of the RFC that requires it.
    rule: &'static str,
    actions: Vec<Action>,
    outcome: Outcome,
}

fn case(
    name: &'static str,
    rule: &'static str,
    outcome: Outcome,
    actions: impl Into<Vec<Action>>,
) -> Case {
    Case {
        name,
        rule,
        actions: actions.into(),
        outcome,
    }
}

/// The first request stream, and the first streams of other kinds.
const REQUEST: u64 = 0;
const CONTROL: u64 = 2;

fn open(stream_id: u64, stream_type: u64) -> Action {
    Action::OpenUniStream {
        stream_id,
        fin_stream: false,
        stream_type,
        expected_result: ExpectedStreamSendResult::Ok,
    }
}

fn bytes(stream_id: u64, bytes: &[u8]) -> Action {
    Action::StreamBytes {
        stream_id,
        fin_stream: false,
        bytes: bytes.to_vec(),
        expected_result: ExpectedStreamSendResult::Ok,
    }
}

fn last_bytes(stream_id: u64, bytes: &[u8]) -> Action {
    Action::StreamBytes {
        stream_id,
        fin_stream: true,
        bytes: bytes.to_vec(),
        expected_result: ExpectedStreamSendResult::Ok,
    }
}

fn frame(stream_id: u64, frame: Frame) -> Action {
    Action::SendFrame {
        stream_id,
        fin_stream: false,
        frame,
        expected_result: ExpectedStreamSendResult::Ok,
    }
}

fn data(payload: &[u8]) -> Action {
    let payload = payload.to_vec();
    frame(REQUEST, Frame::Data { payload })
}

/// An open control stream with no settings, or with this one; both numbers below 64.
fn control(setting: Option<(u8, u8)>) -> Vec<Action> {
    let settings = match setting {
        None => bytes(CONTROL, &[4, 0]),
        Some((identifier, value)) => bytes(CONTROL, &[4, 2, identifier, value]),
    };
    vec![open(CONTROL, 0), settings]
}

/// A control stream, and then this.
fn with_control(then: impl IntoIterator<Item = Action>) -> Vec<Action> {
    let mut actions = control(None);
    actions.extend(then);
    actions
}

fn header((name, value): &(&str, &str)) -> Header {
    Header::new(name.as_bytes(), value.as_bytes())
}

/// A head with these fields as they are, in this order.
fn head(fields: &[(&str, &str)], is_last: bool) -> Action {
    let headers = fields.iter().map(header).collect();
    h3i::actions::h3::send_headers_frame_literal(REQUEST, is_last, headers)
}

/// The pseudo-header fields of a correct request whose content is read to its end.
const POST: [(&str, &str); 4] = [
    (":method", "POST"),
    (":scheme", "https"),
    (":authority", "localhost"),
    (":path", "/hash"),
];

fn post() -> Action {
    head(&POST, false)
}

/// The pseudo-header fields of a correct request.
const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "localhost"),
    (":path", "/"),
];

fn get(is_last: bool) -> Action {
    head(&GET, is_last)
}

fn play(case: &Case, port: &str) -> Result<Outcome, String> {
    let config = Config::new()
        .with_host_port(format!("localhost:{port}"))
        .with_connect_to(format!("127.0.0.1:{port}"))
        .verify_peer(false)
        .with_idle_timeout(1000)
        .build()
        .map_err(|error| error.to_string())?;
    let mut actions = case.actions.clone();
    actions.push(Action::FlushPackets);
    actions.push(Action::Wait {
        wait_type: WaitType::WaitDuration(Duration::from_millis(200)),
    });
    let summary =
        sync_client::connect(config, actions, None).map_err(|error| format!("{error:?}"))?;
    outcome(&summary).ok_or_else(|| format!("nothing: {:?}", summary.conn_close_details))
}

fn outcome(summary: &ConnectionSummary) -> Option<Outcome> {
    if let Some(error) = summary.conn_close_details.peer_error() {
        return Some(Outcome::Closed(error.error_code));
    }
    let frames = summary.stream_map.stream(REQUEST);
    let reset = frames.iter().find_map(|frame| match frame {
        H3iFrame::ResetStream(reset) => Some(Outcome::Refused(reset.error_code)),
        _ => None,
    });
    let status = || {
        let headers = summary.stream_map.headers_on_stream(REQUEST);
        let status = headers.first()?.status_code()?.clone();
        String::from_utf8(status).ok()?.parse().ok()
    };
    reset.or_else(|| status().map(Outcome::Answered))
}

fn fits(seen: Outcome, expected: Outcome) -> bool {
    // RFC 9114 §4.1.2 lets a server answer a malformed request before it gives it up.
    seen == expected
        || matches!(
            (seen, expected),
            (Outcome::Answered(400), Outcome::Refused(_))
        )
}

fn main() -> Result<(), String> {
    let port = std::env::args().nth(1).ok_or("usage: interop-h3i PORT")?;
    let cases: Vec<Case> = connection::cases()
        .into_iter()
        .chain(message::cases())
        .collect();
    let mut failed = 0;
    for case in &cases {
        let seen = play(case, &port);
        let is_fine = seen.as_ref().is_ok_and(|seen| fits(*seen, case.outcome));
        failed += usize::from(!is_fine);
        let verdict = if is_fine { "ok" } else { "FAILED" };
        let seen = match seen {
            Ok(Outcome::Closed(code)) => format!("connection closed with {code:#x}"),
            Ok(Outcome::Refused(code)) => format!("stream reset with {code:#x}"),
            Ok(Outcome::Answered(status)) => format!("answered with {status}"),
            Err(error) => error,
        };
        println!("{verdict:6} {:8} {}: {seen}", case.rule, case.name);
        if !is_fine {
            println!("       expected {:x?}", case.outcome);
        }
    }
    println!(
        "{} of {} as they have to be",
        cases.len() - failed,
        cases.len()
    );
    if failed > 0 {
        return Err(format!("{failed} failed"));
    }
    Ok(())
}
