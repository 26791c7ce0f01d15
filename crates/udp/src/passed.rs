//! Descriptors that a service manager has opened for this process.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::portable::adopt;

/// A descriptor that a service manager has opened for this process.
#[derive(Debug)]
pub struct PassedDescriptor {
    /// The name that the service manager has given it, such as that of a unit of systemd.
    pub name: String,
    /// The number under which it was passed.
    pub number: RawFd,
    /// The descriptor. Programs that this process starts do not inherit it.
    pub descriptor: OwnedFd,
}

/// Takes the descriptors that a service manager has opened for this process, as `sd_listen_fds` of systemd
/// does: `LISTEN_FDS` is their number, `LISTEN_PID` the ID of the process that they are for, and
/// `LISTEN_FDNAMES` has their names. Returns none on later calls.
///
/// # Errors
/// Returns an error if a variable has no valid value, or a descriptor is not open.
pub fn take_passed_descriptors() -> io::Result<Vec<PassedDescriptor>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let variable = |name| std::env::var(name).unwrap_or_default();
    let names = names(
        &variable("LISTEN_FDS"),
        &variable("LISTEN_PID"),
        &variable("LISTEN_FDNAMES"),
    )?;
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let numbered = (FIRST..).zip(names);
    let adopted = numbered.map(|(number, name)| {
        let descriptor = adopt(number).map_err(|error| {
            let text = format!("descriptor {number} of LISTEN_FDS is not open: {error}");
            io::Error::new(error.kind(), text)
        })?;
        Ok(PassedDescriptor {
            name,
            number,
            descriptor,
        })
    });
    adopted.collect()
}

/// Returns the names of the descriptors that these variables announce to this process.
fn names(fds: &str, pid: &str, names: &str) -> io::Result<Vec<String>> {
    if fds.is_empty() || pid.is_empty() {
        return Ok(Vec::new());
    }
    let wrong = |variable, value| {
        let text = format!("{variable} has the value {value:?} instead of a number");
        io::Error::new(io::ErrorKind::InvalidInput, text)
    };
    let process: u32 = pid.parse().map_err(|_| wrong("LISTEN_PID", pid))?;
    if process != std::process::id() {
        return Ok(Vec::new());
    }
    let count: u16 = fds.parse().map_err(|_| wrong("LISTEN_FDS", fds))?;
    let given = names.split(':').map(str::to_owned);
    let missing = std::iter::repeat_with(|| "unknown".to_owned());
    let all = given.filter(|name| !name.is_empty()).chain(missing);
    Ok(all.take(count.into()).collect())
}

/// The first descriptor (`SD_LISTEN_FDS_START`).
const FIRST: RawFd = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_named_in_their_order() {
        let own = std::process::id().to_string();
        let expected = ["web.socket", "admin", "unknown"];
        assert_eq!(names("3", &own, "web.socket:admin").unwrap(), expected);
        assert_eq!(names("1", &own, "").unwrap(), ["unknown"]);
        assert_eq!(names("0", &own, "web").unwrap(), [""; 0]);
    }

    #[test]
    fn descriptors_of_other_processes_stay_theirs() {
        let other = (std::process::id() + 1).to_string();
        assert_eq!(names("3", &other, "a:b:c").unwrap(), [""; 0]);
        assert_eq!(names("3", "", "a:b:c").unwrap(), [""; 0]);
        assert_eq!(names("", "", "").unwrap(), [""; 0]);
    }

    #[test]
    fn invalid_variables_are_named() {
        let own = std::process::id().to_string();
        let error = names("many", &own, "").unwrap_err().to_string();
        assert!(
            error.contains("LISTEN_FDS") && error.contains("many"),
            "{error}"
        );
        let error = names("1", "-1", "").unwrap_err().to_string();
        assert!(
            error.contains("LISTEN_PID") && error.contains("-1"),
            "{error}"
        );
    }
}
