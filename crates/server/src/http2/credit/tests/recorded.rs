//! Replays recordings of real HTTP/2 clients. None of them may approach a limit.
//!
//! `interop/recordings/record` creates the texts from real programs, and `interop/recordings/http2.py` describes
//! the format of their lines.

use std::time::Duration;

use tokio::time::Instant;

use super::*;

/// The largest use of each budget in a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Used {
    /// Frames without progress, of 500 (K17).
    frames: u64,
    /// PRIORITY frames and updates, of 256 (K17).
    updates: u64,
    /// Cancelled requests, of 2000 (K270, K320).
    cancelled: u64,
}

const fn used(frames: u64, updates: u64, cancelled: u64) -> Used {
    Used {
        frames,
        updates,
        cancelled,
    }
}

/// Returns the bytes of a frame from its fields in the recording.
fn bytes(name: &str, stream: u32, value: &str, ends: bool) -> Vec<u8> {
    let value = value.parse::<u32>().ok();
    let number = value.unwrap_or(0).to_be_bytes();
    let filler = vec![0; value.unwrap_or(0) as usize];
    let flags = u8::from(ends);
    match name {
        "DATA" => frame(DATA, flags, stream, &filler),
        "HEADERS" => frame(HEADERS, flags, stream, &filler),
        "PRIORITY" => frame(2, 0, stream, &filler),
        "RST_STREAM" => frame(RST_STREAM, 0, stream, &number),
        "SETTINGS" => match value {
            Some(window) => settings(window),
            None => frame(SETTINGS, 0, 0, &[]),
        },
        "PING" => frame(PING, 0, 0, &filler),
        "GOAWAY" => frame(7, 0, 0, &filler),
        "WINDOW_UPDATE" => frame(WINDOW_UPDATE, 0, stream, &number),
        "CONTINUATION" => frame(9, 0, stream, &filler),
        "PRIORITY_UPDATE" => frame(16, 0, stream, &filler),
        "UNKNOWN" => frame(99, 0, stream, &filler),
        name => panic!("{name} is unknown"),
    }
}

async fn replay(text: &str) -> Used {
    let mut flow = Flow::new();
    flow.on_received(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let (mut most, mut requests) = (used(0, 0, 0), 0);
    let began = Instant::now();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let at = began + Duration::from_millis(words[0].parse().expect("milliseconds"));
        if at > Instant::now() {
            tokio::time::advance(at - Instant::now()).await;
        }
        let stream = words[3].parse().expect("a stream");
        let frame = bytes(words[2], stream, words[4], words.get(5) == Some(&"end"));
        match words[1] {
            "c" => flow.on_received(&frame),
            _ => flow.on_sent(&frame),
        }
        requests += u32::from(words[1] == "c" && words[2] == "HEADERS");
        let (frames, updates, cancelled) = flow.budgets.used();
        most.frames = most.frames.max(frames);
        most.updates = most.updates.max(updates);
        most.cancelled = most.cancelled.max(cancelled);
        assert_eq!(flow.budgets.take_pause(), None, "{line}");
        assert!(!flow.budgets.is_exhausted(), "{line}");
    }
    assert!(requests > 0, "no request");
    most
}

macro_rules! recordings {
    ($($name:literal: $used:expr,)*) => {
        [$(($name, include_str!(concat!("recorded/", $name, ".txt")), $used),)*]
    };
}

/// K17, K270, K320: the table "Honest peers" of docs/LIMITS.md has the largest numbers.
#[tokio::test(start_paused = true)]
async fn honest_clients_stay_far_from_every_limit() {
    let recordings = recordings! {
        "chromium-images-900": used(2, 0, 0),
        "chromium-search": used(2, 0, 1),
        "chromium-scroll": used(2, 0, 622),
        "chromium-poll": used(2, 0, 15),
        "chromium-wake": used(2, 0, 0),
        "firefox-images-900": used(3, 0, 0),
        "firefox-search": used(3, 0, 2),
        "firefox-scroll": used(2, 0, 573),
        "firefox-poll": used(3, 0, 14),
        "firefox-wake": used(3, 0, 0),
        "h2load": used(2, 0, 0),
        "curl": used(2, 0, 0),
        "go": used(2, 0, 8),
        "haproxy": used(2, 0, 0),
        "grpc": used(3, 0, 0),
    };
    let mut seen = Vec::new();
    for (name, text, _) in recordings {
        seen.push((name, replay(text).await));
    }
    assert_eq!(seen, recordings.map(|(name, _, expected)| (name, expected)));
    // No client uses more than half of its initial budget.
    for (name, used) in seen {
        assert!(used.frames <= 250, "{name}");
        assert!(used.updates <= 128, "{name}");
        assert!(used.cancelled <= 1000, "{name}");
    }
}
