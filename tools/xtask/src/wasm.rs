//! `cargo xtask wasm`: checks that the protocols without I/O compile where there is no operating system.

use std::path::Path;
use std::process::Command;

use crate::report::Problems;

/// Runs `cargo check` for WebAssembly. Prints SKIPPED if the standard library of the target is not installed.
pub(crate) fn run(root: &Path) -> Result<(), Problems> {
    if !is_installed(root) {
        println!("SKIPPED {TARGET}: `rustup target add {TARGET}` installs its standard library");
        return Ok(());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let packages = PACKAGES.iter().flat_map(|package| ["--package", package]);
    let status = Command::new(cargo)
        .current_dir(root)
        .args(["check", "--locked", "--target", TARGET])
        .args(packages)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(vec![format!("the protocols do not compile for {TARGET}")]),
        Err(error) => Err(vec![format!("cannot start Cargo: {error}")]),
    }
}

/// Returns true if the compiler of this workspace has the target.
fn is_installed(root: &Path) -> bool {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler)
        .current_dir(root)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output();
    output.is_ok_and(|output| {
        let folder = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success() && Path::new(folder.trim()).is_dir()
    })
}

const TARGET: &str = "wasm32-unknown-unknown";

/// What a program with transports of its own needs. Their dependencies are compiled with them.
const PACKAGES: &[&str] = &["courser-masque", "courser-webtransport"];
