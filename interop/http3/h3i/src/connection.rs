//! Sequences that end a connection.

use h3i::quiche::h3::frame::Frame;

use crate::Outcome::{Answered, Closed};
use crate::{
    CONTROL, Case, REQUEST, bytes, case, control, data, frame, get, head, last_bytes, open, post,
    with_control,
};

const STREAM_CREATION_ERROR: u64 = 0x103;
const CLOSED_CRITICAL_STREAM: u64 = 0x104;
const FRAME_UNEXPECTED: u64 = 0x105;
const FRAME_ERROR: u64 = 0x106;
const ID_ERROR: u64 = 0x108;
const SETTINGS_ERROR: u64 = 0x109;
const MISSING_SETTINGS: u64 = 0x10a;
const QPACK_DECOMPRESSION_FAILED: u64 = 0x200;
const QPACK_ENCODER_STREAM_ERROR: u64 = 0x201;
const QPACK_DECODER_STREAM_ERROR: u64 = 0x202;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = streams();
    cases.extend(control_frames());
    cases.extend(request_frames());
    cases.extend(qpack());
    cases
}

fn streams() -> Vec<Case> {
    let second = |stream_type| with_control([open(6, stream_type), open(10, stream_type)]);
    vec![
        case(
            "a second control stream",
            "§6.2.1",
            Closed(STREAM_CREATION_ERROR),
            with_control([open(6, 0)]),
        ),
        case(
            "a control stream that ends",
            "§6.2.1",
            Closed(CLOSED_CRITICAL_STREAM),
            with_control([last_bytes(CONTROL, &[])]),
        ),
        case(
            "a push stream of a client's",
            "§6.2.2",
            Closed(STREAM_CREATION_ERROR),
            with_control([open(6, 1), bytes(6, &[0])]),
        ),
        case(
            "a second encoder stream",
            "§4.2",
            Closed(STREAM_CREATION_ERROR),
            second(2),
        ),
        case(
            "a second decoder stream",
            "§4.2",
            Closed(STREAM_CREATION_ERROR),
            second(3),
        ),
        case(
            "a stream of unknown type",
            "§6.2.3",
            Answered(200),
            with_control([open(6, 0x21), bytes(6, b"?"), get(true)]),
        ),
    ]
}

fn control_frames() -> Vec<Case> {
    let on_control = |bytes_: &[u8]| with_control([bytes(CONTROL, bytes_)]);
    vec![
        case(
            "no SETTINGS first",
            "§6.2.1",
            Closed(MISSING_SETTINGS),
            [open(CONTROL, 0), frame(CONTROL, Frame::GoAway { id: 0 })],
        ),
        case(
            "SETTINGS twice",
            "§7.2.4",
            Closed(FRAME_UNEXPECTED),
            on_control(&[4, 0]),
        ),
        case(
            "a setting twice",
            "§7.2.4",
            Closed(SETTINGS_ERROR),
            [open(CONTROL, 0), bytes(CONTROL, &[4, 4, 6, 1, 6, 1])],
        ),
        case(
            "a setting of HTTP/2",
            "§7.2.4.1",
            Closed(SETTINGS_ERROR),
            control(Some((2, 0))),
        ),
        case(
            "SETTINGS cut short",
            "§7.1",
            Closed(FRAME_ERROR),
            [open(CONTROL, 0), bytes(CONTROL, &[4, 1, 6])],
        ),
        case("an unknown setting", "§7.2.4.1", Answered(200), {
            let mut actions = control(Some((0x21, 7)));
            actions.push(get(true));
            actions
        }),
        case(
            "DATA on the control stream",
            "§7.2.1",
            Closed(FRAME_UNEXPECTED),
            on_control(&[0, 1, 0]),
        ),
        case(
            "HEADERS on the control stream",
            "§7.2.2",
            Closed(FRAME_UNEXPECTED),
            on_control(&[1, 1, 0]),
        ),
        case(
            "a frame of HTTP/2 on the control stream",
            "§7.2.8",
            Closed(FRAME_UNEXPECTED),
            on_control(&[6, 0]),
        ),
        case(
            "CANCEL_PUSH of no push",
            "§7.2.3",
            Closed(ID_ERROR),
            on_control(&[3, 1, 0]),
        ),
        case(
            "MAX_PUSH_ID that shrinks",
            "§7.2.7",
            Closed(ID_ERROR),
            on_control(&[0x0d, 1, 9, 0x0d, 1, 8]),
        ),
        case(
            "GOAWAY that grows",
            "§5.2",
            Closed(ID_ERROR),
            on_control(&[7, 1, 4, 7, 1, 8]),
        ),
        case(
            "GOAWAY with bytes behind it",
            "§7.1",
            Closed(FRAME_ERROR),
            on_control(&[7, 2, 4, 0]),
        ),
    ]
}

fn request_frames() -> Vec<Case> {
    let after_post = |bytes_: &[u8]| with_control([post(), last_bytes(REQUEST, bytes_)]);
    let trailers = || head(&[("x-trailer", "1")], false);
    vec![
        case(
            "DATA before HEADERS",
            "§4.1",
            Closed(FRAME_UNEXPECTED),
            with_control([data(b"x")]),
        ),
        case(
            "DATA after trailers",
            "§4.1",
            Closed(FRAME_UNEXPECTED),
            with_control([post(), trailers(), data(b"x")]),
        ),
        case(
            "HEADERS after trailers",
            "§4.1",
            Closed(FRAME_UNEXPECTED),
            with_control([post(), trailers(), trailers()]),
        ),
        case(
            "SETTINGS on a request",
            "§7.2.4",
            Closed(FRAME_UNEXPECTED),
            after_post(&[4, 0]),
        ),
        case(
            "GOAWAY on a request",
            "§7.2.6",
            Closed(FRAME_UNEXPECTED),
            after_post(&[7, 1, 0]),
        ),
        case(
            "PUSH_PROMISE of a client's",
            "§7.2.5",
            Closed(FRAME_UNEXPECTED),
            after_post(&[5, 1, 0]),
        ),
        case(
            "a frame of HTTP/2 on a request",
            "§7.2.8",
            Closed(FRAME_UNEXPECTED),
            after_post(&[2, 0]),
        ),
        case(
            "a frame that is cut off by the end",
            "§7.1",
            Closed(FRAME_ERROR),
            after_post(&[0, 9, 1]),
        ),
        case(
            "an unknown frame",
            "§9",
            Answered(200),
            after_post(&[0x21, 1, 1]),
        ),
    ]
}

fn qpack() -> Vec<Case> {
    let section = |section: &[u8]| {
        let header_block = section.to_vec();
        with_control([frame(REQUEST, Frame::Headers { header_block })])
    };
    vec![
        case(
            "a static entry that is not there",
            "9204§3.1",
            Closed(QPACK_DECOMPRESSION_FAILED),
            section(&[0, 0, 0xff, 0x7f]),
        ),
        case(
            "a section that is cut off",
            "9204§2.2",
            Closed(QPACK_DECOMPRESSION_FAILED),
            section(&[0, 0, 0x51, 0x09]),
        ),
        case(
            "a table beyond its limit",
            "9204§3.2.3",
            Closed(QPACK_ENCODER_STREAM_ERROR),
            with_control([open(6, 2), bytes(6, &[0x3f, 0xff, 0xff, 0xff, 0x7f])]),
        ),
        case(
            "a dynamic entry that is not there",
            "9204§4.3.4",
            Closed(QPACK_ENCODER_STREAM_ERROR),
            with_control([open(6, 2), bytes(6, &[0x05])]),
        ),
        case(
            "an increment by nothing",
            "9204§4.4.3",
            Closed(QPACK_DECODER_STREAM_ERROR),
            with_control([open(6, 3), bytes(6, &[0x00])]),
        ),
        case(
            "an increment by more than was sent",
            "9204§4.4.3",
            Closed(QPACK_DECODER_STREAM_ERROR),
            with_control([open(6, 3), bytes(6, &[0x3e])]),
        ),
    ]
}
