//! A folder over all versions.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use courser::files::Files;
use courser_oracle::cases::origin::{
    CONTENT, FILE, FUTURE, LARGE, MODIFIED_SECONDS, conditions, methods_and_hosts, ranges,
    representations,
};
use courser_oracle::{Findings, Gateway};
use courser_services::Site;

use crate::serving;

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("courser-oracle-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder for temporary files");
        Self(path)
    }

    fn write(&self, path: &str, content: &str, time: SystemTime) {
        let path = self.0.join(path.trim_start_matches('/'));
        fs::write(&path, content).expect("our folder");
        let file = File::options().write(true).open(path).expect("our file");
        file.set_modified(time).expect("our file");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a table against a folder with the files that it asks for.
fn run(table: impl AsyncFnOnce(&Gateway) -> Findings) {
    let folder = Folder::new();
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(MODIFIED_SECONDS);
    let tomorrow = SystemTime::now() + Duration::from_secs(86_400);
    folder.write(FILE, CONTENT, modified);
    folder.write(LARGE, &"let a = 1;".repeat(200), modified);
    folder.write(FUTURE, CONTENT, tomorrow);
    let findings = serving::block_on(async {
        let files = Files::builder()
            .compress(true)
            .open(&folder.0)
            .expect("our folder");
        table(&serving::start(Site::Files(files))).await
    });
    findings.finish();
}

#[test]
fn ranges_are_served_or_ignored() {
    run(ranges);
}

#[test]
fn conditions_are_evaluated_in_their_order() {
    run(conditions);
}

#[test]
fn methods_and_hosts_are_accepted_or_refused() {
    run(methods_and_hosts);
}

#[test]
fn head_equals_get_and_codings_are_negotiated() {
    run(representations);
}
