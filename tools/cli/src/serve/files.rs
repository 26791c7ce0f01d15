//! Opens the served folder as the flags say.

use std::path::Path;

use courser::files::{Builder, Files};
use courser_services::listing;

use super::args::FileArguments;
use crate::error::Failure;
use crate::output;

/// Opens a folder with these settings.
pub(super) fn open(
    folder: &Path,
    arguments: &FileArguments,
    compress: bool,
) -> Result<Files, Failure> {
    let dotfiles = arguments.dotfiles;
    let mut builder: Builder = Files::builder()
        .dotfiles(dotfiles)
        .follow_symlinks(arguments.follow_symlinks)
        .precompressed(arguments.precompressed)
        .compress(compress)
        .memory(arguments.cache_size.unwrap_or_else(default_cache_size))
        .on_exhausted(|error| {
            output::note(format!(
                "cannot open files: {error}; clients get 503 (raise the limit: ulimit -n 65536)"
            ));
        });
    if arguments.browse {
        builder = builder.on_folder(move |folder, request| async move {
            listing::answer(&folder, &request, dotfiles).await
        });
    }
    builder
        .open(folder)
        .map_err(|error| Failure::new(format!("cannot serve {}: {error}", folder.display())))
}

/// Returns the default size of the cache: a part of the memory of a small machine, and enough for
/// popular small files on a large one.
fn default_cache_size() -> u64 {
    (courser::default_memory_budget() / 2).min(CACHE_SIZE)
}

/// The size of the cache on a machine with enough memory (limit K113).
const CACHE_SIZE: u64 = 64 << 20;
