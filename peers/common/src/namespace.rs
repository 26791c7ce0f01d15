//! Network namespaces without names.
//!
//! A namespace lives as long as its value holds the file, or a program runs in it. So nothing is left behind, however
//! the program ends.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

use crate::Failure;

/// A namespace, which any thread may enter.
#[derive(Clone, Debug)]
pub struct Namespace(Arc<File>);

impl Namespace {
    /// Makes a namespace on a thread that ends with it, so that this one stays where it is.
    ///
    /// # Errors
    /// When the process may not.
    pub fn new() -> Result<Self, Failure> {
        let made = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|error| format!("network namespaces need root: {error}"))?;
            File::open(OWN).map_err(|error| format!("{OWN}: {error}"))
        });
        let file = made
            .join()
            .map_err(|_| "the thread of a namespace failed")?;
        Ok(Self(Arc::new(file?)))
    }

    /// Moves the calling thread into this namespace, for good.
    ///
    /// # Errors
    /// When the process may not.
    pub fn enter(&self) -> Result<(), Failure> {
        Ok(setns(&*self.0, CloneFlags::CLONE_NEWNET)?)
    }

    /// Runs `work` in this namespace and comes back; a process started meanwhile stays there.
    ///
    /// # Errors
    /// When the process may not.
    pub fn inside<T>(&self, work: impl FnOnce() -> T) -> Result<T, Failure> {
        let own = File::open(OWN)?;
        self.enter()?;
        let result = work();
        setns(&own, CloneFlags::CLONE_NEWNET)
            .map_err(|error| format!("cannot leave a network namespace: {error}"))?;
        Ok(result)
    }

    /// Returns the path by which `ip` finds it.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

/// Runs a program such as `ip` with arguments that spaces separate.
///
/// # Errors
/// When it is missing, or fails.
pub fn run(program: &str, arguments: &str) -> Result<(), Failure> {
    let output = Command::new(program)
        .args(arguments.split(' '))
        .output()
        .map_err(|error| format!("the program {program} is needed: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {arguments}: {}", said.trim()).into())
}

/// The namespace of the thread that opens it.
pub const OWN: &str = "/proc/thread-self/ns/net";
