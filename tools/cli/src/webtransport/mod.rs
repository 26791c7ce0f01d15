//! `courser webtransport`: a session whose streams or datagrams are connected to standard input and output.

pub(crate) mod args;
mod connect;
mod open;
mod pipe;
mod target;
mod verbose;

use std::process::ExitCode;
use std::time::Duration;

use courser::webtransport::{Closed, Session};
use tokio::time::timeout;

use self::args::Arguments;
use self::connect::Connected;
use self::target::Target;
use self::verbose::Verbose;
use crate::error::Failure;
use crate::get::exit::{Failed, RECEIVE_ERROR};
use crate::output;
use crate::process::{runtime, stop_signal};

/// Runs the command. Returns the exit code of curl for the same outcome.
pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        tokio::select! {
            result = run(arguments) => result.map(|()| ExitCode::SUCCESS),
            () = stop_signal() => Ok(INTERRUPTED.into()),
        }
    });
    // A read of standard input may never return.
    runtime.shutdown_background();
    Ok(result.unwrap_or_else(|failed| {
        output::note(failed.to_string());
        failed.code.into()
    }))
}

async fn run(arguments: &Arguments) -> Result<(), Failed> {
    let verbose = Verbose(arguments.verbose);
    let request = open::request(arguments)?;
    let target = Target::find(&arguments.url)?;
    let connected = connect::connect(arguments, &target).await?;
    verbose.on_connected(&connected);
    let session = open::open(arguments, &connected, request(&target.uri)).await?;
    verbose.on_session(&session, &connected).await;
    let draining = async {
        session.draining().await;
        verbose.on_draining();
        std::future::pending::<()>().await
    };
    let piped = tokio::select! {
        // What has arrived before the end is printed first.
        biased;
        piped = pipe::run(arguments, &session) => piped,
        () = draining => return Ok(()),
    };
    end(session, connected, piped, verbose).await
}

/// Closes the session, and waits until the server has received that.
async fn end(
    session: Session,
    connected: Connected,
    piped: Result<(), Failed>,
    verbose: Verbose,
) -> Result<(), Failed> {
    if piped.is_err() {
        // The streams of a session end before its reason arrives.
        let _ = timeout(REASON_TIME, session.closed()).await;
    }
    session.close(0, "");
    let closed = session.closed().await;
    let text = describe(&closed, &connected);
    verbose.on_closed(&text);
    let Connected {
        endpoint, http3, ..
    } = connected;
    drop(session);
    // The session of this end is over at once, and its task has yet to send the reason.
    let rtt = http3.quic().stats().path.rtt;
    tokio::time::sleep((3 * rtt).clamp(SHORTEST_PAUSE, END_TIME)).await;
    http3.quic().close(NO_ERROR.into(), b"");
    drop(http3);
    let _ = timeout(END_TIME, endpoint.wait_idle()).await;
    match (piped, closed) {
        // The end of the session explains the failure of a stream.
        (Err(failed), closed) if failed.code == RECEIVE_ERROR => match closed {
            Closed::Local(_) => Err(failed),
            _ => Err(Failed::new(RECEIVE_ERROR, text)),
        },
        (Err(failed), _) => Err(failed),
        (Ok(()), Closed::Peer(reason)) if reason.code.0 != 0 => {
            Err(Failed::new(RECEIVE_ERROR, text))
        }
        (Ok(()), _) => Ok(()),
    }
}

/// Describes the end of a session. Some servers close the connection instead, with a code and a reason of their own.
fn describe(closed: &Closed, connected: &Connected) -> String {
    match (closed, connected.http3.quic().close_reason()) {
        (Closed::ConnectionLost, Some(reason)) => format!("{closed}: {reason}"),
        _ => closed.to_string(),
    }
}

/// The exit code of shells for SIGINT.
const INTERRUPTED: u8 = 130;
/// The code H3_NO_ERROR (RFC 9114 §8.1).
const NO_ERROR: u32 = 0x100;
/// Time for the reason of a session whose stream has failed.
const REASON_TIME: Duration = Duration::from_millis(500);
/// Least time for the end of the session to reach the server.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
/// Time limit for the end of the connection.
const END_TIME: Duration = Duration::from_secs(1);
