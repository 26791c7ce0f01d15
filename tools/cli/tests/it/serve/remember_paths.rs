//! Connections resume the congestion state of an earlier one.

use super::running::start;
use crate::common::{Folder, run};
use crate::proxy::Proxy;

/// Downloads over a link with a long round trip until a connection of the server has used a remembered path,
/// according to its trace, at most `limit` times. Returns the number of that connection.
///
/// A busy machine may lose packets of the real-time link, and a loss prevents the use.
fn resumed(flags: &[&str], limit: usize) -> Option<usize> {
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
    for connection in 1..=limit {
        let output = run(&["get", "--http3-only", "-k", "-o", "/dev/null", &url]);
        assert!(output.status.success(), "{output:?}");
        if has_jumped() {
            return Some(connection);
        }
    }
    serving.signal(rustix::process::Signal::TERM);
    serving.ended();
    let files = std::fs::read_dir(traces.path()).expect("a folder");
    assert_eq!(files.count(), limit, "a trace for each connection");
    has_jumped().then_some(limit)
}

#[test]
fn later_connection_uses_the_remembered_path() {
    for flags in [
        &["--remember-paths"][..],
        &["--remember-paths", "--cc", "bbr"],
    ] {
        let resumed = resumed(flags, 12);
        // The first connection has no remembered path.
        assert!(resumed.is_some_and(|it| it > 1), "{flags:?}: {resumed:?}");
    }
    assert_eq!(resumed(&[], 2), None);
}
