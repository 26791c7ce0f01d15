//! Connections that start from the path of an earlier one.

use super::running::start;
use crate::common::{Folder, run};
use crate::proxy::Proxy;

/// Downloads twice over a link with a long round trip. Returns how many connections of the server took over
/// a path, according to its traces.
fn resumed(flags: &[&str]) -> usize {
    let (folder, traces) = (Folder::new(), Folder::new());
    folder.file("large", &"x".repeat(6_000_000));
    let traced = traces.path().to_str().expect("UTF-8");
    let common = ["--no-compress", "--qlog", traced];
    let mut serving = start(&folder, &[&common, flags].concat());
    let proxy = Proxy::start(serving.address, "80mbit,30ms,queue=1m", &[]);
    let url = format!("https://{}/large", proxy.address);
    for _ in 0..2 {
        let output = run(&["get", "--http3-only", "-k", "-o", "/dev/null", &url]);
        assert!(output.status.success(), "{output:?}");
    }
    serving.signal(rustix::process::Signal::TERM);
    serving.ended();
    let files = std::fs::read_dir(traces.path()).expect("a folder");
    let texts = files.map(|file| std::fs::read_to_string(file.expect("a file").path()));
    let texts: Vec<_> = texts.map(|text| text.expect("UTF-8")).collect();
    assert_eq!(texts.len(), 2, "a trace for each connection");
    let has_jumped = |text: &&String| text.contains("careful_resume_unvalidated");
    texts.iter().filter(has_jumped).count()
}

#[test]
fn second_connection_of_a_client_takes_over_its_path_if_asked_to() {
    assert_eq!(resumed(&["--remember-paths"]), 1);
    assert_eq!(resumed(&["--remember-paths", "--cc", "bbr"]), 1);
    assert_eq!(resumed(&[]), 0);
}
