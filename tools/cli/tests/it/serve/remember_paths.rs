//! Connections that start from the path of an earlier one.

use super::running::start;
use crate::common::{Folder, run};
use crate::proxy::Proxy;

/// Downloads over a link with a long round trip until a connection of the server has taken over a path,
/// according to its trace, at most `most` times. Returns the number of that connection.
///
/// A busy machine may lose packets of the real-time link in any of them, which ends a takeover.
fn resumed(flags: &[&str], most: usize) -> Option<usize> {
    let (folder, traces) = (Folder::new(), Folder::new());
    folder.file("large", &"x".repeat(2_000_000));
    let traced = traces.path().to_str().expect("UTF-8");
    let common = ["--no-compress", "--qlog", traced];
    let mut serving = start(&folder, &[&common, flags].concat());
    let proxy = Proxy::start(serving.address, "20mbit,60ms,queue=1m,mtu=1500", &[]);
    let url = format!("https://{}/large", proxy.address);
    let has_jumped = || {
        let files = std::fs::read_dir(traces.path()).expect("a folder");
        let texts = files.map(|file| std::fs::read(file.expect("a file").path()).expect("a trace"));
        let state = b"careful_resume_unvalidated";
        texts
            .into_iter()
            .any(|text| text.windows(state.len()).any(|it| it == state))
    };
    for connection in 1..=most {
        let output = run(&["get", "--http3-only", "-k", "-o", "/dev/null", &url]);
        assert!(output.status.success(), "{output:?}");
        if has_jumped() {
            return Some(connection);
        }
    }
    serving.signal(rustix::process::Signal::TERM);
    serving.ended();
    let files = std::fs::read_dir(traces.path()).expect("a folder");
    assert_eq!(files.count(), most, "a trace for each connection");
    has_jumped().then_some(most)
}

#[test]
fn second_connection_of_a_client_takes_over_its_path_if_asked_to() {
    for flags in [
        &["--remember-paths"][..],
        &["--remember-paths", "--cc", "bbr"],
    ] {
        let resumed = resumed(flags, 12);
        // The first connection has nothing to take over.
        assert!(resumed.is_some_and(|it| it > 1), "{flags:?}: {resumed:?}");
    }
    assert_eq!(resumed(&[], 2), None);
}
