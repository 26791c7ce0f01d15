//! Runs `courser qlog`.

use std::path::{Path, PathBuf};

use crate::args::{
    ConvertArguments, DiffArguments, ExplainArguments, HtmlArguments, MergeArguments,
    PlotArguments, QlogCommand, StatsArguments, SummaryArguments, TailArguments,
};
use crate::charts::Trace;
use crate::compare::{ComparedTrace, Comparison};
use crate::convert::{Form, convert};
use crate::explain::{Explainer, Explanation, sentences};
use crate::merge::{Alignment, merge};
use crate::qlog::{About, Reader, Summary};
use crate::stats::Stats;
use crate::tail::{follow as follow_reader, tail, timeout};
use crate::{Error, document, file, remote, text};

/// The output of a command: lines of the result, and remarks.
pub trait Console {
    /// Writes a line of the result.
    fn line(&mut self, text: &str);
    /// Writes a remark about a written file, or about a gap in the result.
    fn note(&mut self, text: &str);
}

/// Runs a subcommand.
///
/// # Errors
/// Returns the reason in one line if a trace cannot be read or a result cannot be written. The
/// results of other traces have been written.
pub fn run(command: &QlogCommand, console: &mut dyn Console) -> Result<(), Error> {
    match command {
        QlogCommand::Explain(arguments) => explain(arguments, console),
        QlogCommand::Summary(arguments) => summary(arguments, console),
        QlogCommand::Stats(arguments) => stats(arguments, console),
        QlogCommand::Html(arguments) => html(arguments, console),
        QlogCommand::Diff(arguments) => diff(arguments, console),
        QlogCommand::Merge(arguments) => merged(arguments, console),
        QlogCommand::Tail(arguments) => follow(arguments, console),
        QlogCommand::Convert(arguments) => converted(arguments, console),
        QlogCommand::Plot(arguments) => plot(arguments, console),
    }
}

/// Runs `courser qlog explain`. Files that cannot be read are reported after the others.
fn explain(arguments: &ExplainArguments, console: &mut dyn Console) -> Result<(), Error> {
    for_each(&arguments.files, |index, path| {
        let mut reader = file::open(path)?;
        refuse_network(path, reader.about())?;
        let mut explainer = Explainer::new(reader.about());
        for line in reader.by_ref() {
            explainer.on_line(line.as_ref());
        }
        let about = reader.about().clone();
        let explanation = explainer.finish(&about);
        if arguments.json {
            console.line(&document::explanation(path, &explanation)?);
            return Ok(());
        }
        if index > 0 {
            console.line("");
        }
        console.line(&format!("{} ({})", path.display(), text::origin(&about)));
        for line in sentences(&explanation) {
            console.line(format!("  {line}").trim_end());
        }
        if let Some(first) = &explanation.unreadable {
            let count = explanation.unreadable_lines;
            let path = path.display();
            console.note(&format!(
                "{path}: skipped {count} unreadable lines, the first: {first}"
            ));
        }
        note_ignored(path, &about, console);
        Ok(())
    })
}

/// Refuses the output of `merge`, because packets of both ends cannot be explained as those of one.
fn refuse_network(path: &Path, about: &About) -> Result<(), Error> {
    match about.vantage_point.as_deref() {
        Some("network") => Err(Error::new(format!(
            "{} has the events of both ends: pass the trace of one end",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Processes files. Those that fail are reported after the others.
fn for_each(
    files: &[PathBuf],
    mut each: impl FnMut(usize, &Path) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut failed = Vec::new();
    for (index, path) in files.iter().enumerate() {
        if let Err(error) = each(index, path) {
            failed.push(error.to_string());
        }
    }
    match failed.len() {
        0 => Ok(()),
        _ => Err(Error::new(failed.join("; "))),
    }
}

/// Runs `courser qlog summary`. Files that cannot be read are reported after the others.
fn summary(arguments: &SummaryArguments, console: &mut dyn Console) -> Result<(), Error> {
    for_each(&arguments.files, |index, path| {
        let mut reader = file::open(path)?;
        let summary = Summary::of(&mut reader);
        let about = reader.about().clone();
        if arguments.json {
            console.line(&document::document(path, &about, &summary)?);
            return Ok(());
        }
        if index > 0 {
            console.line("");
        }
        console.line(&format!("{} ({})", path.display(), text::origin(&about)));
        for (name, value) in text::rows(&summary) {
            console.line(&format!("  {name:<14} {value}"));
        }
        warn(path, &about, &summary, console);
        Ok(())
    })
}

/// Runs `courser qlog stats`. Files that cannot be read are reported after the others.
fn stats(arguments: &StatsArguments, console: &mut dyn Console) -> Result<(), Error> {
    for_each(&arguments.files, |index, path| {
        let mut reader = file::open(path)?;
        let stats = Stats::of(&mut reader);
        if arguments.json {
            console.line(&document::stats(path, &stats)?);
            return Ok(());
        }
        if index > 0 {
            console.line("");
        }
        console.line(&format!(
            "{} ({})",
            path.display(),
            text::origin(reader.about())
        ));
        for (name, value) in stats.rows() {
            console.line(&format!("  {name:<18} {value}"));
        }
        if stats.unreadable_lines > 0 {
            let (path, count) = (path.display(), stats.unreadable_lines);
            console.note(&format!("{path}: skipped {count} unreadable lines"));
        }
        note_ignored(path, reader.about(), console);
        Ok(())
    })
}

/// Runs `courser qlog html`.
fn html(arguments: &HtmlArguments, console: &mut dyn Console) -> Result<(), Error> {
    let path = &arguments.file;
    let trace = read(path)?;
    refuse_network(path, &trace.about)?;
    let explanation = Explanation::of(file::open(path)?);
    file::write(&arguments.output, &trace.report(&explanation), path)?;
    warn(path, &trace.about, &trace.summary, console);
    console.note(&format!("wrote {}", arguments.output.display()));
    Ok(())
}

/// Runs `courser qlog diff`.
fn diff(arguments: &DiffArguments, console: &mut dyn Console) -> Result<(), Error> {
    let mut sides = Vec::new();
    for path in [&arguments.first, &arguments.second] {
        let mut reader = file::open(path)?;
        refuse_network(path, reader.about())?;
        let side = ComparedTrace::of(&mut reader);
        warn(path, reader.about(), &side.summary, console);
        sides.push((path, text::origin(reader.about()), side));
    }
    let comparison = Comparison::of(&sides[0].2, &sides[1].2);
    if arguments.json {
        console.line(&serde_json::to_string(&comparison)?);
        return Ok(());
    }
    for ((path, origin, _), letter) in sides.iter().zip(["A", "B"]) {
        console.line(&format!("{letter}: {} ({origin})", path.display()));
    }
    console.line("");
    for line in comparison.lines() {
        console.line(line.trim_end());
    }
    Ok(())
}

/// Runs `courser qlog merge`.
fn merged(arguments: &MergeArguments, console: &mut dyn Console) -> Result<(), Error> {
    let (first, second) = (&arguments.first, &arguments.second);
    let alignment = Alignment::of(&mut file::open(first)?, &mut file::open(second)?)?;
    let output = file::create(&arguments.output, &[first.as_path(), second.as_path()])?;
    let (mut one, mut other) = (file::open(first)?, file::open(second)?);
    let form = form_of(&arguments.output);
    let (events, unreadable) = merge(&mut one, &mut other, &alignment, output, form)?;
    if unreadable > 0 {
        console.note(&format!("skipped {unreadable} unreadable lines"));
    }
    note_ignored(first, one.about(), console);
    note_ignored(second, other.about(), console);
    for (from, to, (lost, all)) in [
        (&one, &other, alignment.lost_forward),
        (&other, &one, alignment.lost_back),
    ] {
        let name = |end: &file::TraceFile| {
            let point = end.about().vantage_point.as_deref();
            text::clean(point.unwrap_or("other end"))
        };
        console.line(&format!(
            "{lost} of {all} packets from the {} did not reach the {}",
            name(from),
            name(to)
        ));
    }
    console.line(&format!(
        "shortest round trip {}, half of which is assumed in each direction",
        courser_units::seconds(alignment.round_trip)
    ));
    let path = arguments.output.display();
    console.note(&format!("wrote {events} events to {path}"));
    Ok(())
}

/// Runs `courser qlog tail`.
fn follow(arguments: &TailArguments, console: &mut dyn Console) -> Result<(), Error> {
    if arguments.interval.is_zero() {
        return Err(Error::new("the interval is 0 s: choose a longer one"));
    }
    let (interval, wait) = (arguments.interval, arguments.wait);
    let lines = |line: &str| console.line(line);
    let (path, events) = match (&arguments.admin, &arguments.path) {
        (Some(url), _) => {
            let mut content = remote::open(&remote::Request {
                url,
                connection: arguments.connection,
                token_file: arguments.token_file.as_deref(),
                output: arguments.output.as_deref(),
                wait,
            })?;
            let events = follow_reader(url, &mut content, interval, lines);
            // Printed before an error is returned: it also explains why a trace is empty.
            if let Some(end) = content.end() {
                console.note(&end.text(wait));
            }
            let events = events?;
            let Some(output) = &arguments.output else {
                console.note(&format!("read {events} events"));
                return Ok(());
            };
            (output.clone(), events)
        }
        (None, Some(path)) => {
            let followed = tail(path, interval, wait, lines)?;
            if !followed.is_closed {
                console.note(&timeout(wait));
            }
            (followed.path, followed.events)
        }
        (None, None) => return Err(Error::new("pass a trace, a directory or --admin URL")),
    };
    let path = path.display();
    console.note(&format!(
        "read {events} events; run courser qlog explain {path} to see what limited the transfer"
    ));
    Ok(())
}

/// Runs `courser qlog convert`.
fn converted(arguments: &ConvertArguments, console: &mut dyn Console) -> Result<(), Error> {
    let mut reader = file::open(&arguments.file)?;
    let output = file::create(&arguments.output, &[arguments.file.as_path()])?;
    let done = convert(&mut reader, output, form_of(&arguments.output))?;
    if done.unreadable > 0 {
        let (path, count) = (arguments.file.display(), done.unreadable);
        console.note(&format!("{path}: skipped {count} unreadable lines"));
    }
    note_ignored(&arguments.file, reader.about(), console);
    let path = arguments.output.display();
    console.note(&format!("wrote {} events to {path}", done.events));
    Ok(())
}

fn form_of(path: &Path) -> Form {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let form = extension.and_then(Form::of_extension);
    form.unwrap_or(Form::Sequence)
}

/// Reads a trace for charts. Returns an error if it has no events.
fn read(path: &Path) -> Result<Trace, Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let trace = Trace::read(name.into_owned(), || file::open(path))?;
    if trace.summary.events == 0 {
        let unreadable = trace.summary.unreadable.first();
        let why = unreadable.map_or_else(String::new, |line| format!(": {line}"));
        let name = path.display();
        return Err(Error::new(format!("{name} has no events to draw{why}")));
    }
    Ok(trace)
}

/// Runs `courser qlog plot`.
fn plot(arguments: &PlotArguments, console: &mut dyn Console) -> Result<(), Error> {
    let path = &arguments.file;
    let trace = read(path)?;
    let is_page = arguments.output.extension().is_some_and(|it| it == "html");
    let drawn = if is_page {
        trace.page(arguments.what.chart())
    } else {
        trace.image(arguments.what.chart())
    };
    file::write(&arguments.output, &drawn, path)?;
    warn(path, &trace.about, &trace.summary, console);
    console.note(&format!("wrote {}", arguments.output.display()));
    Ok(())
}

/// Returns all reports about a trace in memory. For the fuzz targets.
///
/// # Errors
/// Fails if the bytes are not a trace.
pub fn render(bytes: &[u8]) -> Result<String, Error> {
    let open = || Reader::new(bytes).map_err(|error| Error::new(error.to_string()));
    let trace = Trace::read("trace".to_owned(), open)?;
    let (about, summary) = (&trace.about, &trace.summary);
    let mut text = document::document(Path::new("trace"), about, summary)?;
    for (name, value) in text::rows(summary) {
        text.push_str(name);
        text.push_str(&value);
    }
    text.push_str(&text::origin(about));
    text.push_str(&trace.page(None));
    let explanation = Explanation::of(open()?);
    text.push_str(&document::explanation(Path::new("trace"), &explanation)?);
    text.push_str(&trace.report(&explanation));
    text.push_str(&document::stats(
        Path::new("trace"),
        &Stats::of(&mut open()?),
    )?);
    let side = ComparedTrace::of(&mut open()?);
    text.push_str(&Comparison::of(&side, &side).lines().join("\n"));
    let mut converted = Vec::new();
    convert(&mut open()?, &mut converted, Form::Plain)?;
    // The reader must accept the output of the conversion.
    let again = Reader::new(&converted[..]).map_err(|error| Error::new(error.to_string()))?;
    text.push_str(&again.count().to_string());
    Ok(text)
}

/// Writes a remark if a file has traces other than the one that was read.
fn note_ignored(path: &Path, about: &About, console: &mut dyn Console) {
    if let Some(warning) = text::ignored(about) {
        console.note(&format!("{}: {warning}", path.display()));
    }
}

fn warn(path: &Path, about: &About, summary: &Summary, console: &mut dyn Console) {
    for warning in text::warnings(about, summary) {
        console.note(&format!("{}: {warning}", path.display()));
    }
}
