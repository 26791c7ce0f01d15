//! The command line of `courser qlog`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use courser_units::parse_duration;

use crate::TraceChart;
use crate::convert::Form;

/// The subcommands of `courser qlog`.
#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub enum QlogCommand {
    /// Explain in sentences what limited a transfer, for how long, and what to do about it
    Explain(ExplainArguments),
    /// Summarize connections: packets, losses, round-trip times, errors
    Summary(SummaryArguments),
    /// Count events, packets, frames, sizes, ECN marks, losses and round-trip times
    Stats(StatsArguments),
    /// Write a self-contained HTML page that explains and plots a connection
    Html(HtmlArguments),
    /// Compare two traces: figures, causes, and the point at which they diverge
    Diff(DiffArguments),
    /// Merge the traces of both ends of a connection into one, and align their clocks
    Merge(MergeArguments),
    /// Follow a trace while it is written, with a line for each second
    Tail(TailArguments),
    /// Convert a trace to the current names, as a sequence (.sqlog) or as JSON (.qlog)
    Convert(ConvertArguments),
    /// Plot a connection as an SVG image or an HTML page
    Plot(PlotArguments),
}

const EXAMPLES: &str = "\
Examples:
  courser get --qlog traces --http3-only https://example.org/
      Transfer a URL and write a trace
  courser qlog explain traces/*.sqlog
      Print what limited each connection
  courser qlog plot traces/NAME.sqlog -o trace.html
      Draw charts";

/// The flags of `courser qlog explain`.
#[derive(Args, Debug)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub struct ExplainArguments {
    /// Traces of any QUIC implementation: .sqlog (JSON-SEQ) or .qlog (JSON), compressed or not
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Print JSON, one object per file and line
    #[arg(long)]
    pub(crate) json: bool,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  courser get -so /dev/null --qlog traces --http3-only https://example.org/big
  courser qlog explain traces/*.sqlog
      Print what limited a download
  courser qlog explain --json trace.qlog
      Print causes, shares of the time and lines of the trace as JSON

The trace of the end that sends shows more than that of the end that receives: its congestion
window, its losses and its round-trip times.";

/// The flags of `courser qlog summary`.
#[derive(Args, Debug)]
#[command(after_help = SUMMARY_EXAMPLES)]
pub struct SummaryArguments {
    /// Traces of any QUIC implementation: .sqlog (JSON-SEQ) or .qlog (JSON), compressed or not
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Print JSON, one object per file and line
    #[arg(long)]
    pub(crate) json: bool,
}

const SUMMARY_EXAMPLES: &str = "\
Examples:
  courser qlog summary traces/*.sqlog
      Print a summary of every connection
  courser qlog summary --json trace.qlog
      Print it as JSON";

/// The flags of `courser qlog stats`.
#[derive(Args, Debug)]
#[command(after_help = STATS_EXAMPLES)]
pub struct StatsArguments {
    /// Traces of any QUIC implementation: .sqlog (JSON-SEQ) or .qlog (JSON), compressed or not
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Print JSON, one object per file and line
    #[arg(long)]
    pub(crate) json: bool,
}

const STATS_EXAMPLES: &str = "\
Examples:
  courser qlog stats trace.sqlog.gz
      Print counts and percentiles
  courser qlog stats --json trace.sqlog
      Print them as JSON";

/// The flags of `courser qlog html`.
#[derive(Args, Debug)]
#[command(after_help = HTML_EXAMPLES)]
pub struct HtmlArguments {
    /// Trace of any QUIC implementation: .sqlog (JSON-SEQ) or .qlog (JSON), compressed or not
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// HTML file to write
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

const HTML_EXAMPLES: &str = "\
Examples:
  courser qlog html trace.sqlog -o trace.html
      Write the explanation, the charts and the figures of a connection";

/// The flags of `courser qlog diff`.
#[derive(Args, Debug)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct DiffArguments {
    /// First trace, of any QUIC implementation, compressed or not
    #[arg(value_name = "A")]
    pub(crate) first: PathBuf,

    /// Second trace, of any QUIC implementation, compressed or not
    #[arg(value_name = "B")]
    pub(crate) second: PathBuf,

    /// Print the comparison as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const DIFF_EXAMPLES: &str = "\
Examples:
  courser qlog diff fast.sqlog slow.sqlog
      Print what differs between two transfers of the same data";

/// The flags of `courser qlog merge`.
#[derive(Args, Debug)]
#[command(after_help = MERGE_EXAMPLES)]
pub struct MergeArguments {
    /// Trace of one end, compressed or not
    #[arg(value_name = "FILE")]
    pub(crate) first: PathBuf,

    /// Trace of the other end
    #[arg(value_name = "FILE")]
    pub(crate) second: PathBuf,

    /// Output file: .sqlog for a sequence, .qlog for JSON
    #[arg(long, short, value_name = "FILE", value_parser = parse_trace)]
    pub(crate) output: PathBuf,
}

const MERGE_EXAMPLES: &str = "\
Examples:
  courser qlog merge ID_client.sqlog ID_server.sqlog -o both.sqlog
      Write the events of both ends in chronological order";

/// The flags of `courser qlog tail`.
#[derive(Args, Debug)]
#[command(after_help = TAIL_EXAMPLES)]
pub struct TailArguments {
    /// Trace (.sqlog), or a directory, whose newest trace is followed
    #[arg(
        value_name = "PATH",
        required_unless_present = "admin",
        conflicts_with = "admin"
    )]
    pub(crate) path: Option<PathBuf>,

    /// Follow a connection of a running server instead, at its --admin address: http://127.0.0.1:9443
    #[arg(long, value_name = "URL", requires = "token_file")]
    pub(crate) admin: Option<String>,

    /// File with the token of the admin endpoints
    #[arg(long, value_name = "FILE", requires = "admin")]
    pub(crate) token_file: Option<PathBuf>,

    /// Number of the connection, as the admin page shows it; by default the newest HTTP/3 connection
    #[arg(long, value_name = "ID", requires = "admin")]
    pub(crate) connection: Option<u64>,

    /// Also write the records of the connection to this file (.sqlog)
    #[arg(long, short, value_name = "FILE", requires = "admin")]
    pub(crate) output: Option<PathBuf>,

    /// Print a line at this interval
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = parse_duration)]
    pub(crate) interval: Duration,

    /// Stop when no records arrive for this long
    #[arg(long, short, value_name = "SECONDS", default_value = "30", value_parser = parse_duration)]
    pub(crate) wait: Duration,
}

const TAIL_EXAMPLES: &str = "\
Examples:
  courser serve --qlog traces
  courser qlog tail traces
      Follow the newest connection of a running server until it closes

  courser serve --admin 127.0.0.1:9443 --admin-token-file token
  courser qlog tail --admin http://127.0.0.1:9443 --token-file token -o now.sqlog
      Record the newest connection of a running server, starting now

courser writes traces in blocks of 32 KiB, about two hundred packets each.";

/// The flags of `courser qlog convert`.
#[derive(Args, Debug)]
#[command(after_help = CONVERT_EXAMPLES)]
pub struct ConvertArguments {
    /// Trace of any QUIC implementation: .sqlog (JSON-SEQ) or .qlog (JSON), compressed or not
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Output file: .sqlog for a sequence, .qlog for JSON
    #[arg(long, short, value_name = "FILE", value_parser = parse_trace)]
    pub(crate) output: PathBuf,
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  courser qlog convert old.qlog -o new.sqlog
      Write a sequence, with the names of quic-events-13
  courser qlog convert trace.sqlog.gz -o trace.qlog
      Write one JSON object, for tools that read no sequences";

/// The flags of `courser qlog plot`.
#[derive(Args, Debug)]
#[command(after_help = PLOT_EXAMPLES)]
pub struct PlotArguments {
    /// Trace of any QUIC implementation: .sqlog (JSON-SEQ) or .qlog (JSON), compressed or not
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Output file: .svg for an image, .html for a page
    #[arg(long, short, value_name = "FILE", value_parser = parse_output)]
    pub(crate) output: PathBuf,

    /// Chart to draw
    #[arg(long, value_name = "NAME", default_value = "all")]
    pub(crate) what: ChartName,
}

const PLOT_EXAMPLES: &str = "\
Examples:
  courser qlog plot trace.sqlog -o trace.html
      Draw all charts of a connection on one page
  courser qlog plot trace.sqlog -o cwnd.svg --what cwnd
      Draw one chart";

/// A chart of `courser qlog plot`.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChartName {
    /// Packets sent, acknowledged and lost
    TimeSequence,
    /// Congestion window and bytes in flight
    Cwnd,
    /// Round-trip times
    Rtt,
    /// Send and receive rates
    Throughput,
    /// All charts
    All,
}

impl ChartName {
    /// Returns the chart to draw, or `None` for all charts.
    pub(crate) fn chart(self) -> Option<TraceChart> {
        match self {
            Self::TimeSequence => Some(TraceChart::Packets),
            Self::Cwnd => Some(TraceChart::Window),
            Self::Rtt => Some(TraceChart::Rtt),
            Self::Throughput => Some(TraceChart::Throughput),
            Self::All => None,
        }
    }
}

fn parse_trace(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension.and_then(Form::of_extension) {
        Some(_) => Ok(path),
        None => Err(format!("'{text}' ends neither in .sqlog nor in .qlog")),
    }
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
    fn output_is_an_svg_image_or_an_html_page() {
        assert!(parse_output("a/b.svg").is_ok() && parse_output("b.html").is_ok());
        let error = parse_output("b.png").expect_err("no such writer");
        assert_eq!(error, "'b.png' ends neither in .svg nor in .html");
    }
}
