//! `cargo xtask attack`: builds the server and the adversary, and runs attacks.
//!
//! The adversary is a process of its own, so that the checks here compile without it.

use std::path::Path;
use std::process::Command;

use crate::Problems;

/// Runs the adversary with these arguments. Lists and helps without building the server.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), Problems> {
    let needs_server = !arguments
        .iter()
        .any(|argument| matches!(*argument, "--list" | "--help" | "-h" | "help"));
    if needs_server {
        cargo(root, &["build", "--release", "--package", "courser-cli"])?;
    }
    let mut words = vec![
        "run",
        "--release",
        "--quiet",
        "--package",
        "courser-adversary",
        "--",
    ];
    words.extend(arguments);
    cargo(root, &words)
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<(), Problems> {
    // Cargo tells its children which Cargo it is.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(arguments)
        .current_dir(root)
        .status()
        .map_err(|error| vec![format!("cannot start cargo: {error}")])?;
    if status.success() {
        return Ok(());
    }
    Err(vec![format!("`cargo {}` failed", arguments.join(" "))])
}
