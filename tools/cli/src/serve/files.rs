//! Opens the served folder as the flags say.

use std::path::Path;

use courser::files::{Builder, Files};
use courser::server::Peer;
use courser_services::listing;

use super::args::FileArguments;
use super::media_types;
use super::messages;
use crate::error::Failure;

/// Opens a folder with these settings.
pub(super) fn open(
    folder: &Path,
    arguments: &FileArguments,
    compress: bool,
) -> Result<Files, Failure> {
    let mut builder: Builder = Files::builder()
        .dotfiles(arguments.dotfiles)
        .follow_symlinks(arguments.follow_symlinks)
        .precompressed(arguments.precompressed)
        .compress(compress)
        .memory(arguments.cache_size.unwrap_or_else(default_cache_size))
        .threads(threads())
        .client(|extensions| extensions.get().map(Peer::address))
        .on_exhausted(|error| {
            messages::note(format!(
                "cannot open files: {error}; clients get 503 (raise the limit: ulimit -n 65536)"
            ));
        });
    if arguments.browse {
        builder = builder
            .on_folder(|folder, request| async move { listing::answer(folder, &request).await });
    }
    if let Some(path) = &arguments.mime {
        builder = media_types::add(builder, path)?;
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

/// Returns the number of threads that may wait for a disk, for a memory budget.
///
/// Each has a stack of 2 MiB, which counts in full where the address space or data of the process
/// are limited.
pub(super) fn blocking_threads(memory: u64) -> usize {
    let threads = usize::try_from(memory / MEMORY_PER_BLOCKING_THREAD).unwrap_or(usize::MAX);
    threads.clamp(MIN_BLOCKING_THREADS, MAX_BLOCKING_THREADS)
}

/// Returns the number of threads that may wait for the disk. The others are for TLS, name resolution and files that the
/// server reads for itself.
fn threads() -> usize {
    let all = blocking_threads(courser::default_memory_budget());
    all - all / 4
}

/// The size of the cache on a machine with enough memory (limit K113).
const CACHE_SIZE: u64 = 64 << 20;

/// The memory budget for each thread that may wait for a disk, and bounds on their number (limit K114).
/// tokio's default is 512.
const MEMORY_PER_BLOCKING_THREAD: u64 = 4 << 20;
const MIN_BLOCKING_THREADS: usize = 4;
const MAX_BLOCKING_THREADS: usize = 512;
