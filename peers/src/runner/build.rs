//! Builds the peer programs beside the runner, since `cargo run` builds the runner alone.

use std::path::Path;
use std::process::Command;

use peers::Failure;

/// Builds every program of this package in the runner's profile; does nothing when Cargo did
/// not start the runner.
pub(crate) fn programs() -> Result<(), Failure> {
    let (Some(cargo), Some(folder)) = (
        std::env::var_os("CARGO"),
        std::env::var_os("CARGO_MANIFEST_DIR"),
    ) else {
        return Ok(());
    };
    let own = std::env::current_exe()?;
    // <target>/<profile>/peers
    let (Some(profile), Some(target)) = (
        own.parent().and_then(Path::file_name),
        own.ancestors().nth(2),
    ) else {
        return Err(format!("{} is not in a target folder", own.display()).into());
    };
    let profile = if profile == "debug" {
        "dev".as_ref()
    } else {
        profile
    };
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--locked", "--bins", "--manifest-path"])
        .arg(Path::new(&folder).join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .arg("--profile")
        .arg(profile)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err("cannot build the peer programs".into())
    }
}
