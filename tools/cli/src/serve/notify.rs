//! Messages to the service manager (sd_notify).

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Sends assignments such as `READY=1`, one a line, if a service manager waits for them. Errors are ignored: the
/// manager has a time limit of its own.
pub(crate) fn notify(assignments: &str) {
    if IS_STOPPED.load(Relaxed) {
        return;
    }
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let _ = send(&name, assignments);
}

/// Sends nothing from now on, because another process is the main one of the service.
pub(crate) fn stop() {
    IS_STOPPED.store(true, Relaxed);
}

static IS_STOPPED: AtomicBool = AtomicBool::new(false);

fn send(name: &OsStr, assignments: &str) -> std::io::Result<()> {
    // A name that begins with `@` is not that of a file.
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.send_to_addr(assignments.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_names_are_reached() {
        let unique = format!("courser-notify-{}", std::process::id());
        let path = std::env::temp_dir().join(&unique);
        let of_path = UnixDatagram::bind(&path).expect("bound");
        let address = SocketAddr::from_abstract_name(&unique).expect("a name");
        let of_name = UnixDatagram::bind_addr(&address).expect("bound");
        let abstract_name = format!("@{unique}");
        for (name, socket) in [
            (path.as_os_str(), of_path),
            (OsStr::new(&abstract_name), of_name),
        ] {
            send(name, "READY=1\nMAINPID=7").expect("sent");
            let mut buffer = [0; 64];
            let len = socket.recv(&mut buffer).expect("received");
            assert_eq!(&buffer[..len], b"READY=1\nMAINPID=7");
        }
        let _ = std::fs::remove_file(path);
    }
}
