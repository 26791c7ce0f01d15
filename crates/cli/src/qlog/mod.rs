//! Traces: `courser qlog summary` and `courser qlog plot`.

pub(crate) mod args;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use courser_qlog::{Reader, Series, Summary};
use courser_report::trace::{self, TraceView, rate_width};
use serde::Serialize;

use self::args::{PlotArguments, SummaryArguments};
use crate::error::Failure;
use crate::output;

/// One file in `--json`.
#[derive(Serialize)]
struct FileSummary<'a> {
    file: String,
    format: &'a str,
    loss_share: Option<f64>,
    repeated_share: Option<f64>,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// `courser qlog summary`. Goes on to the next file when one cannot be read.
pub(crate) fn summary(arguments: &SummaryArguments) -> Result<(), Failure> {
    let mut failed = Vec::new();
    for (index, file) in arguments.files.iter().enumerate() {
        let reader = match open(file) {
            Ok(reader) => reader,
            Err(failure) => {
                failed.push(failure);
                continue;
            }
        };
        let about = reader.about().clone();
        let summary = Summary::of(reader);
        if arguments.json {
            let line = FileSummary {
                file: file.display().to_string(),
                format: about.format,
                loss_share: summary.loss_share(),
                repeated_share: summary.repeated_share(),
                summary: &summary,
            };
            output::line(to_json(&line)?);
            continue;
        }
        if index > 0 {
            output::line("");
        }
        output::line(format!("{} ({})", file.display(), trace::origin(&about)));
        for (name, value) in trace::rows(&summary) {
            output::line(format!("  {name:<14} {value}"));
        }
        warn(file, &summary, about.other_traces);
    }
    match failed.len() {
        0 => Ok(()),
        _ => Err(Failure::new(
            failed
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; "),
        )),
    }
}

/// `courser qlog plot`.
pub(crate) fn plot(arguments: &PlotArguments) -> Result<(), Failure> {
    let file = &arguments.file;
    // The width of a rate depends on how long the trace is, which its end tells.
    let first = Summary::of(open(file)?);
    if first.events == 0 {
        let unreadable = first.unreadable.first();
        let why = unreadable.map_or_else(String::new, |line| format!(": {line}"));
        let name = file.display();
        return Err(Failure::new(format!("{name} has no events to draw{why}")));
    }
    let width = rate_width(first.duration);
    let reader = open(file)?;
    let about = reader.about().clone();
    let (series, summary) = Series::of(reader, width);
    let view = TraceView {
        name: file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        about: &about,
        series: &series,
        summary: &summary,
        rate_width: width,
    };
    let is_page = arguments.output.extension().is_some_and(|it| it == "html");
    let drawn = if is_page {
        view.page(arguments.what.chart())
    } else {
        view.image(arguments.what.chart())
    };
    fs::write(&arguments.output, drawn).map_err(|error| {
        let output = arguments.output.display();
        Failure::new(format!("cannot write {output}: {error}"))
    })?;
    warn(file, &summary, about.other_traces);
    output::note(format!("wrote {}", arguments.output.display()));
    Ok(())
}

/// Everything that is made of a trace, which is in memory. For the fuzz targets.
///
/// # Errors
/// When it is no trace.
pub(crate) fn render(bytes: &[u8]) -> Result<String, Failure> {
    let open = || Reader::new(bytes).map_err(|error| Failure::new(error.to_string()));
    let first = Summary::of(open()?);
    let mut text = to_json(&first)?;
    for (name, value) in trace::rows(&first) {
        text.push_str(name);
        text.push_str(&value);
    }
    let width = rate_width(first.duration);
    let reader = open()?;
    let about = reader.about().clone();
    text.push_str(&trace::origin(&about));
    let (series, summary) = Series::of(reader, width);
    let view = TraceView {
        name: "trace".to_owned(),
        about: &about,
        series: &series,
        summary: &summary,
        rate_width: width,
    };
    text.push_str(&view.page(None));
    Ok(text)
}

fn open(path: &Path) -> Result<Reader<BufReader<File>>, Failure> {
    let name = path.display();
    let file =
        File::open(path).map_err(|error| Failure::new(format!("cannot read {name}: {error}")))?;
    Reader::new(BufReader::with_capacity(READ_BUFFER, file))
        .map_err(|error| Failure::new(format!("{name}: {error}")))
}

fn warn(file: &Path, summary: &Summary, other_traces: usize) {
    let name = file.display();
    if summary.unreadable_lines > 0 {
        let (count, first) = (summary.unreadable_lines, summary.unreadable.first());
        let first = first.map_or("", String::as_str);
        output::note(format!(
            "{name}: skipped {count} unreadable lines, the first: {first}"
        ));
    }
    if summary.records_dropped > 0 {
        let count = summary.records_dropped;
        output::note(format!(
            "{name}: {count} records are missing because its writer was too slow: counts are too low"
        ));
    }
    if other_traces > 0 {
        output::note(format!(
            "{name}: ignored {other_traces} further traces in the file"
        ));
    }
}

fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::new(error.to_string()))
}

const READ_BUFFER: usize = 256 * 1024;
