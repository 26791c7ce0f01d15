//! Tests of random frames against a model without chunks.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Frame {
    /// The header section of a request or a final response.
    Head,
    Interim,
    Trailers,
    Data,
    Empty,
    Unknown,
    Control,
}

impl Frame {
    fn bytes(self, side: Side) -> Vec<u8> {
        match self {
            Self::Head if side.is_server() => get(),
            Self::Head => ok(),
            Self::Interim => response_with("103", &[]),
            Self::Trailers => trailers(),
            Self::Data => data(b"more than tiny"),
            Self::Empty => data(b""),
            Self::Unknown => frame(frame::reserved(3), b"any"),
            Self::Control => frame(frame::GOAWAY, b"\0"),
        }
    }
}

/// The grammar of §4.1 for whole frames.
fn model(side: Side, frames: &[Frame], has_fin: bool) -> Result<Vec<Seen>, (Code, Scope)> {
    let (mut phase, mut seen) = (MessagePhase::BeforeHeaders, Vec::new());
    let (mut interim, mut empty) = (0, 0);
    for frame in frames {
        match (phase, frame) {
            (_, Frame::Control) => return Err(UNEXPECTED),
            (
                MessagePhase::BeforeHeaders | MessagePhase::AfterTrailers,
                Frame::Data | Frame::Empty,
            ) => {
                return Err(UNEXPECTED);
            }
            (_, Frame::Unknown | Frame::Empty) => {
                empty += 1;
                if empty > 2 {
                    seen.push(Seen::Counted);
                }
            }
            (MessagePhase::AfterTrailers, _) => return Err(UNEXPECTED),
            (_, Frame::Data) => match seen.last_mut() {
                Some(Seen::Content(content)) => content.extend(b"more than tiny"),
                _ => seen.push(Seen::Content(b"more than tiny".to_vec())),
            },
            (MessagePhase::BeforeHeaders, Frame::Head) => {
                seen.push(match side {
                    Side::Server => Seen::Request(Method::GET, None),
                    Side::Client => Seen::Response(StatusCode::OK, None),
                });
                phase = MessagePhase::Content;
            }
            (MessagePhase::BeforeHeaders, Frame::Interim) if side.is_client() => {
                interim += 1;
                if interim > 8 {
                    return Err(EXCESSIVE);
                }
                seen.push(Seen::Response(StatusCode::EARLY_HINTS, None));
            }
            (MessagePhase::Content, Frame::Trailers) => phase = MessagePhase::AfterTrailers,
            // A section of another kind.
            _ => return Err(MALFORMED),
        }
    }
    match (phase, side) {
        _ if !has_fin => {}
        (MessagePhase::BeforeHeaders, Side::Server) => return Err(INCOMPLETE),
        (MessagePhase::BeforeHeaders, Side::Client) => return Err(MALFORMED),
        (MessagePhase::AfterTrailers, _) => seen.push(Seen::Trailers(1)),
        _ => {}
    }
    Ok(seen)
}

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let frame = prop_oneof![
        3 => Just(Frame::Head),
        1 => Just(Frame::Interim),
        1 => Just(Frame::Trailers),
        4 => Just(Frame::Data),
        2 => Just(Frame::Empty),
        2 => Just(Frame::Unknown),
        1 => Just(Frame::Control),
    ];
    // Most messages start validly, because few would get far otherwise.
    let begin = prop_oneof![
        Just(vec![]),
        Just(vec![Frame::Head]),
        (0..10_usize).prop_map(|interim| vec![Frame::Interim; interim]),
        Just(vec![Frame::Interim, Frame::Head, Frame::Data]),
    ];
    (begin, prop::collection::vec(frame, 0..6)).prop_map(|(begin, more)| [begin, more].concat())
}

proptest! {
    #[test]
    fn random_frames_are_read_according_to_the_grammar(
        frames in frames(),
        is_server: bool,
        has_fin: bool,
    ) {
        let side = if is_server { Side::Server } else { Side::Client };
        let bytes: Vec<_> = frames.iter().map(|frame| frame.bytes(side)).collect();
        let mut reading = match side {
            Side::Server => Reading::server(&bytes),
            Side::Client => Reading::client(&bytes),
        };
        reading.has_fin = has_fin;
        prop_assert_eq!(reading.read(), model(side, &frames, has_fin), "{:?}", frames);
    }
}
