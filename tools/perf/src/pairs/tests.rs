use std::future::{pending, ready};

use super::*;

fn pairs(a: &str, b: &str) -> Pairs {
    Pairs {
        a: a.to_owned(),
        b: b.to_owned(),
        pairs: 6,
        figure: Figure::Auto,
        timeout: Duration::from_secs(20),
    }
}

/// Returns a command that prints a report with `rate`.
fn prints(rate: &str) -> String {
    format!(r#"echo '{{"end":{{"per_second":{rate}}}}}'"#)
}

#[tokio::test]
async fn figures_of_both_commands_are_compared_in_pairs() {
    let mut seen = Vec::new();
    let on_pair = |number, report: &PairsReport| seen.push((number, report.last_pair()));
    let pairs = pairs(&prints("200"), &prints("250"));
    let report = pairs.run(on_pair, pending()).await.expect("a report");
    assert_eq!(report.figure, "/end/per_second");
    assert!(!report.less_is_better);
    assert_eq!(report.pairs.len(), 6);
    assert!((report.ratio.median - 1.25).abs() < 1e-9, "{report:?}");
    assert_eq!(seen.len(), 6);
    assert!(seen[5].1.contains("ratio 1.250"), "{seen:?}");
    let text = report.to_string();
    assert!(text.contains("b is better"), "{text}");
    assert!(text.contains("25.0 % above"), "{text}");
}

#[tokio::test]
async fn order_changes_from_pair_to_pair() {
    let file = std::env::temp_dir().join(format!("courser-pairs-{}", std::process::id()));
    let append = |name: &str| format!("echo {name} >> {}", file.display());
    let pairs = pairs(&append("a"), &append("b"));
    let report = pairs.run(|_, _| {}, pending()).await.expect("a report");
    assert_eq!(
        (report.figure.as_str(), report.less_is_better),
        ("seconds", true)
    );
    let order = std::fs::read_to_string(&file).expect("written");
    std::fs::remove_file(&file).expect("our file");
    assert_eq!(order.replace('\n', ""), "abbaabbaabba");
}

#[tokio::test]
async fn failures_name_the_command_and_its_output() {
    for (b, part) in [
        ("echo wrong flag >&2; exit 3", "wrong flag"),
        ("echo nothing", "does it need --json?"),
        ("sleep 20; true", "took longer than 1s"),
    ] {
        let mut pairs = pairs(&prints("200"), b);
        pairs.timeout = Duration::from_secs(1);
        let result = pairs.run(|_, _| {}, pending()).await;
        let error = result.expect_err(b).to_string();
        assert!(
            error.contains("command b") && error.contains(part),
            "{error}"
        );
    }
}

#[tokio::test]
async fn stopped_comparisons_report_the_pairs_so_far() {
    let all = pairs(&prints("200"), &prints("250"));
    let error = all.run(|_, _| {}, ready(())).await.expect_err("no pair");
    assert!(error.to_string().contains("before a pair"), "{error}");
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let mut sender = Some(sender);
    let on_pair = |number, _: &PairsReport| {
        if number == 2 {
            let _ = sender.take().map(|sender| sender.send(()));
        }
    };
    let stop = async {
        let _ = receiver.await;
    };
    let report = all.run(on_pair, stop).await.expect("two pairs");
    assert!((2..6).contains(&report.pairs.len()), "{report:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn too_few_pairs_have_no_verdict_and_slow_runs_are_killed() {
    let mut all = pairs(&prints("200"), &prints("250"));
    all.pairs = 5;
    let report = all.run(|_, _| {}, pending()).await.expect("a report");
    assert!(report.to_string().ends_with("at least 6 are needed"));
    let file = std::env::temp_dir().join(format!("courser-left-{}", std::process::id()));
    let lasting = format!("sh -c 'echo $$ > {}; sleep 20; true'; true", file.display());
    let mut all = pairs(&lasting, "true");
    all.timeout = Duration::from_secs(1);
    all.run(|_, _| {}, pending()).await.expect_err("too long");
    let id = std::fs::read_to_string(&file).expect("it ran");
    std::fs::remove_file(&file).expect("our file");
    let process = format!("/proc/{}/stat", id.trim());
    let began = Instant::now();
    // The process may still be a zombie.
    while std::fs::read_to_string(&process).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "the process still runs"
        );
        tokio::task::yield_now().await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn cpu_time_is_that_of_the_commands() {
    let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let mut pairs = pairs(busy, busy);
    pairs.pairs = 1;
    let report = pairs.run(|_, _| {}, pending()).await.expect("a report");
    let cpu = report.pairs[0].a.cpu_seconds.expect("Linux has it");
    assert!(cpu > 0.0 && cpu < 20.0, "{report:?}");
}
