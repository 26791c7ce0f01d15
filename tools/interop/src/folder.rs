//! The folder of a run: files to serve, downloads, certificates and logs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, io};

use crate::case::Case;

/// A folder with a part for each end.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    is_kept: bool,
    files: Vec<String>,
}

impl Folder {
    /// Makes the folder of a run, below `logs` if the logs are to be kept.
    pub(crate) fn new(logs: Option<&Path>, run: &str) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let path = match logs {
            Some(logs) => logs.join(run),
            None => {
                let number = NEXT.fetch_add(1, Ordering::Relaxed);
                let name = format!("courser-interop-{}-{number}", std::process::id());
                std::env::temp_dir().join(name)
            }
        };
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        for part in [
            "www",
            "downloads",
            "competitor",
            "certs",
            "server",
            "client",
        ] {
            fs::create_dir_all(path.join(part))?;
        }
        Ok(Self {
            path: std::path::absolute(path)?,
            is_kept: logs.is_some(),
            files: Vec::new(),
        })
    }

    pub(crate) fn path(&self, part: &str) -> PathBuf {
        self.path.join(part)
    }

    /// Writes the files of a case, with random names and contents.
    pub(crate) fn write_files(&mut self, case: &Case, seed: u64) -> io::Result<()> {
        let mut random = Random(seed | 1);
        for (count, len) in case.files {
            for _ in 0..*count {
                let name = random.name(case.name_len);
                fs::write(self.path("www").join(&name), random.bytes(*len))?;
                self.files.push(name);
            }
        }
        Ok(())
    }

    /// Returns the names of the files.
    pub(crate) fn files(&self) -> &[String] {
        &self.files
    }

    /// Compares all downloads with the files.
    pub(crate) fn compare(&self) -> Result<(), String> {
        let downloads = self.path("downloads");
        let entries = fs::read_dir(&downloads).map_err(|error| error.to_string())?;
        let found: BTreeSet<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        let expected: BTreeSet<String> = self.files.iter().cloned().collect();
        let missing = expected.difference(&found).count();
        let other = found.difference(&expected).count();
        if missing + other > 0 {
            let total = expected.len();
            return Err(format!(
                "{missing} of {total} files are missing, {other} are unexpected"
            ));
        }
        for name in &self.files {
            let original = fs::read(self.path("www").join(name));
            let download = fs::read(downloads.join(name));
            match (original, download) {
                (Ok(original), Ok(download)) if original == download => {}
                (Ok(original), Ok(download)) => {
                    let (is, should) = (download.len(), original.len());
                    return Err(format!(
                        "a file of {should} bytes differs, {is} bytes arrived"
                    ));
                }
                (Err(error), _) | (_, Err(error)) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    /// Returns the last line that an end printed.
    pub(crate) fn last_line(&self, end: &str) -> Option<String> {
        let text = fs::read(self.path(end).join(OUTPUT)).ok()?;
        let text = String::from_utf8_lossy(&text);
        let line = text
            .lines()
            .rev()
            .map(str::trim)
            .find(|line| !line.is_empty())?;
        Some(with_short_paths(line).chars().take(MAX_LINE).collect())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Files are large and can be made again.
        for part in ["www", "downloads", "competitor"] {
            let _ = fs::remove_dir_all(self.path(part));
        }
        if !self.is_kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Shortens absolute paths to their last three parts, so that a report reveals nothing about the folders of
/// the machine that made it.
fn with_short_paths(line: &str) -> String {
    let is_border = |c: char| c.is_whitespace() || "\"'()[]{}<>,;=".contains(c);
    let mut short = String::with_capacity(line.len());
    for word in line.split_inclusive(is_border) {
        let kept = match word.rmatch_indices('/').nth(2) {
            Some((at, _)) if word.starts_with('/') => &word[at + 1..],
            _ => word,
        };
        short.push_str(kept);
    }
    short
}

/// The file with the output of an end.
pub(crate) const OUTPUT: &str = "output.txt";

/// The most characters of a line in a report.
const MAX_LINE: usize = 200;

/// A generator of names and contents: xorshift64.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn name(&mut self, len: usize) -> String {
        let mut letter = || char::from(b'a' + u8::try_from(self.next() % 26).unwrap_or(0));
        (0..len).map(|_| letter()).collect()
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let words = std::iter::repeat_with(|| self.next().to_le_bytes());
        words.flatten().take(len).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_of_messages_keep_their_last_parts() {
        let line = r#"at file: "/opt/crates/tls-0.1/src/error.rs", /tmp/a of https://host/a/b/c"#;
        let short = r#"at file: "tls-0.1/src/error.rs", /tmp/a of https://host/a/b/c"#;
        assert_eq!(with_short_paths(line), short);
    }

    fn filled() -> Folder {
        let mut folder = Folder::new(None, "").expect("a folder");
        let case = Case::find("resumption").expect("a case");
        folder.write_files(case, 7).expect("files");
        for name in folder.files().to_vec() {
            fs::copy(
                folder.path("www").join(&name),
                folder.path("downloads").join(&name),
            )
            .expect("copied");
        }
        folder
    }

    #[test]
    fn equal_downloads_pass() {
        assert_eq!(filled().compare(), Ok(()));
    }

    #[test]
    fn missing_changed_and_additional_downloads_are_found() {
        type Damage = fn(&Path);
        let damages: [(Damage, &str); 3] = [
            (
                |file| fs::remove_file(file).expect("removed"),
                "1 of 2 files are missing",
            ),
            (
                |file| fs::write(file, "short").expect("written"),
                "5 bytes arrived",
            ),
            (
                |file| fs::write(file.with_extension("more"), "").expect("written"),
                "1 are unexpected",
            ),
        ];
        for (damage, message) in damages {
            let folder = filled();
            damage(&folder.path("downloads").join(&folder.files()[1]));
            let error = folder.compare().expect_err(message);
            assert!(error.contains(message), "{error}");
        }
    }
}
