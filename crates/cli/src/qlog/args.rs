//! The command line of `courser qlog`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Subcommand, Debug)]
pub(crate) enum QlogCommand {
    /// Tells what happened on connections, from their traces.
    Summary(SummaryArguments),
    /// Draws a trace as an image, or as a page with all there is.
    Plot(PlotArguments),
}

#[derive(Args, Debug)]
pub(crate) struct SummaryArguments {
    /// Traces, of this stack or another: .sqlog (JSON-SEQ) or .qlog (JSON).
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Writes JSON to standard output, an object for each file and line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct PlotArguments {
    /// A trace, of this stack or another: .sqlog (JSON-SEQ) or .qlog (JSON).
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// What is written: an image if it ends in .svg, a page if it ends in .html.
    #[arg(long, short, value_name = "FILE", value_parser = parse_output)]
    pub(crate) output: PathBuf,

    /// What is drawn.
    #[arg(long, value_name = "NAME", default_value = "all")]
    pub(crate) what: ChartName,
}

/// What is drawn.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChartName {
    /// Packets sent, acknowledged and lost.
    TimeSequence,
    /// Congestion window and bytes in flight.
    Cwnd,
    /// Round-trip times.
    Rtt,
    /// Rates of sending and receiving.
    Throughput,
    /// All of them.
    All,
}

fn parse_output(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension {
        Some("svg" | "html") => Ok(path),
        _ => Err(format!("'{text}' ends neither in .svg nor in .html")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_an_image_or_a_page() {
        assert!(parse_output("a/b.svg").is_ok() && parse_output("b.html").is_ok());
        let error = parse_output("b.png").expect_err("no such writer");
        assert_eq!(error, "'b.png' ends neither in .svg nor in .html");
    }
}
