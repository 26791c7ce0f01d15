//! `courser interop`: the ends and the cases of the QUIC interop runner.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Subcommand;
use courser::telemetry::SinkFactory;
use courser_interop::UNSUPPORTED;

use crate::error::Failure;
use crate::output;
use crate::process::{RECORDS, runtime, stop_signal};

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum InteropCommand {
    /// Serve files as the test in TESTCASE demands
    Server,
    /// Download the URLs in REQUESTS as the test in TESTCASE demands
    Client,
}

const EXAMPLES: &str = "\
Environment:
  TESTCASE       name of the test; the exit code is 127 if it is not supported
  REQUESTS       URLs to download, separated by spaces (client)
  SSLKEYLOGFILE  file for TLS secrets
  QLOGDIR        directory for traces
  LISTEN         address to listen on [default: [::]:443] (server)
  WWW            directory of the files [default: /www] (server)
  CERTS          directory of cert.pem and priv.key [default: /certs] (server)
  DOWNLOADS      directory for downloads [default: /downloads] (client)

Examples:
  TESTCASE=transfer LISTEN=127.0.0.1:4433 WWW=. CERTS=certs courser interop server
      Serve the current directory over HTTP/0.9
  TESTCASE=transfer REQUESTS=https://127.0.0.1:4433/file DOWNLOADS=/tmp courser interop client
      Download a file";

pub(crate) fn main(command: &InteropCommand) -> Result<ExitCode, Failure> {
    match command {
        InteropCommand::Server => serve(),
        InteropCommand::Client => fetch(),
    }
}

fn serve() -> Result<ExitCode, Failure> {
    let Some(mut plan) = courser_interop::server_plan(&|name| std::env::var_os(name))? else {
        return Ok(unsupported());
    };
    plan.sinks = traces()?;
    runtime()?.block_on(courser_interop::serve(plan, stop_signal()))?;
    Ok(ExitCode::SUCCESS)
}

fn fetch() -> Result<ExitCode, Failure> {
    let Some(mut plan) = courser_interop::client_plan(&|name| std::env::var_os(name))? else {
        return Ok(unsupported());
    };
    plan.sinks = traces()?;
    runtime()?.block_on(courser_interop::fetch(&plan))?;
    Ok(ExitCode::SUCCESS)
}

fn unsupported() -> ExitCode {
    output::note("this test is not supported");
    ExitCode::from(UNSUPPORTED)
}

fn traces() -> Result<Option<Arc<dyn SinkFactory>>, Failure> {
    let path = std::env::var_os("QLOGDIR").filter(|path| !path.is_empty());
    RECORDS.sinks(path.map(PathBuf::from).as_deref(), "courser interop")
}
