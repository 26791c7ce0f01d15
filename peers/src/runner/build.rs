//! Builds the peer programs beside the runner, since `cargo run` builds the runner alone.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use peers::Failure;

use super::plan::Plan;

/// Builds every program of this package in the runner's profile, and the binary of courser if
/// there is a proxy or a client of HTTP in the plan; does nothing when Cargo did not start the
/// runner.
pub(crate) fn programs(plan: &Plan) -> Result<(), Failure> {
    let has_http = plan.workloads.iter().any(|workload| workload.is_http());
    let with_courser = plan.link.is_some() || has_http;
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
    if with_courser {
        build(&folder.join("../Cargo.toml"), "courser-cli")?;
    }
    if has_http {
        let program = own.with_file_name("peer-http-quic-go");
        if let Err(failure) = with_go(&folder.join("go"), &program) {
            eprintln!("peers: left out quic-go: {failure}");
        }
    }
    Ok(())
}

/// Builds the program of quic-go, which Go's own tools fetch.
fn with_go(folder: &Path, program: &Path) -> Result<(), Failure> {
    let status = Command::new("go")
        .args(["build", "-trimpath", "-o"])
        .arg(program)
        .arg(".")
        .current_dir(folder)
        .status()
        .map_err(|error| format!("cannot run go: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err("go build failed".into())
    }
}
