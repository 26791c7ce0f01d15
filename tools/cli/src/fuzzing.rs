//! Entry points for the fuzz targets: parsers of files and messages, without access to disk and network.

use std::ffi::OsString;
use std::path::Path;

use clap::{CommandFactory as _, Parser as _};
use courser::{AddressFilter, AddressPrefix};

use crate::args::Arguments;
use crate::sim::figures::{data::Data, list};

/// Parses a file of addresses, and creates a filter from it.
///
/// # Errors
/// Returns the message for the user if the input is invalid.
pub fn address_list(text: &str) -> Result<(), String> {
    let prefixes = AddressPrefix::parse_list(text).map_err(|error| error.to_string())?;
    let blocks = AddressFilter::new(&prefixes, &[]);
    // Addresses that are both blocked and allowed are allowed.
    let both = AddressFilter::new(&prefixes, &prefixes);
    assert!(both.is_empty(), "{prefixes:?}");
    for prefix in &prefixes {
        let shown = prefix.to_string();
        assert_eq!(shown.parse().as_ref(), Ok(prefix));
        let (first, _) = shown.split_once('/').expect("an address and a length");
        let first = first.parse().expect("an address");
        assert!(blocks.is_blocked(first), "{shown} in {prefixes:?}");
    }
    Ok(())
}

/// Parses a file of cookies, and returns the file that would be saved.
pub fn cookies(text: &str) -> String {
    crate::get::cookies::rewrite(text)
}

/// Parses a file of `--config`, and the command line that results from it.
///
/// # Errors
/// Returns the message for the user if the input is invalid.
pub fn get_config(text: &str) -> Result<(), String> {
    let command = Arguments::command();
    let get = command.find_subcommand("get").ok_or("no such command")?;
    let words = crate::get::words::of_file("file", text, get).map_err(|it| it.to_string())?;
    let start = ["courser", "get"].map(OsString::from);
    // Errors of clap are formatted elsewhere.
    let _ = Arguments::try_parse_from(start.into_iter().chain(words));
    Ok(())
}

/// Expands a URL with braces and brackets, and a file name with their values.
///
/// # Errors
/// Returns the message for the user if the input is invalid.
pub fn url_pattern(text: &str) -> Result<(), String> {
    let all = crate::transfer::expand_url(text).map_err(|error| error.to_string())?;
    for expanded in all.iter().take(8) {
        let _ = expanded.name(text);
    }
    Ok(())
}

/// Parses a list of figures and measured values.
///
/// # Errors
/// Returns the message for the user if the input is invalid.
pub fn figures(text: &str) -> Result<(), String> {
    if let Ok(data) = Data::parse(text) {
        let again = Data::parse(&data.to_text());
        assert!(again.is_ok(), "cannot be read again: {again:?}");
    }
    let list = list::parse(Path::new("file"), text);
    list.map(drop).map_err(|failure| failure.to_string())
}

/// Parses a trace, and renders all reports about it.
///
/// # Errors
/// Returns the message for the user if the input is invalid.
pub fn trace(bytes: &[u8]) -> Result<String, String> {
    courser_trace::render(bytes).map_err(|failure| failure.to_string())
}
