//! Parsers for the files that the binary reads.

use std::fmt::Display;
use std::time::{Duration, SystemTime};

use courser_cli::fuzzing;
use courser_sim::link::DuplexSpec;
use courser_sim::scenario::{BoundsFile, Scenario};

/// Parses the input as a file. Its first byte selects the kind of file.
///
/// # Panics
/// Panics if a parser panics, an error message is empty or has more than one line, or a saved file does not
/// parse to the same content.
pub fn cli_files(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(bytes);
    match kind % 12 {
        0 => in_one_line(Scenario::parse_all(&text)),
        1 => in_one_line(BoundsFile::parse(&text)),
        2 => in_one_line(text.parse::<DuplexSpec>()),
        3 => in_one_line(fuzzing::trace(bytes)),
        4 => in_one_line(fuzzing::address_list(&text)),
        5 => cookies(&text),
        6 => alternatives(&text),
        7 => in_one_line(fuzzing::get_config(&text)),
        8 => in_one_line(fuzzing::figures(&text)),
        9 => in_one_line(fuzzing::url_pattern(&text)),
        10 => {
            let saved = courser::client::fuzzing::announce(now(), &text);
            assert!(saved.lines().count() <= 2 + MAX_ALTERNATIVES, "{saved}");
            alternatives(&saved);
        }
        _ => in_one_line(fuzzing::trace(&separated(bytes))),
    }
}

/// Checks that an error message has exactly one line.
fn in_one_line<T, E: Display>(result: Result<T, E>) {
    if let Err(error) = result {
        let text = error.to_string();
        assert!(!text.trim().contains('\n'), "{text}");
        assert!(!text.is_empty());
    }
}

/// Checks that saved cookies parse to the same cookies.
fn cookies(text: &str) {
    let saved = fuzzing::cookies(text);
    let mut again: Vec<String> = fuzzing::cookies(&saved)
        .lines()
        .map(str::to_owned)
        .collect();
    let mut saved: Vec<_> = saved.lines().map(str::to_owned).collect();
    saved.sort();
    again.sort();
    assert_eq!(again, saved);
}

/// Checks that a saved file of alternative services parses to the same content.
fn alternatives(text: &str) {
    let saved = courser::client::fuzzing::rewrite_file(now(), text);
    let again = courser::client::fuzzing::rewrite_file(now(), &saved);
    assert_eq!(again, saved);
}

/// Returns the input with a record separator before each line, as in JSON-SEQ (RFC 7464).
fn separated(bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split(|&byte| byte == b'\n');
    lines
        .flat_map(|line| [b"\x1e", line, b"\n"].concat())
        .collect()
}

/// Returns the current time, which is the same in every run.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

/// The largest number of alternative services of one origin.
const MAX_ALTERNATIVES: usize = 4;
