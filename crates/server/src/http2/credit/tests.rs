use super::super::budgets::Refusing;
use super::*;

mod recorded;
mod useless;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).expect("short").to_be_bytes();
    let mut bytes = len[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn settings(initial_window: u32) -> Vec<u8> {
    let mut payload = vec![0, 3, 0, 0, 0, 100, 0, 4];
    payload.extend(initial_window.to_be_bytes());
    frame(SETTINGS, 0, 0, &payload)
}

/// The flow control state of a client's connection.
struct Flow {
    credit: Credit,
    budgets: Budgets,
}

impl Flow {
    fn new() -> Self {
        Self {
            credit: Credit::new(),
            budgets: Budgets::new(Refusing::default()),
        }
    }

    fn on_received(&mut self, bytes: &[u8]) {
        self.credit.on_received(bytes, &mut self.budgets);
    }

    fn on_sent(&mut self, bytes: &[u8]) {
        self.credit.on_sent(bytes, &mut self.budgets);
    }
}

impl std::ops::Deref for Flow {
    type Target = Credit;

    fn deref(&self) -> &Credit {
        &self.credit
    }
}

/// Creates the connection of a client that grants this window on each stream and has a request on stream 1.
fn with_request(initial_window: u32) -> Flow {
    let mut credit = Flow::new();
    credit.on_received(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    credit.on_received(&settings(initial_window));
    credit.on_received(&frame(HEADERS, END_STREAM, 1, b"request"));
    credit
}

fn send(credit: &mut Flow, len: usize) {
    credit.on_sent(&frame(DATA, 0, 1, &vec![0; len]));
}

#[test]
fn exhausted_window_blocks_the_response() {
    let mut credit = with_request(10);
    credit.on_sent(&frame(HEADERS, 0, 1, b"response"));
    assert!(!credit.is_used_up());
    send(&mut credit, 10);
    assert!(credit.is_used_up());
    assert_eq!(credit.data_sent(), 10);
    credit.on_received(&frame(PING, 0, 0, &[0; 8]));
    assert!(credit.is_used_up(), "a PING grants no credit");
    credit.on_received(&frame(WINDOW_UPDATE, 0, 1, &5_u32.to_be_bytes()));
    assert!(!credit.is_used_up());
}

#[test]
fn window_of_zero_blocks_the_response_from_its_start() {
    let mut credit = with_request(0);
    assert!(!credit.is_used_up(), "nothing was answered yet");
    credit.on_sent(&frame(HEADERS, 0, 1, b"response"));
    assert!(credit.is_used_up());
    credit.on_received(&settings(100));
    assert!(!credit.is_used_up(), "the setting counts for open streams");
}

#[test]
fn window_of_the_connection_applies_to_all_streams() {
    let mut credit = with_request(1 << 20);
    credit.on_sent(&frame(HEADERS, 0, 1, b"response"));
    for _ in 0..4 {
        send(&mut credit, 16_383);
    }
    assert!(!credit.is_used_up());
    send(&mut credit, 3);
    assert!(credit.is_used_up());
    credit.on_received(&frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()));
    assert!(!credit.is_used_up());
}

#[test]
fn completed_responses_are_not_blocked() {
    let over = [
        frame(DATA, END_STREAM, 1, b"0123456789"),
        frame(HEADERS, END_STREAM, 1, b"trailers"),
        frame(RST_STREAM, 0, 1, &[0; 4]),
    ];
    for last in over {
        let mut credit = with_request(10);
        credit.on_sent(&frame(HEADERS, 0, 1, b"response"));
        credit.on_sent(&last);
        assert!(!credit.is_used_up(), "{last:?}");
        assert!(credit.streams.is_empty(), "{last:?}");
    }
    let mut credit = with_request(0);
    credit.on_sent(&frame(HEADERS, 0, 1, b"response"));
    credit.on_received(&frame(RST_STREAM, 0, 1, &[0; 4]));
    assert!(!credit.is_used_up(), "the client has given it up");
}

#[test]
fn trailers_of_a_request_do_not_reopen_its_stream() {
    let mut credit = with_request(0);
    credit.on_sent(&frame(HEADERS, END_STREAM, 1, b"response"));
    credit.on_received(&frame(HEADERS, END_STREAM, 1, b"trailers"));
    assert!(credit.streams.is_empty());
}

#[test]
fn tracked_streams_are_limited() {
    let mut credit = with_request(0);
    for stream in 1..=MAX_STREAMS as u32 + 10 {
        credit.on_received(&frame(HEADERS, END_STREAM, 2 * stream + 1, b"request"));
    }
    assert_eq!(credit.streams.len(), MAX_STREAMS);
}

#[test]
fn frames_may_be_split_anywhere() {
    let mut received = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    received.extend(settings(7));
    received.extend(frame(SETTINGS, 1, 0, b""));
    received.extend(frame(HEADERS, END_STREAM, 1, &[7; 40]));
    received.extend(frame(WINDOW_UPDATE, 0, 1, &3_u32.to_be_bytes()));
    let mut sent = settings(1);
    sent.extend(frame(HEADERS, 0, 1, &[1; 20]));
    sent.extend(frame(DATA, 0, 1, &[0; 10]));
    for piece in 1..=sent.len() {
        let mut credit = Flow::new();
        received
            .chunks(piece)
            .for_each(|bytes| credit.on_received(bytes));
        sent[..sent.len() - 19]
            .chunks(piece)
            .for_each(|bytes| credit.on_sent(bytes));
        assert!(!credit.is_used_up(), "pieces of {piece}");
        sent[sent.len() - 19..]
            .chunks(piece)
            .for_each(|bytes| credit.on_sent(bytes));
        assert!(credit.is_used_up(), "pieces of {piece}");
    }
}
