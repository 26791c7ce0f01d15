//! `cargo xtask attack`, `robustness` and `soak`: builds the server and the program that attacks it.
//!
//! The program is a separate process, so that the checks here compile without it.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::report::Problems;

/// Runs attacks with the release profile. `--list` and `--help` do not build the server.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), Problems> {
    measure(root, "release", &[], arguments)
}

/// Measures the figures of `docs/ROBUSTNESS.md` with the profile that the arguments name.
pub(crate) fn robustness(root: &Path, arguments: &[&str]) -> Result<(), Problems> {
    let (profile, arguments) = take_profile(arguments);
    measure(root, profile, &["robustness"], &arguments)
}

/// Runs servers, clients and attackers together for a long time.
pub(crate) fn soak(root: &Path, arguments: &[&str]) -> Result<(), Problems> {
    let (profile, arguments) = take_profile(arguments);
    measure(root, profile, &["soak"], &arguments)
}

/// Splits `--profile NAME` from the other arguments. The default is `dist`, as for all figures.
fn take_profile<'a>(arguments: &[&'a str]) -> (&'a str, Vec<&'a str>) {
    let mut rest = arguments.to_vec();
    let at = rest.iter().position(|argument| *argument == "--profile");
    let profile = match at.filter(|at| at + 1 < rest.len()) {
        Some(at) => rest.drain(at..=at + 1).nth(1),
        None => None,
    };
    (profile.unwrap_or("dist"), rest)
}

/// Builds and runs `courser-robustness`.
fn measure(
    root: &Path,
    profile: &str,
    command: &[&str],
    arguments: &[&str],
) -> Result<(), Problems> {
    let needs_server = !arguments
        .iter()
        .any(|argument| matches!(*argument, "--list" | "--help" | "-h" | "help"));
    // Without a server nothing is measured, so the fastest build is enough.
    let profile = if needs_server { profile } else { "release" };
    let mut build = vec!["build", "--profile", profile];
    build.extend(["--package", "courser-robustness"]);
    if needs_server {
        // One build for both. Two builds would compile most crates twice, with different features.
        build.extend(["--package", "courser-cli"]);
    }
    run_in(root, Command::new(cargo()).args(build))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let program = root.join(target).join(profile).join("courser-robustness");
    run_in(root, Command::new(program).args(command).args(arguments))
}

/// Returns the path of Cargo, which Cargo passes to its children.
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
    fn profile_is_removed_from_the_arguments() {
        let words = ["storm-1000", "--profile", "release", "--quick"];
        let rest = vec!["storm-1000", "--quick"];
        assert_eq!(take_profile(&words), ("release", rest));
        assert_eq!(take_profile(&["--quick"]), ("dist", vec!["--quick"]));
        assert_eq!(take_profile(&["--profile"]), ("dist", vec!["--profile"]));
    }
}
