//! Determines the destinations of bodies from the flags.

use std::io::ErrorKind;

use super::args::OutputArguments;
use super::exit::{Failed, RANGE_ERROR, WRITE_ERROR};
use crate::transfer::{Destination, RestError, SinkError, file_name};

/// Returns the destination for the URL with this index on the command line. `name` inserts the parts of a
/// pattern into a file name.
pub(crate) fn destination(
    output: &OutputArguments,
    index: usize,
    path: &str,
    name: impl Fn(&str) -> String,
) -> Destination {
    let folder = output.output_dir.clone().unwrap_or_default();
    if let Some(file) = output.output.get(index) {
        return match name(file).as_str() {
            "-" => Destination::ForcedStdout,
            file => kept(output, Destination::file(&folder, file)),
        };
    }
    let is_remote = index < output.output.len() + usize::from(output.remote_name);
    if !is_remote && !output.remote_name_all {
        return Destination::Stdout;
    }
    let last = file_name(path).unwrap_or(NAMELESS);
    match output.remote_header_name {
        false => kept(output, Destination::File(folder.join(last))),
        true => Destination::Named {
            fallback: last.to_owned(),
            folder,
        },
    }
}

/// Returns a destination that replaces no file, with --no-clobber.
fn kept(output: &OutputArguments, destination: Destination) -> Destination {
    match destination {
        Destination::File(path) if output.no_clobber => Destination::Unclobbered(path),
        other => other,
    }
}

impl From<SinkError> for Failed {
    fn from(error: SinkError) -> Self {
        let remedy = match &error {
            SinkError::ServerNamed(_) => ": use --output FILE to resume a download",
            SinkError::Binary => {
                ": use '--output -' to print it anyway, or '--output FILE' to save it"
            }
            SinkError::Write { error, .. } => match error.kind() {
                ErrorKind::NotFound => ": use --create-dirs to create its directory",
                ErrorKind::AlreadyExists => {
                    ": --remote-header-name and --no-clobber do not overwrite files"
                }
                _ => "",
            },
        };
        Self::new(WRITE_ERROR, format!("{error}{remedy}"))
    }
}

impl From<RestError> for Failed {
    fn from(error: RestError) -> Self {
        let remedy = match error {
            RestError::Unsupported => ": download the whole file without --continue-at",
            _ => "",
        };
        Self::new(RANGE_ERROR, format!("{error}{remedy}"))
    }
}

/// The name of a file for a URL without one, as in curl.
const NAMELESS: &str = "curl_response";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_belong_to_urls_in_their_order() {
        let output = OutputArguments {
            output: vec!["a#1".to_owned(), "-".to_owned()],
            remote_name: 1,
            ..OutputArguments::default()
        };
        let target = |index| destination(&output, index, "/x/y", |name| name.replace("#1", "1"));
        assert_eq!(target(0), Destination::File("a1".into()));
        assert_eq!(target(1), Destination::ForcedStdout);
        assert_eq!(target(2), Destination::File("y".into()));
        assert_eq!(target(3), Destination::Stdout);
        for (path, name) in [("/x/", "x"), ("/", NAMELESS)] {
            let named = destination(&output, 2, path, str::to_owned);
            assert_eq!(named, Destination::File(name.into()));
        }
    }

    #[test]
    fn errors_have_the_codes_of_curl_and_name_helpful_flags() {
        let resumed = Failed::from(SinkError::ServerNamed("kept".into()));
        assert_eq!(resumed.code, WRITE_ERROR);
        assert!(resumed.text.contains("--output FILE"), "{resumed}");
        let missing = SinkError::Write {
            path: "a/b".into(),
            error: ErrorKind::NotFound.into(),
        };
        assert!(Failed::from(missing).text.contains("--create-dirs"));
        let whole = Failed::from(RestError::Unsupported);
        assert_eq!(whole.code, RANGE_ERROR);
        assert!(whole.text.contains("--continue-at"), "{whole}");
    }
}
