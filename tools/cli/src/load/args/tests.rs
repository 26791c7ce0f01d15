use clap::Parser as _;

use super::*;
use crate::args::{Arguments as All, Command as Chosen};

fn read(words: &[&str]) -> Result<Box<Arguments>, String> {
    let all = [&["courser", "load"], words].concat();
    match All::try_parse_from(all)
        .map_err(|error| error.to_string())?
        .command
    {
        Some(Chosen::Load(arguments)) => Ok(arguments),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn both_styles_are_consistent() {
    command(Style::H2load).debug_assert();
    command(Style::Oha).debug_assert();
}

#[test]
fn flags_of_h2load_keep_their_meaning() {
    let words = "-n 100 -c 5 -t 2 -m 10 -r 3 -w 26 -W 30 -H a:b -d /tmp/x https://x/";
    let words: Vec<_> = words.split(' ').collect();
    let read = read(&words).expect("valid flags");
    assert_eq!(read.style, Style::H2load);
    let flags = &read.flags;
    assert_eq!(
        (flags.requests, flags.clients, flags.threads),
        (Some(100), Some(5), Some(2))
    );
    assert_eq!((flags.max_concurrent_streams, flags.rate), (10, Some(3)));
    assert_eq!(
        (flags.window_bits, flags.connection_window_bits),
        (Some(26), Some(30))
    );
    assert_eq!(flags.data.as_deref(), Some("/tmp/x".as_ref()));
}

#[test]
fn flags_of_oha_keep_their_meaning() {
    let words = "-z 2s -c 5 -p 4 -q 100 -t 3s -m PUT -d text -w -j https://x/ --style oha";
    let words: Vec<_> = words.split(' ').collect();
    let read = read(&words).expect("valid flags");
    assert_eq!(read.style, Style::Oha);
    let flags = &read.flags;
    assert_eq!(flags.duration, Some(Duration::from_secs(2)));
    assert_eq!((flags.max_concurrent_streams, flags.qps), (4, Some(100.0)));
    assert_eq!(
        (flags.timeout, flags.method.clone()),
        (Some(Duration::from_secs(3)), Some(Method::PUT))
    );
    assert_eq!(flags.body.as_deref(), Some("text"));
    assert!(flags.wait_ongoing_requests_after_deadline && flags.json);
}

#[test]
fn help_shows_the_short_flags_of_the_style() {
    let help = read(&["--help"]).expect_err("help");
    assert!(
        help.contains("-t, --threads") && help.contains("-D, --duration"),
        "{help}"
    );
    let help = read(&["--help", "--style=oha"]).expect_err("help");
    assert!(
        help.contains("-t, --timeout") && help.contains("-z, --duration"),
        "{help}"
    );
}

#[test]
fn errors_list_the_allowed_values() {
    for (words, expected) in [
        (&["https://x/", "-H", "novalue"][..], "':' is missing"),
        (&["https://x/", "-m", "0"], "0 is not between 1 and"),
        (&["https://x/", "-q", "fast"], "'fast' is not a rate"),
        (&["https://x/", "--method", "CONNECT"], "opens tunnels"),
        (&["https://x/", "--http-version", "4"], "use 1.1, 2 or 3"),
        (&["https://x/", "--style", "wrk"], "h2load"),
        (&[], "URL"),
    ] {
        let error = read(words).expect_err(expected);
        assert!(error.contains(expected), "{words:?}: {error}");
    }
}
