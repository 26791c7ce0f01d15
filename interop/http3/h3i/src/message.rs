//! Sequences that end a request.

use crate::Outcome::{Answered, Refused};
use crate::{Case, GET, POST, REQUEST, case, data, head, last_bytes, post, with_control};

const REQUEST_INCOMPLETE: u64 = 0x10d;
const MESSAGE_ERROR: u64 = 0x10e;

/// A correct GET with more fields behind it.
fn with(fields: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    [&GET[..], fields].concat()
}

/// A correct GET without one of its fields.
fn without(name: &str) -> Vec<(&'static str, &'static str)> {
    GET.into_iter().filter(|field| field.0 != name).collect()
}

pub(crate) fn cases() -> Vec<Case> {
    let malformed = |name, rule, fields: Vec<(&str, &str)>| {
        let actions = with_control([head(&fields, true)]);
        case(name, rule, Refused(MESSAGE_ERROR), actions)
    };
    let first = |field| [&[field][..], &GET[..]].concat();
    let length = |length, sent: &[u8]| {
        let head = head(&[&POST[..], &[("content-length", length)]].concat(), false);
        with_control([head, data(sent), last_bytes(REQUEST, &[])])
    };
    vec![
        malformed("no :method", "§4.3.1", without(":method")),
        malformed("no :scheme", "§4.3.1", without(":scheme")),
        malformed("no :path", "§4.3.1", without(":path")),
        malformed("no :authority and no host", "§4.3.1", without(":authority")),
        malformed(
            "an empty :path",
            "§4.3.1",
            [&without(":path")[..], &[(":path", "")]].concat(),
        ),
        malformed(":method twice", "§4.3.1", with(&[(":method", "GET")])),
        malformed(
            "an unknown pseudo-header field",
            "§4.3",
            with(&[(":proto", "x")]),
        ),
        malformed(":status in a request", "§4.3", with(&[(":status", "200")])),
        malformed(
            "a pseudo-header field behind others",
            "§4.3",
            first(("accept", "*/*")),
        ),
        malformed(
            ":authority and host that differ",
            "§4.3.1",
            with(&[("host", "elsewhere")]),
        ),
        malformed("upper case in a name", "§4.2", with(&[("Accept", "*/*")])),
        malformed("connection", "§4.2", with(&[("connection", "close")])),
        malformed(
            "transfer-encoding",
            "§4.2",
            with(&[("transfer-encoding", "chunked")]),
        ),
        malformed("te other than trailers", "§4.2", with(&[("te", "gzip")])),
        malformed(
            "a line break in a value",
            "§10.3",
            with(&[("x-value", "a\r\nb: c")]),
        ),
        malformed(
            "a zero byte in a value",
            "§10.3",
            with(&[("x-value", "a\0b")]),
        ),
        malformed("a space in a name", "§10.3", with(&[("x value", "a")])),
        case(
            "te: trailers",
            "§4.2",
            Answered(200),
            with_control([head(&with(&[("te", "trailers")]), true)]),
        ),
        case(
            "less content than content-length",
            "§4.1.2",
            Refused(MESSAGE_ERROR),
            length("5", b"four"),
        ),
        case(
            "more content than content-length",
            "§4.1.2",
            Refused(MESSAGE_ERROR),
            length("3", b"four"),
        ),
        case(
            "a pseudo-header field in trailers",
            "§4.3",
            Refused(MESSAGE_ERROR),
            with_control([post(), data(b"x"), head(&[(":path", "/")], true)]),
        ),
        case(
            "a request without anything",
            "§4.1",
            Refused(REQUEST_INCOMPLETE),
            with_control([last_bytes(REQUEST, &[])]),
        ),
    ]
}
