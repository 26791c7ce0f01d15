//! Tests of interim responses and of responses without content.

use super::*;

/// A90: further interim responses are refused.
#[test]
fn eight_interim_responses_are_accepted() {
    let interim = vec![response_with("103", &[("link", "</a.css>")]); 9];
    let seen = Reading::client(&[&interim[..8], &[ok()]].concat()).read();
    let seen = seen.expect("not too many");
    let hints = seen
        .iter()
        .filter(|seen| **seen == Seen::Response(StatusCode::EARLY_HINTS, None));
    assert_eq!((hints.count(), seen.len()), (8, 9));
    assert_eq!(
        Reading::client(&[&interim[..], &[ok()]].concat()).read(),
        Err(EXCESSIVE)
    );
}

/// §4.1: interim responses have no content and no trailers.
#[test]
fn interim_responses_have_no_content() {
    for status in ["100", "103", "199"] {
        let interim = response_with(status, &[]);
        let frames = [interim.clone(), ok(), data(b"x")];
        assert!(Reading::client(&frames).read().is_ok(), "{status}");
        let frames = [interim, data(b"x"), ok()];
        assert_eq!(Reading::client(&frames).read(), Err(UNEXPECTED), "{status}");
    }
}

/// RFC 9114 §4.5.
#[test]
fn status_101_is_refused() {
    let frames = [response_with("101", &[]), ok()];
    assert_eq!(Reading::client(&frames).read(), Err(MALFORMED));
}

/// RFC 9110 §8.6: Content-Length of responses to HEAD and of 304.
#[test]
fn responses_without_content_may_have_a_length() {
    let length = [("content-length", "1000")];
    let head = |content: &[Vec<u8>]| {
        let frames = [&[response_with("200", &length)], content].concat();
        Reading::client(&frames).to(Method::HEAD)
    };
    let expected = Seen::Response(StatusCode::OK, Some(1000));
    assert_eq!(head(&[]).read(), Ok(vec![expected]));
    assert_eq!(head(&[data(b"x")]).read(), Err(MALFORMED));
    let cached = [response_with("304", &length)];
    assert!(Reading::client(&cached).read().is_ok());
}

#[test]
fn message_ends_with_its_last_frame_if_fin_has_arrived() {
    let frames = [response_with("103", &[]), ok(), data(b"x")];
    let reading = Reading::client(&frames);
    let (mut stream, mut connection) = (reading.stream(), reading.connection());
    stream.push(Bytes::copy_from_slice(&reading.bytes));
    stream.on_fin();
    for is_over in [false, false, true] {
        let seen = next(&mut stream, &mut connection);
        assert!(matches!(seen, Ok(Some(_))), "{seen:?}");
        assert_eq!(stream.is_over(), is_over, "{seen:?}");
    }
    assert_eq!(stream.stop_code(), None);
    assert_eq!(next(&mut stream, &mut connection), Ok(Some(Seen::End)));
}

#[test]
fn trailers_wait_for_the_end_of_the_stream() {
    let mut reading = Reading::client(&[ok(), trailers()]);
    reading.has_fin = false;
    let (mut stream, mut connection) = (reading.stream(), reading.connection());
    stream.push(Bytes::copy_from_slice(&reading.bytes));
    let seen = next(&mut stream, &mut connection);
    assert_eq!(seen, Ok(Some(Seen::Response(StatusCode::OK, None))));
    assert_eq!(next(&mut stream, &mut connection), Ok(None));
    assert!(!stream.is_over());
    stream.on_fin();
    assert_eq!(
        next(&mut stream, &mut connection),
        Ok(Some(Seen::Trailers(1)))
    );
    assert!(stream.is_over());
}
