use super::form::form;
use super::markdown::{DOC_TESTS, SUMMARY};
use super::*;

fn file(path: &str, text: &str) -> File {
    File::new(path.to_owned(), text.to_owned())
}

/// A guide of two pages, the second of which has `text`.
fn guide(text: &str) -> Vec<File> {
    vec![
        file(SUMMARY, "# Summary\n\n- [One](one.md)\n- [Two](two.md)\n"),
        file(
            "docs/guide/src/one.md",
            "# A first page\n\n## Of `two` parts\n",
        ),
        file("docs/guide/src/two.md", text),
        file(DOC_TESTS, "one.md two.md"),
        file(
            "examples/a.rs",
            "a\n// ANCHOR: part\nb\n// ANCHOR_END: part\nc\n",
        ),
    ]
}

fn problems(text: &str) -> Problems {
    check(&guide(text))
}

#[test]
fn a_guide_in_order_has_no_problems() {
    let text = "[one](one.md), [part](one.md#of-two-parts), [here](#two), [web](https://x.org)\n\n\
                # Two\n\n`examples/a.rs` and `code](nowhere)`\n\n\
                <!-- copy of examples/a.rs:part -->\n```rust,ignore\nb\n```\n\n\
                ```text\n[no](link)\n```\n";
    assert_eq!(problems(text), Problems::new());
}

#[test]
fn broken_links_are_found() {
    for (text, expected) in [
        ("[a](three.md)", "three.md does not exist"),
        ("[a](one.md#none)", "has no heading #none"),
        ("[a](#none)", "has no heading #none"),
        ("[a](../../ARCHITECTURE.md)", "leaves the guide"),
        ("`examples/none.rs`", "`examples/none.rs` does not exist"),
    ] {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(
            found[0].starts_with("docs/guide/src/two.md:1: "),
            "{found:?}"
        );
        assert!(found[0].contains(expected), "{text}: {found:?}");
    }
}

#[test]
fn code_needs_a_language_and_a_compiler() {
    for (text, expected) in [
        ("```\na\n```", "code without a language"),
        ("```rust,ignore\nlet a;\n```", "Rust that is not compiled"),
        (
            "```text\n{{#include ../../../examples/a.rs}}\n```",
            "see no code here",
        ),
        (
            "<!-- copy of no.rs -->\n```rust,ignore\n```",
            "copies no.rs, which does not exist",
        ),
        (
            "<!-- copy of examples/a.rs:other -->\n```rust,ignore\n```",
            "has no ANCHOR: other",
        ),
        (
            "<!-- copy of examples/a.rs:part -->\n```rust,ignore\nc\n```",
            "differs from examples/a.rs:part",
        ),
    ] {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].contains(expected), "{text}: {found:?}");
    }
}

#[test]
fn copies_are_replaced() {
    let part = "<!-- copy of examples/a.rs:part -->\n```rust,ignore\n";
    let whole = "```\n\n<!-- copy of examples/a.rs -->\n```rust,ignore\n";
    let old = format!("{part}old\nolder\n{whole}```\nend\n");
    let files = guide(&old);
    let page = Page::parse(&files[2]);
    let text = copies::replace(&page, &files).expect("a change");
    assert_eq!(text, format!("{part}b\n{whole}a\nb\nc\n```\nend\n"));
    let files = guide(&text);
    assert_eq!(copies::replace(&Page::parse(&files[2]), &files), None);
    assert_eq!(problems(&text), Problems::new());
}

#[test]
fn a_page_outside_of_the_lists_is_found() {
    let mut files = guide("");
    files.push(file("docs/guide/src/three.md", ""));
    let found = check(&files);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].contains("does not list docs/guide/src/three.md"),
        "{found:?}"
    );
    assert!(
        found[1].contains("does not compile the code of"),
        "{found:?}"
    );
}

#[test]
fn outputs_that_differ_in_figures_agree() {
    for (page, output) in [
        ("done in 12.3 ms", "done in 4 s"),
        ("1.2 Gbit/s, 0.3", "800 Mbit/s, 12.25"),
        ("id 00aa11bb22cc", "id deadbeef0000ff"),
        ("id 0011223344556677", "id deadbeef0000ff00"),
        ("a window of 4263105 bytes", "a window of 14204408 bytes"),
        ("a    5 |  6", "a 15 | 600"),
        ("(12.3 ms)", "(1 us)"),
        ("──────", "───"),
        ("HTTP  ██ 0.5 ms", "HTTP █▌ 1.5 s"),
        ("16.7 k/s", "950 /s"),
        (
            "at Thu, 26 Nov 2026 [26/Nov/2026]",
            "at Fri, 1 Jan 2027 [01/Jan/2027]",
        ),
        ("etag: \"6b07e485.1a-f\"", "etag: \"a.b\""),
        (
            "U/IUEd5e/eT8oAoMWSnvzX154n9oJlC3d03i/GfSRW8= x",
            "0JXbvIr0ES7b4uQ3kQhYrLrvfrWIFEwWKOP8FAgOouU= x",
        ),
        ("took 12ms.", "took 1.5s."),
    ] {
        assert!(form::agree(&[page], &[output]), "{page} and {output}");
    }
}

#[test]
fn outputs_of_another_form_differ() {
    for (page, output) in [
        ("done in 12.3 ms", "completed in 12.3 ms"),
        ("HTTP/3 200", "HTTP/2 error"),
        ("a 5", "a"),
        ("", "a"),
    ] {
        assert!(!form::agree(&[page], &[output]), "{page} and {output}");
    }
    assert!(!form::agree(&["a"], &["a", "b"]));
}

#[test]
fn three_points_stand_for_any_lines() {
    assert!(form::agree(&["a", "...", "c"], &["a", "b", "b", "c"]));
    assert!(form::agree(&["...", "c"], &["c"]));
    assert!(!form::agree(&["a", "...", "c"], &["a", "b"]));
}

#[test]
fn commands_and_outputs_of_a_block_are_separated() {
    let text = "```console\n$ a \\\n    b\nout\n$ c\n```\n";
    let file = file("docs/guide/src/two.md", text);
    let page = Page::parse(&file);
    let steps = run::steps(&page.fences[0]);
    assert_eq!(steps.len(), 2);
    assert_eq!((steps[0].line, steps[0].command.as_str()), (2, "a b"));
    assert_eq!(steps[0].output, ["out"]);
    assert_eq!((steps[1].line, steps[1].output.len()), (5, 0));
}

/// Runs a page with these commands, and returns its problems.
fn run_page(name: &str, commands: &str) -> Problems {
    let folder = std::env::temp_dir().join(format!("courser-xtask-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("courser"), "").expect("a file");
    let programs = Programs::new(folder.clone(), folder.clone()).expect("it has a program");
    let page = format!("docs/guide/src/{name}.md");
    let file = file(&page, &format!("```console\n{commands}```\n"));
    let outcome = run::run(&Page::parse(&file), &programs);
    let _ = fs::remove_dir_all(&folder);
    match outcome {
        Ok(outcome) => outcome.differences,
        Err(problems) => problems,
    }
}

#[test]
fn commands_end_with_the_exit_code_of_the_page() {
    let failing = "$ echo a; exit 7";
    let problems = run_page("failing", &format!("{failing}\na\n"));
    let expected = "docs/guide/src/failing.md:2: `echo a; exit 7`: ended with exit status: 7, not with exit \
                    code 0; if it should, write `# exit code 7` behind the command:\na\n";
    assert_eq!(problems, [expected]);
    let marked = format!("{failing} # exit code 7\na\n$ true\n");
    assert_eq!(run_page("marked", &marked), Problems::new());
    for (name, commands) in [
        ("succeeding", "$ true # exit code 7\n"),
        ("other", "$ exit 3 # exit code 7\n"),
        ("killed", "$ kill -9 $$\n"),
        ("background", "$ false &\n"),
    ] {
        let problems = run_page(name, commands);
        assert_eq!(problems.len(), 1, "{name}: {problems:?}");
        assert!(problems[0].contains("ended with "), "{problems:?}");
    }
    // It fails after the last command has ended, because of it.
    let script = "echo on; while [ ! -e go ]; do sleep 0.01; done; sleep 0.05; exit 3";
    let late = format!("$ bash -c '{script}' &\non\n$ touch go\n");
    let problems = run_page("late", &late);
    assert_eq!(problems.len(), 1, "{problems:?}");
    let expected = "a command in the background ended with exit status: 3";
    assert!(problems[0].contains(expected), "{problems:?}");
    // A server that the page stops has no exit code of its own.
    let stopped = "$ bash -c 'echo on; exec sleep 60' &\non\n$ kill %1\n";
    assert_eq!(run_page("stopped", stopped), Problems::new());
}

#[test]
fn ports_are_replaced_and_restored() {
    let mut ports = ports::Ports::default();
    let command = ports
        .replace("serve --listen [::]:4433 http://127.0.0.1:80 1:4433")
        .unwrap();
    assert!(!command.contains("4433"), "{command}");
    assert!(command.contains("http://127.0.0.1:80 "), "{command}");
    let restored = ports.restore(&command);
    assert_eq!(
        restored,
        "serve --listen [::]:4433 http://127.0.0.1:80 1:4433"
    );
}

#[test]
fn versions_and_status_codes_do_not_vary() {
    for (first, second) in [
        ("HTTP/3 200", "HTTP/3 500"),
        ("HTTP/3 200", "HTTP/2 200"),
        ("22", "0"),
        (
            "requests{protocol=\"h3\",code=\"200\"} 100",
            "requests{protocol=\"h2\",code=\"200\"} 100",
        ),
        ("requests{code=\"200\"} 100", "requests{code=\"500\"} 100"),
    ] {
        assert_ne!(form(first), form(second));
    }
    assert_eq!(form("HTTP/3 200 in 3 ms"), form("HTTP/3 200 in 41 ms"));
    assert_eq!(
        form("requests{code=\"200\"} 100"),
        form("requests{code=\"200\"} 7")
    );
}
