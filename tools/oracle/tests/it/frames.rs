//! Functions that the tests of HTTP/2 share, to send and receive single frames.

use courser::server;
use courser_oracle::h2::{self, Frame};
use courser_oracle::{Client, Gateway, Request, Version};
use http_body_util::BodyExt as _;

use crate::serving::Answer;

/// The flag ACK of SETTINGS and PING.
pub(crate) const ACK: u8 = h2::END_STREAM;
pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;

/// Answers `/fields` with the fields `x` of the request, `/content` with the length of its content, and other paths with as
/// many bytes as they say.
pub(crate) async fn answer(request: http::Request<server::Body>) -> Answer {
    let (head, body) = request.into_parts();
    let content = match head.uri.path().trim_start_matches('/') {
        "fields" => {
            let values = head.headers.get_all("x").iter();
            let values = values.map(|value| value.to_str().expect("text"));
            values.collect::<Vec<_>>().join(" ")
        }
        "content" => match body.collect().await {
            Ok(content) => content.to_bytes().len().to_string(),
            Err(_) => "incomplete".to_owned(),
        },
        length => "x".repeat(length.parse().expect("a length")),
    };
    Answer::new(content.into())
}

/// Opens a connection of HTTP/2.
pub(crate) async fn connect(gateway: &Gateway) -> Box<h2::Connection> {
    match Client::connect(Version::Http2, gateway).await {
        Client::Http2(connection) => connection,
        _ => unreachable!("the version is HTTP/2"),
    }
}

/// Returns SETTINGS with these identifiers and values.
pub(crate) fn settings(settings: &[(u16, u32)]) -> Frame {
    let settings = settings
        .iter()
        .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat());
    Frame::new(h2::SETTINGS, 0, 0, settings.collect::<Vec<_>>())
}

/// Returns WINDOW_UPDATE.
pub(crate) fn credit(stream: u32, bytes: u32) -> Frame {
    Frame::new(h2::WINDOW_UPDATE, 0, stream, bytes.to_be_bytes())
}

/// Returns the frames of a GET request.
pub(crate) fn get(path: &str, stream: u32) -> Vec<Frame> {
    h2::request(&Request::new("GET", path), stream)
}

/// Returns HEADERS of a POST request whose content is to follow.
pub(crate) fn post(path: &str, stream: u32) -> Frame {
    let mut frame = h2::request(&Request::new("POST", path), stream).remove(0);
    frame.flags &= !h2::END_STREAM;
    frame
}

/// Receives a frame, and acknowledges SETTINGS and PING.
///
/// # Panics
/// Panics at the end of the connection, and if no frame arrives in time.
pub(crate) async fn receive(connection: &mut h2::Connection) -> Frame {
    let frame = connection.receive().await.expect("a frame");
    if matches!(frame.kind, h2::SETTINGS | h2::PING) && frame.flags & ACK == 0 {
        let payload = match frame.kind {
            h2::PING => frame.payload.clone(),
            _ => Vec::new(),
        };
        let ack = Frame::new(frame.kind, ACK, 0, payload);
        connection.send(&[ack]).await;
    }
    frame
}

/// Receives frames up to the first one of this type on this stream.
pub(crate) async fn receive_until(
    connection: &mut h2::Connection,
    kind: u8,
    stream: u32,
) -> Vec<Frame> {
    let mut frames = Vec::new();
    loop {
        let frame = receive(connection).await;
        let is_last = frame.kind == kind && frame.stream == stream;
        frames.push(frame);
        if is_last {
            return frames;
        }
    }
}

/// Returns the frames that arrive before the server has acknowledged three further PING frames, one after the other.
pub(crate) async fn settle(connection: &mut h2::Connection) -> Vec<Frame> {
    let mut frames = Vec::new();
    for number in 1..=3 {
        let ping = Frame::new(h2::PING, 0, 0, [number; 8]);
        connection.send(&[ping]).await;
        loop {
            let frame = receive(connection).await;
            if frame.kind == h2::PING && frame.flags & ACK != 0 && frame.payload == [number; 8] {
                break;
            }
            frames.push(frame);
        }
    }
    frames
}

/// Returns the number of bytes of DATA in frames of a stream.
pub(crate) fn data(frames: &[Frame], stream: u32) -> usize {
    let data = frames
        .iter()
        .filter(|frame| frame.kind == h2::DATA && frame.stream == stream);
    data.map(|frame| frame.payload.len()).sum()
}

/// Returns the 32-bit number at the beginning of a payload from this byte on.
pub(crate) fn number(payload: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(payload[at..at + 4].try_into().expect("four bytes"))
}
