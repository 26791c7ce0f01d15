//! Tests of the frames that count as useless work (limits K17, K270).

use super::*;

const PRIORITY: u8 = 2;
const CONTINUATION: u8 = 9;
const PRIORITY_UPDATE: u8 = 16;
const UNKNOWN: u8 = 99;

/// Repeats an exchange of frames with a new stream each time until the connection must be closed.
fn until_exhausted(mut step: impl FnMut(&mut Flow, u32)) -> Option<u32> {
    let mut flow = Flow::new();
    flow.on_received(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    (0..5000).find(|&count| {
        step(&mut flow, 2 * count + 1);
        flow.budgets.is_exhausted()
    })
}

fn open(flow: &mut Flow, stream: u32) {
    flow.on_received(&frame(HEADERS, END_STREAM, stream, b"request"));
}

fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

#[tokio::test(start_paused = true)]
async fn requests_that_the_client_ends_before_their_response_count() {
    let cancelled = until_exhausted(|flow, stream| {
        open(flow, stream);
        flow.on_received(&reset(stream, 8));
    });
    assert_eq!(cancelled, Some(2300));
    for code in [1, 3, 5, 6, 7] {
        let reset_by_us = until_exhausted(|flow, stream| {
            open(flow, stream);
            flow.on_sent(&reset(stream, code));
            // The client resets the stream too, which does not count again.
            flow.on_received(&reset(stream, 8));
        });
        assert_eq!(reset_by_us, Some(2300), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_with_a_response_or_a_failed_service_do_not_count() {
    let begun = until_exhausted(|flow, stream| {
        open(flow, stream);
        flow.on_sent(&frame(HEADERS, 0, stream, b"response"));
        flow.on_received(&reset(stream, 8));
    });
    assert_eq!(begun, None);
    for code in [0, 2, 8, 11, 13] {
        let failed = until_exhausted(|flow, stream| {
            open(flow, stream);
            flow.on_sent(&reset(stream, code));
        });
        assert_eq!(failed, None, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn frames_without_progress_count() {
    let floods = [
        frame(PING, 0, 0, &[0; 8]),
        settings(9),
        frame(DATA, 0, 1, &[]),
        frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
        frame(UNKNOWN, 0, 0, b"what"),
        reset(1, 8),
    ];
    for flood in floods {
        let seen = until_exhausted(|flow, _| flow.on_received(&flood));
        assert_eq!(seen, Some(500), "{flood:?}");
    }
    for update in [
        frame(PRIORITY, 0, 1, &[0; 5]),
        frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1"),
    ] {
        let seen = until_exhausted(|flow, _| flow.on_received(&update));
        assert_eq!(seen, Some(756), "{update:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn content_and_its_credit_do_not_count() {
    let uploads = until_exhausted(|flow, stream| {
        flow.on_received(&frame(HEADERS, 0, stream, b"request"));
        flow.on_received(&frame(CONTINUATION, 0, stream, b"fields"));
        flow.on_received(&frame(DATA, 0, stream, b"content"));
        flow.on_received(&frame(DATA, END_STREAM, stream, b""));
        flow.on_sent(&frame(HEADERS, END_STREAM, stream, b"response"));
    });
    assert_eq!(uploads, None);
    // A client that grants 4 KiB at a time on the stream and on the connection.
    let downloads = until_exhausted(|flow, _| {
        flow.on_sent(&frame(DATA, 0, 1, &[7; 16_384]));
        for stream in [0, 1].repeat(4) {
            flow.on_received(&frame(WINDOW_UPDATE, 0, stream, &4096_u32.to_be_bytes()));
        }
        flow.on_received(&frame(PING, 0, 0, &[0; 8]));
    });
    assert_eq!(downloads, None);
}
