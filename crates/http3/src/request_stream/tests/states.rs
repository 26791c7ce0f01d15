//! Tests of every state with every event.

use super::*;

/// A state: how it is reached, and its properties.
struct Row {
    name: &'static str,
    stream: Reading,
    /// Number of steps that are taken after the bytes have arrived.
    steps: usize,
    poll: &'static str,
    /// The result of FIN in this state.
    fin: Result<(), (Code, Scope)>,
    stop: Option<Code>,
}

impl Row {
    /// Returns a stream in this state with its connection.
    fn reach(&self) -> (RequestStream, Connection) {
        let (mut stream, mut connection) = (self.stream.stream(), self.stream.connection());
        stream.push(Bytes::copy_from_slice(&self.stream.bytes));
        if self.stream.has_fin {
            stream.on_fin();
        }
        for _ in 0..self.steps {
            match stream.poll() {
                Step::Decode => assert_eq!(stream.decode(&mut connection), Decoding::Done),
                Step::Charge => drop(stream.charge(&mut connection, NOW)),
                _ => {}
            }
        }
        (stream, connection)
    }
}

/// Returns all states of a request. FIN has not arrived unless the row has it.
fn request_rows() -> Vec<Row> {
    let frame_error = Err((Code::FRAME_ERROR, Scope::Connection));
    let post = request_with("POST", &[("content-length", "3")]);
    let row = |name, frames: &[Vec<u8>], steps, poll, fin| Row {
        name,
        stream: Reading {
            has_fin: false,
            ..Reading::server(frames)
        },
        steps,
        poll,
        fin,
        stop: Some(Code::NO_ERROR),
    };
    let mut over = row("over", &[get()], 2, "End", Ok(()));
    over.stream.has_fin = true;
    over.stop = None;
    let mut failed = row("failed", &[data(b"x")], 1, "End", Ok(()));
    failed.stop = None;
    let empty = data(b"").repeat(3);
    vec![
        row("before HEADERS", &[], 0, "Read", Err(INCOMPLETE)),
        row(
            "inside HEADERS",
            &[get()[..3].to_vec()],
            1,
            "Read",
            frame_error,
        ),
        row("section arrived", &[get()], 0, "Decode", Ok(())),
        row("section decoded", &[get()], 1, "Headers", Ok(())),
        row("content may come", &[get()], 2, "Read", Ok(())),
        row("content must come", &[post], 2, "Read", Err(MALFORMED)),
        row(
            "content arrived",
            &[get(), data(b"x")],
            2,
            "Content",
            Ok(()),
        ),
        row(
            "inside DATA",
            &[get(), data(b"x")[..2].to_vec()],
            2,
            "Read",
            frame_error,
        ),
        row("frame to count", &[get(), empty], 2, "Charge", Ok(())),
        row(
            "trailers arrived",
            &[get(), trailers()],
            2,
            "Decode",
            Ok(()),
        ),
        row("trailers decoded", &[get(), trailers()], 3, "Read", Ok(())),
        row("broken", &[data(b"x")], 0, "Charge", Err(UNEXPECTED)),
        failed,
        over,
    ]
    .into_iter()
    .chain(large_rows(row))
    .collect()
}

/// Returns the states of a request whose header section exceeds the limits, decoded and not.
fn large_rows(
    row: impl Fn(&'static str, &[Vec<u8>], usize, &'static str, Result<(), (Code, Scope)>) -> Row,
) -> [Row; 2] {
    let section = request_with("GET", &[("x", &"v".repeat(300))]);
    let mut large = row("too large", &[section], 1, "TooLarge", Ok(()));
    large.stream.limits.size = 300;
    let section = frame(frame::HEADERS, &[0; 301]);
    let mut oversized = row("oversized", &[section], 0, "TooLarge", Ok(()));
    (oversized.stream.limits.size, oversized.stream.limits.lines) = (284, 1);
    [large, oversized]
}

/// Returns the states of a response that a request does not have.
fn response_rows() -> Vec<Row> {
    let row = |name, frames: &[Vec<u8>], steps, poll, fin| Row {
        name,
        stream: Reading {
            has_fin: false,
            ..Reading::client(frames)
        },
        steps,
        poll,
        fin,
        stop: Some(Code::REQUEST_CANCELLED),
    };
    let hints = response_with("103", &[]);
    vec![
        row("before the response", &[], 0, "Read", Err(MALFORMED)),
        row(
            "interim decoded",
            std::slice::from_ref(&hints),
            1,
            "Headers",
            Err(MALFORMED),
        ),
        row(
            "after an interim response",
            std::slice::from_ref(&hints),
            2,
            "Read",
            Err(MALFORMED),
        ),
        row(
            "final response decoded",
            &[hints.clone(), ok()],
            3,
            "Headers",
            Ok(()),
        ),
        row(
            "after the final response",
            &[hints, ok()],
            4,
            "Read",
            Ok(()),
        ),
    ]
}

fn name(step: &Step) -> String {
    let text = format!("{step:?}");
    let end = text.find('(').unwrap_or(text.len());
    text[..end].to_owned()
}

/// Runs to the end or the first error.
fn run(stream: &mut RequestStream, connection: &mut Connection) -> Result<(), (Code, Scope)> {
    loop {
        match next(stream, connection).map_err(failed)? {
            None => panic!("the end came: {stream:?}"),
            Some(Seen::End | Seen::TooLarge) => return Ok(()),
            Some(_) => {}
        }
    }
}

#[test]
fn every_state_accepts_every_event() {
    for row in request_rows().into_iter().chain(response_rows()) {
        let (mut stream, mut connection) = row.reach();
        assert_eq!(name(&stream.poll()), row.poll, "{}", row.name);

        let (mut stream, _) = row.reach();
        assert_eq!(stream.stop_code(), row.stop, "{}", row.name);
        assert_eq!(stream.is_over(), row.stop.is_none(), "{}", row.name);
        stream.on_fin();
        assert_eq!(
            run(&mut stream, &mut connection),
            row.fin,
            "FIN, {}",
            row.name
        );
    }
}

#[test]
fn every_state_can_be_ended_by_every_event() {
    let of_stream = Error::stream(Code::REQUEST_REJECTED, "too late");
    let of_connection = Error::frame("a mistake elsewhere");
    let ends: [fn(&mut RequestStream, &mut Connection, [Error; 2]); 5] = [
        |stream, connection, _| assert_eq!(stream.on_reset(connection, NOW), Ok(())),
        |stream, _, _| stream.on_connection_lost(),
        |stream, connection, _| stream.abandon(connection),
        |stream, connection, [error, _]| assert_eq!(stream.fail(connection, NOW, error), error),
        |stream, connection, [_, error]| assert_eq!(stream.fail(connection, NOW, error), error),
    ];
    for row in request_rows().into_iter().chain(response_rows()) {
        for (number, end) in ends.into_iter().enumerate() {
            let (mut stream, mut connection) = row.reach();
            end(&mut stream, &mut connection, [of_stream, of_connection]);
            let place = format!("end {number}, {}", row.name);
            assert!(stream.is_over(), "{place}");
            assert_eq!(stream.stop_code(), None, "{place}");
            assert_eq!(stream.take_held(), 0, "{place}");
            assert_eq!(stream.decode(&mut connection), Decoding::Done, "{place}");
            assert_eq!(stream.charge(&mut connection, NOW), Ok(()), "{place}");
            assert_eq!(name(&stream.poll()), "End", "{place}");
            stream.on_fin();
            assert_eq!(name(&stream.poll()), "End", "{place}");
        }
    }
}

/// RFC 9114 §4.1, §4.4: the rest of a request is read briefly, and that of a tunnel is not.
#[test]
fn requests_are_answered_early_and_tunnels_are_not() {
    let extended = headers(&[
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", "example.org"),
        (":path", "/"),
    ]);
    for (name, head, expected) in [
        ("POST", request_with("POST", &[]), true),
        ("CONNECT", request_with("CONNECT", &[]), false),
        ("extended CONNECT", extended, false),
    ] {
        let reading = Reading::server(&[head]);
        let (mut stream, mut connection) = (reading.stream(), reading.connection());
        stream.push(Bytes::copy_from_slice(&reading.bytes));
        assert!(!stream.is_answered_early(), "{name}: before its fields");
        assert!(matches!(stream.poll(), Step::Decode), "{name}");
        assert_eq!(stream.decode(&mut connection), Decoding::Done, "{name}");
        assert_eq!(stream.is_answered_early(), expected, "{name}");
        stream.abandon(&mut connection);
        assert!(!stream.is_answered_early(), "{name}: given up");
    }
}
