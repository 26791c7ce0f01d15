//! `courser interop`: the client, the server and the cases of the QUIC interop runner.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use courser::telemetry::SinkFactory;
use courser_interop::{Case, MatrixPlan, Notes, Peer, ReportFormat, UNSUPPORTED, run_matrix};

use crate::error::Failure;
use crate::output;
use crate::process::{RECORDS, runtime, stop_signal};

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum InteropCommand {
    /// Serve files according to the test in TESTCASE
    Server,
    /// Download the URLs in REQUESTS according to the test in TESTCASE
    Client,
    /// Run the cases of the runner between two processes and an emulated link
    Matrix(Box<MatrixArguments>),
}

#[derive(Args, Debug)]
pub(crate) struct MatrixArguments {
    /// Peers: courser, NAME of a program in --peer-dir, or NAME=PROGRAM
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "courser"
    )]
    peers: Vec<String>,
    /// Directory with the programs of peers
    #[arg(long, value_name = "DIR", default_value = "target/interop/peers")]
    peer_dir: PathBuf,
    /// Cases by letter or name [default: all]
    #[arg(long, value_name = "CASE,...", value_delimiter = ',')]
    cases: Vec<&'static Case>,
    /// Number of runs of each case
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// Number of concurrent runs
    #[arg(long, short, value_name = "N", default_value_t = 4)]
    jobs: u16,
    /// Seed of the links in the first runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Format of the report: text (the grid), md, html or json
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    report: ReportFormat,
    /// Write the report to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Explanations of failures: lines of server, client, letter and text, separated by tabs
    #[arg(long, value_name = "FILE")]
    notes: Option<PathBuf>,
    /// Keep the logs of all runs in this directory
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Environment of server and client:
  ROLE           server or client, for courser interop without a command
  TESTCASE       name of the test; the exit code is 127 if it is not supported
  REQUESTS       URLs to download, separated by spaces (client)
  SSLKEYLOGFILE  file for TLS secrets
  QLOGDIR        directory for traces
  LISTEN         address to listen on [default: [::]:443] (server)
  PREFERRED      preferred addresses to announce, one of IPv4, of IPv6 or both, separated by
                 spaces; the socket of LISTEN must receive their datagrams (server)
  WWW            directory of the files [default: /www] (server)
  CERTS          directory of cert.pem and priv.key [default: /certs] (server)
  DOWNLOADS      directory for downloads [default: /downloads] (client)
  PROTOCOL       h3: download over HTTP/3 in all tests (client)
  PROTOCOLS      application protocols of WebTransport, separated by spaces: TESTCASE then is one of
                 its cases, and REQUESTS, WWW and DOWNLOADS are read by both ends

Examples:
  TESTCASE=transfer LISTEN=127.0.0.1:4433 WWW=. CERTS=certs courser interop server
      Serve the current directory over HTTP/0.9
  courser interop matrix --cases H,DC,S --repeat 3
      Run three cases between two processes, three times each";

/// Runs a command, or the end that the variable `ROLE` selects.
pub(crate) fn main(command: Option<InteropCommand>) -> Result<ExitCode, Failure> {
    let variables = |name: &str| std::env::var_os(name);
    let command = match command {
        Some(command) => command,
        None => role(variables("ROLE").as_deref())?,
    };
    if let Some(ran) = sessions(&command, &variables)? {
        return Ok(ran);
    }
    match &command {
        InteropCommand::Server => match courser_interop::server_plan(&variables)? {
            Some(mut plan) => {
                plan.sinks = traces()?;
                runtime()?.block_on(courser_interop::serve(plan, stop_signal()))?;
            }
            None => return Ok(unsupported()),
        },
        InteropCommand::Client => match courser_interop::client_plan(&variables)? {
            Some(mut plan) => {
                plan.sinks = traces()?;
                runtime()?.block_on(courser_interop::fetch(&plan, stop_signal()))?;
            }
            None => return Ok(unsupported()),
        },
        InteropCommand::Matrix(arguments) => return matrix(arguments),
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs an end of the cases of WebTransport. Returns `None` for other cases.
fn sessions(
    command: &InteropCommand,
    variables: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<ExitCode>, Failure> {
    match command {
        InteropCommand::Server => {
            let Some(mut plan) = courser_interop::session_server_plan(variables)? else {
                return Ok(None);
            };
            plan.sinks = traces()?;
            runtime()?.block_on(courser_interop::run_server(plan, stop_signal()))?;
        }
        InteropCommand::Client => {
            let Some(mut plan) = courser_interop::session_client_plan(variables)? else {
                return Ok(None);
            };
            plan.sinks = traces()?;
            runtime()?.block_on(courser_interop::run_client(&plan, stop_signal()))?;
        }
        InteropCommand::Matrix(_) => return Ok(None),
    }
    Ok(Some(ExitCode::SUCCESS))
}

fn role(name: Option<&OsStr>) -> Result<InteropCommand, Failure> {
    match name.and_then(OsStr::to_str) {
        Some("server") => Ok(InteropCommand::Server),
        Some("client") => Ok(InteropCommand::Client),
        _ => Err(Failure::new(
            "pass a command (server, client or matrix), or set ROLE to server or client",
        )),
    }
}

fn unsupported() -> ExitCode {
    output::note("this test is not supported");
    ExitCode::from(UNSUPPORTED)
}

fn traces() -> Result<Option<Arc<dyn SinkFactory>>, Failure> {
    let path = std::env::var_os("QLOGDIR").filter(|path| !path.is_empty());
    RECORDS.sinks(path.map(PathBuf::from).as_deref(), "courser interop")
}

/// Runs all cells of the matrix and prints the report. The exit code is 1 if a cell failed.
fn matrix(arguments: &MatrixArguments) -> Result<ExitCode, Failure> {
    let own = Peer::this_program("courser", env!("CARGO_PKG_VERSION"), &["interop"])?;
    let mut plan = MatrixPlan::new(own, &arguments.peers, &arguments.peer_dir)?;
    if !arguments.cases.is_empty() {
        plan.cases.clone_from(&arguments.cases);
    }
    plan.repeat = arguments.repeat;
    plan.jobs = arguments.jobs.into();
    plan.seed = arguments.seed;
    plan.logs.clone_from(&arguments.logs);
    let notes = arguments.notes.as_deref().map(Notes::read).transpose()?;
    let matrix = run_matrix(&plan, |run| output::note(run.to_string()));
    let text = matrix.report(arguments.report, &notes.unwrap_or_default())?;
    match &arguments.output {
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?,
        None => output::line(text.trim_end()),
    }
    Ok(ExitCode::from(u8::from(matrix.failed().next().is_some())))
}
