//! `courser sim run` on the real binary.

use crate::common::{Folder, refusal, run};
use serde_json::Value;

const SCENARIO: &str = r#"name = "small"
about = "a transfer"
duration = "5s"
link = "10mbit,10ms,1%"
[[flow]]
bytes = "200k"
[bounds]
completion_time = "all <3s"
failures = "==0"
"#;

fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        panic!("{arguments:?}: {error}: {stderr}")
    })
}

#[test]
fn table_has_measures_and_bounds() {
    let folder = Folder::new();
    let file = folder.file("small.toml", SCENARIO);
    let output = run(&["sim", "run", &file, "--runs", "3", "--seed", "5"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{text}");
    assert!(
        text.starts_with("small: a transfer (seeds 5 to 7)\n"),
        "{text}"
    );
    assert!(text.contains("all <3s met"), "{text}");
    assert!(text.contains("goodput_share"), "{text}");
    assert!(!text.contains("reproduce:"), "{text}");
}

#[test]
fn results_depend_on_the_seed_only() {
    let folder = Folder::new();
    let file = folder.file("small.toml", SCENARIO);
    let with = |jobs| json(&["sim", "run", &file, "--runs", "4", "--jobs", jobs, "--json"]);
    let one = with("1");
    assert_eq!(one, with("3"));
    assert_eq!(one["holds"], true);
    let runs = one["scenarios"][0]["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 4);
    assert_eq!(runs[0]["flows"][0]["bytes_delivered"], 200_000);
    let again = json(&["sim", "run", &file, "--seed", "3", "--json"]);
    assert_eq!(
        again["scenarios"][0]["runs"][0], runs[2],
        "the third seed on its own"
    );
}

#[test]
fn violated_bound_prints_a_command_that_repeats_the_run() {
    let folder = Folder::new();
    let file = folder.file("small.toml", SCENARIO);
    let bounds = folder.file("bounds.toml", "[small]\ncompletion_time = \"all <1ms\"\n");
    let arguments = ["sim", "run", &file, "--bounds", &bounds, "--runs", "2"];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("<1ms FAILED: "), "{text}");
    let error = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(error, "courser: 1 of 2 bounds violated\n");

    let command = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("reproduce: courser "));
    let mut again: Vec<&str> = command.expect("a command").split(' ').collect();
    // Split as by a shell; these paths contain no spaces.
    again
        .iter_mut()
        .for_each(|word| *word = word.trim_matches('"'));
    again.push("--json");
    let result = json(&again);
    assert_eq!(result["holds"], false);
    assert_eq!(
        result["scenarios"][0]["runs"]
            .as_array()
            .expect("runs")
            .len(),
        1
    );
}

#[test]
fn report_is_written() {
    let folder = Folder::new();
    let file = folder.file("small.toml", SCENARIO);
    let directory = format!("{file}.report");
    let output = run(&["sim", "run", &file, "--report", &directory]);
    assert!(output.status.success(), "{output:?}");
    let page = std::fs::read_to_string(format!("{directory}/index.html")).expect("a page");
    assert!(
        page.contains("small") && page.contains("<svg"),
        "{} bytes",
        page.len()
    );
}

#[test]
fn traces_are_written_and_readable() {
    let folder = Folder::new();
    let file = folder.file("small.toml", SCENARIO);
    let directory = format!("{file}.traces");
    let output = run(&["sim", "run", &file, "--qlog", &directory, "--runs", "2"]);
    assert!(output.status.success(), "{output:?}");
    for seed in [1, 2] {
        let traces = std::fs::read_dir(format!("{directory}/small-{seed}")).expect("a directory");
        let mut sides = Vec::new();
        for trace in traces {
            let path = trace.expect("readable").path();
            let path = path.to_str().expect("UTF-8");
            sides.push(path.ends_with("_client.sqlog"));
            let summary = json(&["qlog", "summary", "--json", path]);
            assert!(summary.to_string().contains("small, seed") || summary.is_object());
        }
        sides.sort_unstable();
        assert_eq!(sides, [false, true], "a trace of each end");
    }
}

#[test]
fn invalid_files_are_reported_with_their_line() {
    let folder = Folder::new();
    let file = folder.file("typo.toml", &SCENARIO.replace("bytes =", "bites ="));
    let line = refusal(&["sim", "run", &file]);
    assert!(line.contains("typo.toml: line 6, column 1: "), "{line}");
    assert!(line.contains("did you mean `bytes`?"), "{line}");

    let line = refusal(&["sim", "run", "/nonexistent/x.toml"]);
    assert!(line.contains("cannot read /nonexistent/x.toml"), "{line}");

    let good = folder.file("small.toml", SCENARIO);
    let bounds = folder.file("other.toml", "[smal]\njain = \">0.9\"\n");
    let line = refusal(&["sim", "run", &good, "--bounds", &bounds]);
    assert!(line.contains("no bounds for small"), "{line}");

    let line = refusal(&["sim", "run", &good, &good]);
    assert!(line.contains("both define the scenario 'small'"), "{line}");
}
