//! `courser sim figures`: a document of what scenarios measured, and the measuring itself.

mod charts;
pub(crate) mod data;
mod document;
pub(crate) mod list;
mod measure;

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::Failure;
use crate::output;

use self::data::Data;
use self::list::{List, Row};

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FiguresArguments {
    /// TOML file that lists the rows of the document: titles, targets, scenario files
    #[arg(value_name = "LIST")]
    list: PathBuf,

    /// Measure this row first, or all; repeatable
    #[arg(long, value_name = "ROW")]
    measure: Vec<String>,

    /// Runs of each scenario [default: as in the list]
    #[arg(long, value_name = "N", requires = "measure",
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    runs: Option<u64>,

    /// Measure only scenarios whose names contain this text
    #[arg(long, value_name = "TEXT", requires = "measure")]
    only: Option<String>,

    /// Number of parallel runs [default: one per core]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Draw the charts of the document again
    #[arg(long)]
    charts: bool,

    /// Write the document to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  courser sim figures docs/congestion.toml -o docs/CONGESTION.md
      Write the document from earlier measurements
  courser sim figures docs/congestion.toml --measure all --charts -o docs/CONGESTION.md
      Measure everything again";

pub(crate) fn main(arguments: &FiguresArguments) -> Result<(), Failure> {
    let list = list::read(&arguments.list)?;
    for row in wanted(arguments, &list)? {
        measure::row(arguments, &list, row)?;
    }
    if arguments.charts {
        charts::draw(&list)?;
    }
    let Some(path) = &arguments.output else {
        return Ok(());
    };
    let mut parts = Vec::new();
    for row in &list.rows {
        parts.push((row, Data::read(&list.data_of(row))?));
    }
    let text = document::document(&list, &parts, &command(arguments))?;
    write(path, &text)?;
    output::note(format!("wrote {}", path.display()));
    Ok(())
}

/// The rows that are to be measured.
fn wanted<'a>(arguments: &FiguresArguments, list: &'a List) -> Result<Vec<&'a Row>, Failure> {
    let names: Vec<&str> = list.rows.iter().map(|row| row.name.as_str()).collect();
    for name in &arguments.measure {
        if name != "all" && !names.contains(&name.as_str()) {
            return Err(Failure::new(format!(
                "{} has no row '{name}', known are all, {}",
                arguments.list.display(),
                names.join(", ")
            )));
        }
    }
    let is_wanted = |row: &&Row| {
        let mut given = arguments.measure.iter();
        given.any(|name| name == "all" || *name == row.name)
    };
    Ok(list.rows.iter().filter(is_wanted).collect())
}

/// The command that measures everything again.
fn command(arguments: &FiguresArguments) -> String {
    let path = |path: &Path| path.display().to_string();
    let output = arguments.output.as_deref().map(path).unwrap_or_default();
    let list = path(&arguments.list);
    format!("courser sim figures {list} --measure all --charts --output {output}")
}

/// Puts a file in place at once: nobody reads half of it, and an interruption leaves the old one.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let made = match path.parent() {
        Some(parent) => fs::create_dir_all(parent),
        None => Ok(()),
    };
    let new = path.with_extension("new");
    let written = made
        .and_then(|()| fs::write(&new, text))
        .and_then(|()| fs::rename(&new, path));
    written.map_err(|error| cannot("write", path, &error))
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}
