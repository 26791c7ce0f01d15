//! The demonstration with its output in a pipe.
//!
//! This is a separate test binary because the demonstration uses two cores for ten seconds, which would
//! disturb tests that measure time.

#[path = "it/common/mod.rs"]
mod common;

#[test]
fn all_parts_are_plain_text_in_a_pipe() {
    let output = common::run(&[]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert_eq!(error, "", "progress in a pipe");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        !text.contains('\u{1b}') && !text.contains('\r'),
        "plain text:\n{text}"
    );
    let mut labels = [
        "courser ",
        "machine ",
        "setup ",
        "handshake ",
        "early data ",
        "upload ",
        "download ",
        "requests ",
        "close ",
        "moves ",
        "datagrams ",
        "next ",
    ]
    .into_iter()
    .peekable();
    for line in text.lines() {
        labels.next_if(|label| line.starts_with(label));
    }
    assert_eq!(
        labels.next(),
        None,
        "a part is missing or out of order:\n{text}"
    );
    for word in [
        "over TCP", "bit/s", "CPU s/GB", "GSO", "resumed", "0-RTT", "stalls", "lost", "p50", "p99",
        "1452", "X25519",
    ] {
        assert!(text.contains(word), "{word} in:\n{text}");
    }
}
