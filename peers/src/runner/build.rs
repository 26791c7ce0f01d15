//! Builds the peer programs beside the runner, since `cargo run` builds the runner alone.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use peers::Failure;

/// Builds every program of this package in the runner's profile, and the proxy if one is needed;
/// does nothing when Cargo did not start the runner.
pub(crate) fn programs(with_proxy: bool) -> Result<(), Failure> {
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
    let folder = Path::new(&folder);
    let build = |manifest: &Path, package: &str| {
        let status = Command::new(&cargo)
            .args(["build", "--quiet", "--locked", "--bins", "--package"])
            .arg(package)
            .arg("--manifest-path")
            .arg(manifest)
            .arg("--target-dir")
            .arg(target)
            .args([OsStr::new("--profile"), profile])
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(Failure::from(format!(
                "cannot build the programs of {package}"
            )))
        }
    };
    build(&folder.join("Cargo.toml"), "peers")?;
    if with_proxy {
        build(&folder.join("../Cargo.toml"), "courser-cli")?;
    }
    Ok(())
}
