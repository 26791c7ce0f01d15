//! `courser sim figures`: runs scenarios and writes a Markdown document of the measured values.
//!
//! A [`List`](list::List) names the rows of the document: a target, its scenarios, and the measures to show.
//! [`measure`] runs the scenarios of a row and writes their numbers to a file, so that rows can be
//! measured one by one. [`charts`] draws the charts, and [`document`] writes the text.

mod args;
mod charts;
pub(crate) mod data;
mod document;
pub(crate) mod list;
mod measure;

use std::path::Path;

pub(crate) use self::args::FiguresArguments;
use crate::error::Failure;
use crate::output;

pub(crate) fn main(arguments: &FiguresArguments) -> Result<(), Failure> {
    let list = list::read(&arguments.list)?;
    for row in list.select(&arguments.measure)? {
        measure::row(arguments, &list, row)?;
    }
    if arguments.charts {
        charts::draw(&list)?;
    }
    let Some(path) = &arguments.output else {
        return Ok(());
    };
    document::write(&list, path, &command(arguments))?;
    output::note(format!("wrote {}", path.display()));
    Ok(())
}

/// Returns the command that reproduces the whole document.
fn command(arguments: &FiguresArguments) -> String {
    let path = |path: &Path| path.display().to_string();
    let output = arguments.output.as_deref().map(path).unwrap_or_default();
    let list = path(&arguments.list);
    format!("courser sim figures {list} --measure all --charts --output {output}")
}
