//! A session against pieces of content, and two ends against each other.

use proptest::prelude::*;

use super::*;

/// Returns what a session does with content in pieces of `size` bytes.
fn outcome(flow_control: bool, content: &[u8], size: usize) -> (Vec<SessionEvent>, Vec<Output>) {
    let mut session = if flow_control { new() } else { plain() };
    for piece in content.chunks(size) {
        session.on_content(NOW, Bytes::copy_from_slice(piece));
    }
    session.on_content_end(NOW);
    (events(&mut session), outputs(&mut session))
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    let kinds = [
        0x2843,
        0x78ae,
        0x190b_4d3d,
        0x190b_4d3e,
        0x190b_4d3f,
        0x190b_4d40,
        0x190b_4d41,
        0x190b_4d42,
        0x190b_4d43,
        0x190b_4d44,
        0,
        0x21,
    ];
    let value = prop_oneof![
        // Limits above those of the settings, in four bytes.
        4 => (20_000_000..30_000_000_u32).prop_map(|limit| (0x8000_0000 | limit).to_be_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..12),
        1 => Just(b"\0\0\0\x07bye".to_vec()),
        1 => Just(Vec::new()),
    ];
    let capsule = (proptest::sample::select(kinds.to_vec()), value);
    proptest::collection::vec(capsule, 0..6).prop_map(|capsules| {
        let mut out = Vec::new();
        for (kind, value) in capsules {
            Capsule::encode(&mut out, kind, &value);
        }
        out
    })
}

/// The traffic of a connection: what one end does, by number.
fn steps() -> impl Strategy<Value = Vec<(bool, u8, u16)>> {
    proptest::collection::vec((any::<bool>(), 0..7_u8, any::<u16>()), 0..200)
}

/// The streams and bytes that are on their way to an end, and the content of its CONNECT stream.
#[derive(Default)]
struct Way {
    content: Vec<Bytes>,
    streams: u64,
    bytes: u64,
}

proptest! {
    #[test]
    fn pieces_of_content_have_no_effect(
        content in content(),
        more in proptest::collection::vec(any::<u8>(), 0..4),
        flow_control in any::<bool>(),
    ) {
        let content = [content, more].concat();
        let whole = outcome(flow_control, &content, content.len().max(1));
        for size in [1, 2, 3, 7] {
            prop_assert_eq!(outcome(flow_control, &content, size), whole.clone(), "pieces of {}", size);
        }
    }

    /// Two ends that keep the rules never end the session, in whatever order capsules, streams and bytes arrive.
    #[test]
    fn ends_agree_on_limits(steps in steps()) {
        let limits = Limits { max_data: 1000, max_streams_bidi: 3, max_streams_uni: 0 };
        let mut ends = [0; 2].map(|_: u8| Session::new(session(0), &agreement(limits)));
        let mut ways = [Way::default(), Way::default()];
        for (step, (end, action, amount)) in steps.into_iter().enumerate() {
            let (now, own) = (after(step as u64), usize::from(end));
            let other = 1 - own;
            match action {
                0 => ways[other].streams += u64::from(ends[own].open_stream(BIDI).is_ok()),
                1 => ways[other].bytes += ends[own].reserve_data(u64::from(amount % 2000)),
                2 if ways[own].streams > 0 => {
                    ways[own].streams -= 1;
                    prop_assert_eq!(ends[own].on_stream(now, BIDI), Ok(()));
                    if amount % 2 == 0 {
                        ends[own].on_stream_ended(BIDI);
                    }
                }
                3 => {
                    let bytes = u64::from(amount).min(ways[own].bytes);
                    ways[own].bytes -= bytes;
                    prop_assert_eq!(ends[own].on_data(now, bytes), Ok(()));
                    ends[own].on_consumed(now, Duration::from_millis(5), bytes);
                }
                4 => {
                    if let Some(Output::Content(content)) = ends[own].poll_output() {
                        ways[other].content.push(content);
                    }
                }
                5 if !ways[own].content.is_empty() => {
                    let content = ways[own].content.remove(0);
                    ends[own].on_content(now, content);
                }
                6 => {
                    let reserved = ends[own].reserve_data(u64::from(amount % 100));
                    ends[own].give_back_data(reserved);
                }
                _ => {}
            }
            prop_assert_eq!(ends[own].closed(), None);
        }
    }
}
