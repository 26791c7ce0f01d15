//! Manual pages.

use crate::common::Folder;

#[test]
fn each_command_has_a_page_with_its_flags() {
    let folder = Folder::new();
    clap_mangen::generate_to(courser_cli::command(), folder.path()).expect("written");
    for (page, flag) in [
        ("courser-serve", "shards"),
        ("courser-get", "http3"),
        ("courser-load", "rebind"),
        ("courser-proxy", "allow"),
        ("courser-webtransport", "datagrams"),
        ("courser-perf-compare", "pairs"),
        ("courser-sim-proxy", "listen"),
        ("courser-qlog-plot", "output"),
        ("courser-interop-matrix", "peers"),
        ("courser-doctor", "listen"),
        ("courser-probe", "html"),
    ] {
        let page = folder.path().join(format!("{page}.1"));
        let text = std::fs::read_to_string(&page);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        assert!(
            text.contains(&format!("\\-\\-{flag}")),
            "{}",
            page.display()
        );
    }
}
