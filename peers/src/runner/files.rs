//! Files that are served, and the list of those that a walk gets.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use peers::{Failure, settings};

use super::plan::Plan;
use super::workload::{Content, Workload};

/// Path of the file that `files-N` gets.
pub(crate) const ONE: &str = "/file";

/// Returns the folder that servers serve, in the folder of the run.
pub(crate) fn root(folder: &Path) -> PathBuf {
    folder.join("root")
}

/// Returns the file with the URLs that `walk-N` gets, in the folder of the run.
pub(crate) fn list(folder: &Path) -> PathBuf {
    folder.join("urls")
}

/// Writes the files of the plan's workloads, once for all measurements.
pub(crate) fn write(plan: &Plan, folder: &Path) -> Result<(), Failure> {
    let has = |wanted: Content| {
        let mut workloads = plan.workloads.iter();
        workloads.any(|one| matches!(one, Workload::Files { content, .. } if *content == wanted))
    };
    let root = root(folder);
    if has(Content::One) || has(Content::Folder) {
        fs::create_dir(&root)?;
    }
    if has(Content::One) {
        write_file(&root.join(ONE.trim_start_matches('/')), plan.file_size)?;
    }
    if has(Content::Folder) {
        eprintln!("peers: writing {} files", plan.files);
        fs::create_dir(root.join(WALK))?;
        for index in 0..plan.files {
            write_file(&root.join(path_of(index)), plan.file_size)?;
        }
        let requests = plan.requests.min(MAX_LINES);
        let mut lines = BufWriter::new(File::create(list(folder))?);
        for index in draws(plan.files).zip(0..requests).map(|(index, _)| index) {
            let (host, path) = (settings::SERVER_NAME, path_of(index));
            writeln!(lines, "https://{host}/{path}")?;
        }
        lines.flush()?;
    }
    Ok(())
}

fn path_of(index: u32) -> String {
    format!("{WALK}/{index:06}")
}

/// Writes bytes that differ from one to the next.
fn write_file(path: &Path, size: u64) -> Result<(), Failure> {
    let chunk: [u8; CHUNK] = std::array::from_fn(|index| (index % 251) as u8);
    let failed = |error| format!("cannot write {}: {error}", path.display());
    let mut file = File::create(path).map_err(failed)?;
    let mut left = size;
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        file.write_all(&chunk[..length]).map_err(failed)?;
        left -= length as u64;
    }
    Ok(())
}

/// Numbers below `count`, each drawn from all of them, the same in every run: splitmix64.
fn draws(count: u32) -> impl Iterator<Item = u32> {
    let mut state = 0_u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // The upper half, scaled to what is wanted: below `count`.
        (((mixed >> 32) * u64::from(count)) >> 32) as u32
    })
}

/// Folder of the files that are walked.
const WALK: &str = "walk";

const CHUNK: usize = 8 << 10;

/// A longer run begins the list anew.
const MAX_LINES: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use clap::Parser;

    use super::*;

    #[test]
    fn draws_reach_every_file_and_no_other() {
        let drawn: HashSet<u32> = draws(100).take(2000).collect();
        assert_eq!(drawn.len(), 100);
        assert!(drawn.iter().all(|index| *index < 100));
    }

    #[test]
    fn files_and_their_list_are_written() {
        let folder = std::env::temp_dir().join(format!("peers-files-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let options = "peers --workloads files-1,walk-1 --file-size 10k --files 3 --requests 5";
        let written = write(&Plan::parse_from(options.split(' ')), &folder);
        let one = fs::metadata(root(&folder).join("file")).map(|file| file.len());
        let walked = fs::read_dir(root(&folder).join(WALK)).map(Iterator::count);
        let lines = fs::read_to_string(list(&folder));
        fs::remove_dir_all(&folder).unwrap();
        written.unwrap();
        assert_eq!(one.unwrap(), 10_000);
        assert_eq!(walked.unwrap(), 3);
        let lines = lines.unwrap();
        assert_eq!(lines.lines().count(), 5);
        for line in lines.lines() {
            assert!(line.starts_with("https://localhost/walk/00000"), "{line}");
        }
    }

    #[test]
    fn runs_without_files_write_none() {
        write(&Plan::parse_from(["peers"]), Path::new("/no/such/folder")).unwrap();
    }
}
