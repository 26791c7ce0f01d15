//! `cargo xtask attack`, `robustness` and `soak`: build the server and the adversary, and run them.
//!
//! The adversary is a process of its own, so that the checks here compile without it.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::Problems;

/// Runs attacks, with the release profile. Lists and helps without building the server.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), Problems> {
    adversary(root, "release", &[], arguments)
}

/// Measures the figures of `docs/ROBUSTNESS.md`, with the profile that they name.
pub(crate) fn robustness(root: &Path, arguments: &[&str]) -> Result<(), Problems> {
    let (profile, arguments) = take_profile(arguments);
    adversary(root, profile, &["robustness"], &arguments)
}

/// Runs servers, clients and attackers together for a long time.
pub(crate) fn soak(root: &Path, arguments: &[&str]) -> Result<(), Problems> {
    let (profile, arguments) = take_profile(arguments);
    adversary(root, profile, &["soak"], &arguments)
}

/// Takes `--profile NAME` out of the arguments. Figures are made with `dist` otherwise.
fn take_profile<'a>(arguments: &[&'a str]) -> (&'a str, Vec<&'a str>) {
    let mut rest = arguments.to_vec();
    let at = rest.iter().position(|argument| *argument == "--profile");
    let profile = match at.filter(|at| at + 1 < rest.len()) {
        Some(at) => rest.drain(at..=at + 1).nth(1),
        None => None,
    };
    (profile.unwrap_or("dist"), rest)
}

fn adversary(
    root: &Path,
    profile: &str,
    command: &[&str],
    arguments: &[&str],
) -> Result<(), Problems> {
    let needs_server = !arguments
        .iter()
        .any(|argument| matches!(*argument, "--list" | "--help" | "-h" | "help"));
    // Without a server there is nothing to measure, and the fastest build will do.
    let profile = if needs_server { profile } else { "release" };
    let mut build = vec!["build", "--profile", profile];
    build.extend(["--package", "courser-adversary"]);
    if needs_server {
        // In one build: two would compile most crates twice, with the features of each.
        build.extend(["--package", "courser-cli"]);
    }
    run_in(root, Command::new(cargo()).args(build))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let program = root.join(target).join(profile).join("courser-adversary");
    run_in(root, Command::new(program).args(command).args(arguments))
}

/// Cargo tells its children which Cargo it is.
fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn run_in(root: &Path, command: &mut Command) -> Result<(), Problems> {
    let program = command.get_program().display().to_string();
    let status = command
        .current_dir(root)
        .status()
        .map_err(|error| vec![format!("cannot start {program}: {error}")])?;
    if status.success() {
        return Ok(());
    }
    Err(vec![format!("{program} failed")])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profile_is_taken_out_where_it_stands() {
        let words = ["storm-1000", "--profile", "release", "--quick"];
        let rest = vec!["storm-1000", "--quick"];
        assert_eq!(take_profile(&words), ("release", rest));
        assert_eq!(take_profile(&["--quick"]), ("dist", vec!["--quick"]));
        assert_eq!(take_profile(&["--profile"]), ("dist", vec!["--profile"]));
    }
}
