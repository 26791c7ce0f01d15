//! Builds the peer programs beside the runner, since `cargo run` builds the runner alone.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use peers::Failure;

use super::plan::Plan;
use super::registry::{DIST, MSQUIC, RELEASE, TQUIC};
use super::workload::Family;

/// Builds every program of this package in the runner's profile, and for HTTP and links what they
/// take besides; does nothing when Cargo did not start the runner. What takes more than this
/// workspace to build may fail, and is left out with a line that says so.
pub(crate) fn programs(plan: &Plan) -> Result<(), Failure> {
    let has_http = plan.has(Family::Http);
    let Some(build) = Build::found()? else {
        return Ok(());
    };
    build.package("peers", "Cargo.toml", &build.profile)?;
    if plan.link.is_some() || has_http || plan.has_installed() {
        // `release` is built quickly there, and is not what is measured.
        let profile = match build.profile.as_str() {
            RELEASE => DIST,
            profile => profile,
        };
        build.package("courser-cli", "../Cargo.toml", profile)?;
    }
    if has_http {
        let program = build.runner.with_file_name("peer-http-quic-go");
        if let Err(failure) = with_go(&build.folder.join("go"), &program) {
            eprintln!("peers: left out quic-go: {failure}");
        }
        if let Err(failure) = build.with_boringssl() {
            eprintln!("peers: left out quiche: {failure}");
        }
    }
    for stack in [MSQUIC, TQUIC] {
        let is_named = plan.stacks.iter().any(|name| name == stack);
        if plan.has(Family::Perf)
            && (is_named || plan.stacks.is_empty())
            && let Err(failure) = build.with_cmake(stack)
        {
            eprintln!("peers: left out {stack}: {failure}");
        }
    }
    Ok(())
}

/// The paths of a build, and its profile.
struct Build {
    cargo: OsString,
    /// Of this package.
    folder: PathBuf,
    target: PathBuf,
    profile: String,
    runner: PathBuf,
}

impl Build {
    /// `None` when Cargo did not start the runner.
    fn found() -> Result<Option<Self>, Failure> {
        let (Some(cargo), Some(folder)) = (
            std::env::var_os("CARGO"),
            std::env::var_os("CARGO_MANIFEST_DIR"),
        ) else {
            return Ok(None);
        };
        let runner = std::env::current_exe()?;
        // <target>/<profile>/peers
        let (Some(profile), Some(target)) = (
            runner.parent().and_then(Path::file_name),
            runner.ancestors().nth(2),
        ) else {
            return Err(format!("{} is not in a target folder", runner.display()).into());
        };
        let profile = if profile == "debug" {
            "dev".to_owned()
        } else {
            profile.to_string_lossy().into_owned()
        };
        Ok(Some(Self {
            cargo,
            folder: folder.into(),
            target: target.to_owned(),
            profile,
            runner,
        }))
    }

    /// Builds the programs of a package in the runner's target folder.
    fn package(&self, name: &str, manifest: &str, profile: &str) -> Result<(), Failure> {
        let status = Command::new(&self.cargo)
            .args(self.arguments(name, manifest, profile))
            .arg("--bins")
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("cannot build the programs of {name}").into())
        }
    }

    /// Builds the program of quiche, whose BoringSSL takes more than Cargo fetches.
    fn with_boringssl(&self) -> Result<(), Failure> {
        let name = "peer-http-quiche";
        if !self.runner.with_file_name(name).is_file() {
            eprintln!("peers: building quiche, which takes minutes the first time");
        }
        let script = self.folder.join("quiche/with-boringssl");
        let output = Command::new(&script)
            .arg(&self.cargo)
            .args(self.arguments(name, "quiche/Cargo.toml", &self.profile))
            .args(["--bin", name])
            .env("CARGO_TARGET_DIR", &self.target)
            .output()
            .map_err(|error| format!("cannot run {}: {error}", script.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        // What is missing is said in the last line; of what failed all may matter.
        if output.status.code() == Some(IS_MISSING) {
            return Err(said.lines().last().unwrap_or_default().into());
        }
        eprint!("{said}");
        Err("cargo build failed".into())
    }

    /// Builds the program of a stack in C or with a BoringSSL.
    fn with_cmake(&self, stack: &str) -> Result<(), Failure> {
        let compilers: &[&str] = match stack {
            TQUIC => &["cc", "c++"],
            _ => &["cc"],
        };
        for program in ["cmake"].iter().chain(compilers) {
            let found = Command::new(program).arg("--version").output();
            found.map_err(|_| format!("{program} is needed"))?;
        }
        let name = format!("peer-{stack}");
        if !self.runner.with_file_name(&name).is_file() {
            eprintln!("peers: building {stack}, which takes minutes the first time");
        }
        let manifest = format!("{stack}/Cargo.toml");
        let output = Command::new(&self.cargo)
            .args(self.arguments(&name, &manifest, &self.profile))
            .args(["--bin", &name])
            .output()?;
        if !output.status.success() {
            eprint!("{}", String::from_utf8_lossy(&output.stderr));
            return Err("cargo build failed".into());
        }
        match stack {
            MSQUIC => self.library_of_msquic(),
            _ => Ok(()),
        }
    }

    /// Puts the shared library beside the program, which looks for it there.
    fn library_of_msquic(&self) -> Result<(), Failure> {
        let library = newest_library(&self.runner.with_file_name("build"))?;
        // The old file may be in use by a program, and is not overwritten.
        let place = self.runner.with_file_name(LIBMSQUIC);
        let fresh = self.runner.with_file_name(format!("{LIBMSQUIC}.new"));
        fs::copy(library, &fresh)?;
        fs::rename(fresh, place)?;
        Ok(())
    }

    fn arguments(&self, package: &str, manifest: &str, profile: &str) -> Vec<OsString> {
        let arguments = ["build", "--quiet", "--locked", "--package", package];
        let mut arguments: Vec<OsString> = arguments.map(Into::into).into();
        arguments.extend(["--manifest-path".into(), self.folder.join(manifest).into()]);
        arguments.extend(["--target-dir".into(), self.target.clone().into()]);
        arguments.extend(["--profile".into(), profile.into()]);
        arguments
    }
}

/// Finds msquic's library among the folders of build scripts; settings that changed leave older ones.
fn newest_library(folder: &Path) -> Result<PathBuf, Failure> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let library = entry?.path().join("out/lib").join(LIBMSQUIC);
        if let Ok(time) = fs::metadata(&library).and_then(|file| file.modified()) {
            found.push((time, library));
        }
    }
    let newest = found.into_iter().max().map(|(_, library)| library);
    newest.ok_or_else(|| format!("{} has no {LIBMSQUIC}", folder.display()).into())
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

/// The exit code of scripts whose prerequisites are missing.
const IS_MISSING: i32 = 77;

/// The shared library of msquic.
const LIBMSQUIC: &str = "libmsquic.so.2";
