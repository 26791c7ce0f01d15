//! `courser sim figures` on the real binary.

use std::fs;
use std::path::Path;

use crate::common::{Folder, refusal, run};
use courser_sim::scenario::Scenario;

const FAMILY: &str = r#"name = "small-{rate}"
duration = "5s"
link = "{rate},rtt=20ms"
[[matrix]]
rate = ["5mbit", "10mbit"]
least = ["300ms"]
[[flow]]
bytes = "200k"
[bounds]
completion_time = "<{least}"
failures = "==0"
"#;

const LIST: &str = r#"
title = "Figures"
about = "What was seen."
data = "numbers"

[[row]]
name = "transfer"
title = "A transfer"
target = "soon"
columns = ["completion_time", "utilization"]
files = [{ path = "small.toml", runs = 3 }]
text = "That is all."

[[row.chart]]
file = "throughput.svg"
scenario = "small-5mbit"
chart = "Throughput"
"#;

#[test]
fn rows_are_measured_and_become_tables_and_charts() {
    let folder = Folder::new();
    folder.file("small.toml", FAMILY);
    let list = folder.file("list.toml", LIST);
    let document = Path::new(&list).with_file_name("FIGURES.md");
    let path = document.to_str().expect("UTF-8");
    let output = run(&["sim", "figures", &list, "--output", path]);
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(&document).expect("a file");
    assert!(text.contains("| small-5mbit | 0 |"), "{text}");
    assert!(text.contains("not measured"), "{text}");

    let output = run(&[
        "sim",
        "figures",
        &list,
        "--measure",
        "transfer",
        "--runs",
        "2",
        "--charts",
        "--output",
        path,
    ]);
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(&document).expect("a file");
    // 200 kB take 320 ms at 5 Mbit/s and 160 ms at 10.
    let line = |name: &str| {
        let found = text.lines().find(|line| line.starts_with(name));
        found
            .unwrap_or_else(|| panic!("{name} in {text}"))
            .to_owned()
    };
    let slow = line("| small-5mbit | 2 |");
    assert!(slow.ends_with("**no**: completion time <300ms |"), "{slow}");
    assert!(line("| small-10mbit | 2 |").ends_with("| yes |"), "{text}");
    assert!(text.contains("| **1 of 2** |"), "{text}");
    assert!(text.contains("That is all."), "{text}");
    let chart = document.with_file_name("throughput.svg");
    let chart = fs::read_to_string(chart).expect("a file");
    assert!(chart.starts_with("<svg"), "{chart}");
}

#[test]
fn invalid_lists_are_reported() {
    let folder = Folder::new();
    folder.file("small.toml", FAMILY);
    let list = folder.file("list.toml", LIST);
    let line = refusal(&["sim", "figures", &list, "--measure", "transfers"]);
    assert!(
        line.contains("no row 'transfers', known are all, transfer"),
        "{line}"
    );
    let wrong = folder.file("wrong.toml", &LIST.replace("\"utilization\"", "\"use\""));
    let line = refusal(&["sim", "figures", &wrong]);
    assert!(line.contains("row transfer has a column 'use'"), "{line}");
    let wrong = folder.file("chart.toml", &LIST.replace("small-5mbit", "large"));
    let line = refusal(&["sim", "figures", &wrong, "--charts"]);
    assert!(
        line.contains("'large', which is not one of its scenarios"),
        "{line}"
    );
}

/// All scenario files are valid and in the list.
#[test]
fn scenarios_of_the_figures_are_valid_and_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let list = fs::read_to_string(root.join("docs/congestion.toml")).expect("a file");
    let mut count = 0;
    for entry in fs::read_dir(root.join("scenarios/figures")).expect("a file") {
        let path = entry.expect("readable").path();
        let text = fs::read_to_string(&path).expect("readable");
        count += Scenario::parse_all(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            .len();
        let name = path.file_name().expect("a file").to_string_lossy();
        assert!(list.contains(&*name), "{name} is in no row");
    }
    assert!(count > 100, "{count}");
}
