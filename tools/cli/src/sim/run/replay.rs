//! Commands that repeat a run.

use std::path::Path;

use super::args::RunArguments;
use super::sources::Source;

/// Returns the command that repeats one run.
pub(super) fn replay(arguments: &RunArguments, source: &Source, seed: u64) -> String {
    use std::fmt::Write;
    let (path, scenario) = (&source.path, &source.scenario.name);
    // Writing to a string does not fail.
    let mut command = format!("courser sim run {}", quoted(path, cfg!(windows)));
    let is_alone = path
        .file_stem()
        .is_some_and(|stem| stem == scenario.as_str());
    // A scenario with the name of its file is alone in it; others are chosen by name.
    if !is_alone {
        let _ = write!(command, " --only {scenario}");
    }
    let _ = write!(command, " --seed {seed}");
    if let Some(controller) = arguments.cc {
        let _ = write!(command, " --cc {controller}");
    }
    if let Some(bounds) = &arguments.bounds {
        let _ = write!(command, " --bounds {}", quoted(bounds, cfg!(windows)));
    }
    command
}

/// Quotes a path for a shell.
fn quoted(path: &Path, is_windows: bool) -> String {
    let path = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@".contains(c);
    if !path.is_empty() && path.chars().all(is_plain) {
        return path.into_owned();
    }
    match is_windows {
        // Paths contain no quotation marks on Windows.
        true => format!("\"{path}\""),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_special_characters_are_quoted() {
        let quoted = |path: &str, is_windows| quoted(path.as_ref(), is_windows);
        for is_windows in [false, true] {
            assert_eq!(
                quoted("scenarios/a-1.toml", is_windows),
                "scenarios/a-1.toml"
            );
        }
        assert_eq!(quoted("my file.toml", false), "'my file.toml'");
        assert_eq!(quoted("it's", false), "'it'\\''s'");
        assert_eq!(quoted("C:\\my it's.toml", true), "\"C:\\my it's.toml\"");
    }
}
