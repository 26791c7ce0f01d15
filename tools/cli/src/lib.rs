//! The `courser` binary: a demonstration, server, client and tools for measuring.
//!
//! It is a library because tests need all features, which a package can require of itself only as a dependency.
//! The interface is [`main`], and the entry points for fuzz targets with the feature `fuzzing`.

mod args;
mod demo;
mod diagnosis;
mod error;
mod features;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod get;
mod handshake;
mod interop;
mod load;
mod machine;
mod output;
mod perf;
mod process;
mod proxy;
mod serve;
mod sim;
mod transfer;
mod tunnel;
mod values;
mod webtransport;

use std::process::ExitCode;

use args::{Arguments, Command, PerfCommand};
use error::Failure;
use handshake::Tool;

/// Returns the definition of the command line, for manual pages and completions.
#[doc(hidden)]
pub fn command() -> clap::Command {
    // `load` parses its flags only once their style is known.
    let load = load::args::command(load::args::Style::H2load).name("load");
    <Arguments as clap::CommandFactory>::command().mut_subcommand("load", |_| load)
}

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    let arguments = match args::parse() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let is_silent = matches!(&arguments.command, Some(Command::Get(get)) if get.output.silent);
    let code = run(arguments).unwrap_or_else(|failure| {
        eprintln!("courser: {failure}");
        ExitCode::FAILURE
    });
    let missing = process::RECORDS.finish();
    if !is_silent {
        missing.iter().for_each(output::note);
    }
    code
}

fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let tool = match &arguments.command {
        Some(Command::Load(_)) => Tool::Load,
        _ => Tool::Perf,
    };
    let done = match arguments.command {
        None => demo::run(),
        Some(Command::Serve(arguments)) => serve::main(&arguments),
        Some(Command::Proxy(arguments)) => proxy::main(&arguments),
        // `get` has the exit codes of curl.
        Some(Command::Get(arguments)) => return Ok(get::main(&arguments)),
        // `webtransport` has them too.
        Some(Command::Webtransport(arguments)) => return webtransport::main(&arguments),
        Some(Command::Tunnel(arguments)) => return tunnel::main(&arguments),
        Some(Command::Perf(PerfCommand::Server(arguments))) => perf::server_main(&arguments),
        // An interrupted measurement has its own exit code.
        Some(Command::Load(arguments)) => {
            return load::main(&arguments).map_err(|failure| error::explain(failure, tool));
        }
        Some(Command::Perf(PerfCommand::Compare(arguments))) => {
            return perf::compare_main(&arguments).map_err(|failure| error::explain(failure, tool));
        }
        Some(Command::Perf(PerfCommand::Client(arguments))) => {
            return perf::client_main(&arguments).map_err(|failure| error::explain(failure, tool));
        }
        // `interop` has the exit codes of the interop runner.
        Some(Command::Interop { command }) => return interop::main(command),
        Some(Command::Sim(command)) => sim::main(&command),
        Some(Command::Qlog(command)) => courser_trace::run(&command, &mut output::Terminal)
            .map_err(|error| Failure::new(error.to_string())),
        Some(Command::Doctor(arguments)) => return diagnosis::doctor(&arguments),
        Some(Command::Probe(arguments)) => return diagnosis::probe(&arguments),
    };
    done.map(|()| ExitCode::SUCCESS)
        .map_err(|failure| error::explain(failure, tool))
}
