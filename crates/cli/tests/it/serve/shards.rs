//! QUIC from several sockets and tasks.

use super::running::start;
use crate::common::{Folder, run};

/// Each client has a socket of its own, which the system leads to any of the shards.
#[test]
fn clients_are_served_by_several_shards() {
    let folder = Folder::new();
    folder.file("page", "the same from each");
    let mut serving = start(&folder, &["--shards", "3"]);
    let url = format!("https://{}/page", serving.address);
    for _ in 0..12 {
        let output = run(&["get", "--http3-only", "-k", "-s", &url]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout, b"the same from each");
    }
    serving.signal(rustix::process::Signal::TERM);
    serving.ended();
}

#[test]
fn numbers_of_shards_out_of_range_are_refused() {
    for number in ["0", "257"] {
        let output = run(&["serve", "--shards", number]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        let expected =
            format!("invalid value '{number}' for '--shards <N>': {number} is not in 1..=256");
        assert!(text.contains(&expected), "{text}");
    }
}
