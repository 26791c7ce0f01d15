//! Honest clients in a separate process: `courser-robustness clients MODE`.
//!
//! They use courser's own client: one endpoint and socket each, its default TLS, and HTTP/3. The
//! process reports as one line of JSON. Its CPU time is separate from that of attacker and server.

mod arrivals;
pub(super) mod client;
mod handshakes;
mod idle;
mod options;
mod soak;
mod statistics;

use self::options::Options;

/// Runs the mode that the arguments select.
pub(super) fn main(arguments: &[String]) -> Result<(), String> {
    let (mode, options) = arguments
        .split_first()
        .ok_or("missing the name of a mode")?;
    allow_many_sockets()?;
    let options = Options::read(options)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        match mode.as_str() {
            "arrivals" => arrivals::run(&options).await,
            "handshakes" => handshakes::run(&options).await,
            "soak" => soak::run(&options).await,
            "idle" => idle::run(&options).await,
            other => Err(format!("unknown mode `{other}`")),
        }
    })
}

/// Raises the limit of open files, because every client has a socket.
fn allow_many_sockets() -> Result<(), String> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised)
        .map_err(|error| format!("cannot raise the limit of open files: {error}"))
}
