//! Traces: `courser qlog summary` and `courser qlog plot`.

pub(crate) mod args;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use courser_qlog::{About, Reader, Summary};
use courser_report::trace::{self, Trace};

use self::args::{PlotArguments, SummaryArguments};
use crate::error::Failure;
use crate::output;

/// Runs `courser qlog summary`. Files that cannot be read are reported after the others.
pub(crate) fn summary(arguments: &SummaryArguments) -> Result<(), Failure> {
    let mut failed = Vec::new();
    for (index, file) in arguments.files.iter().enumerate() {
        let reader = match open(file) {
            Ok(reader) => reader,
            Err(failure) => {
                failed.push(failure.to_string());
                continue;
            }
        };
        let about = reader.about().clone();
        let summary = Summary::of(reader);
        if arguments.json {
            output::line(trace::document(file, &about, &summary).map_err(not_json)?);
            continue;
        }
        if index > 0 {
            output::line("");
        }
        output::line(format!("{} ({})", file.display(), trace::origin(&about)));
        for (name, value) in trace::rows(&summary) {
            output::line(format!("  {name:<14} {value}"));
        }
        warn(file, &about, &summary);
    }
    match failed.len() {
        0 => Ok(()),
        _ => Err(Failure::new(failed.join("; "))),
    }
}

/// Runs `courser qlog plot`.
pub(crate) fn plot(arguments: &PlotArguments) -> Result<(), Failure> {
    let file = &arguments.file;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let trace = Trace::read(name.into_owned(), || open(file))?;
    if trace.summary.events == 0 {
        let unreadable = trace.summary.unreadable.first();
        let why = unreadable.map_or_else(String::new, |line| format!(": {line}"));
        let name = file.display();
        return Err(Failure::new(format!("{name} has no events to draw{why}")));
    }
    let is_page = arguments.output.extension().is_some_and(|it| it == "html");
    let drawn = if is_page {
        trace.page(arguments.what.chart())
    } else {
        trace.image(arguments.what.chart())
    };
    fs::write(&arguments.output, drawn).map_err(|error| {
        let output = arguments.output.display();
        Failure::new(format!("cannot write {output}: {error}"))
    })?;
    warn(file, &trace.about, &trace.summary);
    output::note(format!("wrote {}", arguments.output.display()));
    Ok(())
}

/// Returns the texts and the page of a trace in memory. For the fuzz targets.
///
/// # Errors
/// When the bytes are not a trace.
pub(crate) fn render(bytes: &[u8]) -> Result<String, Failure> {
    let open = || Reader::new(bytes).map_err(|error| Failure::new(error.to_string()));
    let trace = Trace::read("trace".to_owned(), open)?;
    let (about, summary) = (&trace.about, &trace.summary);
    let mut text = trace::document(Path::new("trace"), about, summary).map_err(not_json)?;
    for (name, value) in trace::rows(summary) {
        text.push_str(name);
        text.push_str(&value);
    }
    text.push_str(&trace::origin(about));
    text.push_str(&trace.page(None));
    Ok(text)
}

fn open(path: &Path) -> Result<Reader<BufReader<File>>, Failure> {
    let name = path.display();
    let file =
        File::open(path).map_err(|error| Failure::new(format!("cannot read {name}: {error}")))?;
    Reader::new(BufReader::with_capacity(READ_BUFFER, file))
        .map_err(|error| Failure::new(format!("{name}: {error}")))
}

fn warn(file: &Path, about: &About, summary: &Summary) {
    for warning in trace::warnings(about, summary) {
        output::note(format!("{}: {warning}", file.display()));
    }
}

fn not_json(error: serde_json::Error) -> Failure {
    Failure::new(error.to_string())
}

const READ_BUFFER: usize = 256 * 1024;
