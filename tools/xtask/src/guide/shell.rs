//! Commands that are shown and not run: their flags must exist.

use std::collections::BTreeMap;

use super::markdown::Page;
use super::run::Programs;
use crate::report::Problems;

/// Checks that the commands of a page name flags that `courser` has.
pub(super) fn check(page: &Page<'_>, programs: &Programs) -> Problems {
    let mut problems = Problems::new();
    let mut helps: BTreeMap<String, String> = BTreeMap::new();
    for fence in &page.fences {
        if !SHELLS.contains(&fence.language()) {
            continue;
        }
        for (index, line) in fence.lines.iter().enumerate() {
            let Some((subcommand, flags)) = used(line) else {
                continue;
            };
            let help = match helps.get(&subcommand) {
                Some(help) => help,
                None => match help(programs, &subcommand) {
                    Ok(help) => helps.entry(subcommand.clone()).or_insert(help),
                    Err(problem) => {
                        problems.push(format!("{}:{}: {problem}", page.path, fence.line));
                        continue;
                    }
                },
            };
            let missing = flags.into_iter().filter(|flag| !has_flag(help, flag));
            problems.extend(missing.map(|flag| {
                let line = fence.line + index + 1;
                format!("{}:{line}: `courser {subcommand}` has no {flag}", page.path)
            }));
        }
    }
    problems
}

/// Returns the subcommand of a line that runs `courser`, and its long flags.
fn used(line: &str) -> Option<(String, Vec<String>)> {
    let line = line.split(" #").next().unwrap_or(line);
    let line = line.trim_start_matches("$ ");
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "courser")?;
    // An argument of another program is no command.
    let before = at.checked_sub(1).map(|index| words[index]);
    if !before.is_none_or(|word| word.contains('=') || matches!(word, "sudo" | "|" | "&&" | ";")) {
        return None;
    }
    let mut words = words[at + 1..].iter().copied();
    let mut subcommand = vec![words.next()?.to_owned()];
    if NESTED.contains(&subcommand[0].as_str()) {
        subcommand.extend(words.next().map(str::to_owned));
    }
    let flags = words.take_while(|word| !matches!(*word, "|" | "&&" | ">" | ";" | "--a"));
    let flags = flags.filter(|word| word.starts_with("--") && word.len() > 2);
    let flags = flags.map(|flag| flag.split('=').next().unwrap_or(flag).to_owned());
    Some((subcommand.join(" "), flags.collect()))
}

fn help(programs: &Programs, subcommand: &str) -> Result<String, String> {
    let mut command = programs.command("courser");
    command.args(subcommand.split(' ')).arg("--help");
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("`courser {subcommand}` does not exist"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn has_flag(help: &str, flag: &str) -> bool {
    let mut words = help.split(|c: char| !(c.is_alphanumeric() || c == '-'));
    words.any(|word| word == flag)
}

/// Languages of blocks with commands.
const SHELLS: &[&str] = &["sh", "console"];

/// Commands with subcommands of their own.
const NESTED: &[&str] = &["perf", "qlog", "sim", "interop"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_a_line_are_found() {
        let (subcommand, flags) =
            used("$ courser get --http3 -k --header=a:b https://x/ # --no").unwrap();
        assert_eq!(subcommand, "get");
        assert_eq!(flags, ["--http3", "--header"]);
        let (subcommand, flags) =
            used("sudo courser perf client HOST --udp | grep --color").unwrap();
        assert_eq!(
            (subcommand.as_str(), flags),
            ("perf client", vec!["--udp".to_owned()])
        );
        assert_eq!(used("echo courses"), None);
        assert_eq!(used("cargo run -p courser --example echo"), None);
        assert_eq!(
            used("A=b courser get").map(|(name, _)| name).as_deref(),
            Some("get")
        );
    }

    #[test]
    fn prefixes_of_flags_are_not_flags() {
        assert!(has_flag("  -k, --insecure  Skip", "--insecure"));
        assert!(!has_flag("      --http3-only", "--http3"));
    }
}
