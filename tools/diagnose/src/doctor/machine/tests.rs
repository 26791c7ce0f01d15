use super::*;
use crate::doctor::checks::testing::Tree;

#[test]
fn files_are_read_up_to_the_limit() {
    let tree = Tree::new();
    let long = "x".repeat(usize::try_from(MAX_BYTES).expect("fits") + 10);
    tree.write("/proc/long", &long);
    let text = tree.machine().read("/proc/long").expect("readable");
    assert_eq!(text.len() as u64, MAX_BYTES);
}

#[test]
fn reasons_are_distinguished() {
    let tree = Tree::new();
    tree.write("/proc/word", "seven\n");
    let machine = tree.machine();
    let absent = machine.read("/proc/absent").expect_err("absent");
    assert_eq!(absent.to_string(), "/proc/absent does not exist here");
    let word = machine.number("/proc/word").expect_err("no number");
    assert_eq!(
        word.to_string(),
        "/proc/word contains 'seven', which is not a number"
    );
    assert!(matches!(machine.read("/proc"), Err(Unseen::Failed(_))));
    let forbidden = unseen("/x", &io::ErrorKind::PermissionDenied.into());
    assert_eq!(forbidden.to_string(), "/x may only be read by root");
}

#[test]
fn recorded_programs_have_output_and_others_are_absent() {
    let tree = Tree::new();
    let machine = tree.machine().with_output("nft list ruleset", "table");
    assert_eq!(
        machine.run("nft", &["list", "ruleset"]).as_deref(),
        Ok("table")
    );
    let absent = machine.run("nft", &["list"]).expect_err("not recorded");
    assert_eq!(absent, Unseen::Absent("the program nft".to_owned()));
}

#[cfg(unix)]
#[test]
fn failing_and_hanging_programs_are_reported() {
    let run = |script: &str| start("sh", &["-c", script], "sh");
    assert_eq!(run("echo yes").as_deref(), Ok("yes\n"));
    let failed = run("echo no such table >&2; exit 1").expect_err("failed");
    assert_eq!(
        failed,
        Unseen::Failed("'sh' failed: no such table".to_owned())
    );
    let forbidden = run("echo Operation not permitted >&2; exit 1").expect_err("failed");
    assert_eq!(
        forbidden,
        Unseen::Forbidden("the output of 'sh'".to_owned())
    );
    let hangs = run("exec sleep 60").expect_err("killed");
    assert_eq!(hangs, Unseen::Failed("'sh' took more than 3 s".to_owned()));
    let absent = start("courser-no-such-program", &[], "x").expect_err("absent");
    assert!(matches!(absent, Unseen::Absent(_)));
    let closed = start("/dev/null", &[], "x").expect_err("no program");
    assert_eq!(
        closed,
        Unseen::Failed("this user may not run /dev/null".to_owned())
    );
    // A full pipe does not block the program.
    let long = run("yes | head -c 3000000").expect("ended");
    assert_eq!(long.len() as u64, MAX_BYTES);
}
