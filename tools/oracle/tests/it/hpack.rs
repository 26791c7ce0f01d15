//! Rules of RFC 7541 about the dynamic tables of both directions, block by block.

use courser_oracle::Request;
use courser_oracle::h2::{self, Frame};

use crate::frames::{
    HEADER_TABLE_SIZE, answer, connect, get, number, receive, receive_until, settings,
};
use crate::serving;

const PROTOCOL_ERROR: u32 = 1;
const COMPRESSION_ERROR: u32 = 9;

/// The size of an entry `x: 1`: a name and a value of one byte each, and 32 (RFC 7541 §4.1).
const ENTRY: u8 = 34;

/// Changes the maximum size of the dynamic table, which is below 158 here (RFC 7541 §6.3).
const fn size(bytes: u8) -> [u8; 2] {
    [0x3f, bytes - 31]
}

/// Adds an entry `x` with a value of one byte to the dynamic table (RFC 7541 §6.2.1).
const fn entry(value: u8) -> [u8; 5] {
    [0x40, 1, b'x', 1, value]
}

/// Refers to an entry of the dynamic table: 0 is the newest.
const fn indexed(entry: u8) -> [u8; 1] {
    [0x80 | (62 + entry)]
}

/// Returns a request whose block begins and ends with these bytes.
fn request(before: &[u8], after: &[u8], stream: u32) -> Frame {
    let mut frame = get("/fields", stream).remove(0);
    frame.payload = [before, &frame.payload, after].concat();
    frame
}

/// A block whose meaning depends on the entries of the table.
struct Case {
    name: &'static str,
    size: [u8; 2],
    fields: Vec<u8>,
    /// The values that the service receives, or `None` if the block is an error.
    values: Option<&'static str>,
}

fn case(name: &'static str, size: [u8; 2], fields: &[&[u8]], values: Option<&'static str>) -> Case {
    Case {
        name,
        size,
        fields: fields.concat(),
        values,
    }
}

fn cases() -> Vec<Case> {
    let long = [&[0x40, 1, b'x', 60][..], &[b'l'; 60]].concat();
    let of_two = size(2 * ENTRY);
    let same_name = [0x40 | 62, 1, b'2'];
    let (one, two, three) = (&entry(b'1')[..], &entry(b'2')[..], &entry(b'3')[..]);
    vec![
        case(
            "an entry fits",
            size(ENTRY),
            &[one, &indexed(0)],
            Some("1 1"),
        ),
        case(
            "an entry is one byte too large",
            size(ENTRY - 1),
            &[one, &indexed(0)],
            None,
        ),
        case(
            "an entry that is too large is still a field",
            size(ENTRY - 1),
            &[one],
            Some("1"),
        ),
        case(
            "an entry that is too large empties the table",
            of_two,
            &[one, &long, &indexed(0)],
            None,
        ),
        case(
            "the empty table takes an entry",
            of_two,
            &[one, &long, two, &indexed(0)],
            Some("1 llllllllllllllllllllllllllllllllllllllllllllllllllllllllllll 2 2"),
        ),
        case(
            "the oldest of three entries is evicted",
            of_two,
            &[one, two, three, &indexed(0), &indexed(1)],
            Some("1 2 3 3 2"),
        ),
        case(
            "an evicted entry has no index",
            of_two,
            &[one, two, three, &indexed(2)],
            None,
        ),
        case(
            "an entry takes the name of the one that it evicts",
            size(ENTRY),
            &[one, &same_name, &indexed(0)],
            Some("1 2 2"),
        ),
        case(
            "eviction precedes the insertion",
            size(ENTRY),
            &[one, &same_name, &indexed(1)],
            None,
        ),
    ]
}

/// RFC 7541 §4.1, §4.3, §4.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_are_counted_and_evicted_as_the_client_expects() {
    let (gateway, _) = serving::start_function(answer, |server| server);
    for case in cases() {
        let name = case.name;
        let mut connection = connect(&gateway).await;
        let stream = connection.open();
        connection
            .send(&[request(&case.size, &case.fields, stream)])
            .await;
        if let Some(expected) = case.values {
            let seen = connection.answer(stream).await;
            let content = String::from_utf8_lossy(&seen.content).into_owned();
            assert_eq!((seen.status(), &*content), (200, expected), "{name}");
            continue;
        }
        let frames = receive_until(&mut connection, h2::GOAWAY, 0).await;
        let code = number(&frames.last().expect("GOAWAY").payload, 4);
        assert!(
            [COMPRESSION_ERROR, PROTOCOL_ERROR].contains(&code),
            "{name}: {code}"
        );
    }
}

/// RFC 7541 §3.2: fields keep their order, and blocks share one table in the order in which they arrive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocks_are_decoded_in_order_wherever_they_are_split() {
    let (gateway, _) = serving::start_function(answer, |server| server);
    let fields = [&entry(b'1')[..], &entry(b'2'), &indexed(1), &indexed(0)].concat();
    for split in 0..fields.len() {
        let mut connection = connect(&gateway).await;
        let (first, second) = (connection.open(), connection.open());
        let mut head = request(&[], &fields, first);
        let rest = head.payload.split_off(head.payload.len() - split);
        head.flags &= !h2::END_HEADERS;
        let rest = Frame::new(h2::CONTINUATION, h2::END_HEADERS, first, rest);
        let next = request(&[], &[&entry(b'3')[..], &indexed(2)].concat(), second);
        connection.send(&[head, rest, next]).await;
        assert_eq!(
            connection.answer(first).await.content,
            b"1 2 1 2",
            "{split}"
        );
        assert_eq!(connection.answer(second).await.content, b"3 1", "{split}");
    }
}

/// Sends a request and returns the field block of its response.
async fn block(connection: &mut h2::Connection) -> Vec<u8> {
    let stream = connection.open();
    connection.send(&get("/1", stream)).await;
    let frames = receive_until(connection, h2::HEADERS, stream).await;
    let block = frames.last().expect("HEADERS").payload.clone();
    receive_until(connection, h2::DATA, stream).await;
    block
}

/// RFC 7541 §4.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lower_table_sizes_are_signalled_in_the_next_block() {
    let (gateway, _) = serving::start_function(answer, |server| server);
    let mut connection = connect(&gateway).await;
    let table = |bytes| settings(&[(HEADER_TABLE_SIZE, bytes)]);
    let is_change = |block: &[u8]| block[0] & 0xe0 == 0x20;
    assert!(!is_change(&block(&mut connection).await));
    connection.send(&[table(0)]).await;
    let changed = block(&mut connection).await;
    assert!(
        changed[0] == 0x20 && !is_change(&changed[1..]),
        "{changed:?}"
    );
    connection.send(&[table(100)]).await;
    let changed = block(&mut connection).await;
    assert!(changed.starts_with(&size(100)), "{changed:?}");
    // The lowest size and the last one.
    connection.send(&[table(0), table(50)]).await;
    let changed = block(&mut connection).await;
    let both = [&[0x20][..], &size(50)].concat();
    assert!(changed.starts_with(&both), "{changed:?}");
    assert!(!is_change(&block(&mut connection).await));
}

/// RFC 7541 §7.3: the largest table that a client may allow would take 4 GiB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn table_of_the_encoder_stays_small_whatever_the_client_allows() {
    let unique = async |request: http::Request<courser::server::Body>| {
        let mut response = crate::serving::Answer::default();
        let path = request.uri().path().parse().expect("a value");
        response.headers_mut().insert("x-unique", path);
        response
    };
    let (gateway, _) = serving::start_function(unique, |server| server);
    let mut connection = connect(&gateway).await;
    let huge = settings(&[(HEADER_TABLE_SIZE, u32::MAX)]);
    connection.send(std::slice::from_ref(&huge)).await;
    let stream = connection.open();
    connection.send(&get("/first", stream)).await;
    let frames = receive_until(&mut connection, h2::HEADERS, stream).await;
    let block = &frames.last().expect("HEADERS").payload;
    // Without a change the table keeps its first size, 4096 bytes.
    assert_ne!(block[0] & 0xe0, 0x20, "{block:?}");
    drop(connection);
    let mut connection = connect(&gateway).await;
    connection.send(&[huge]).await;
    receive(&mut connection).await;
    // The table of this client evicts entries above 4096 bytes, so that it decodes these only if the server does as well.
    for number in 0..300 {
        let path = format!("/{number:0100}");
        let seen = connection.exchange(&Request::new("GET", &path)).await;
        assert_eq!(seen.get("x-unique"), path);
    }
}
