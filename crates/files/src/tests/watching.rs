use std::path::Path;

use super::*;
use crate::age::Moment;
use crate::watch::{MAX_FOLDERS, MAX_REPORTS, Watcher};

/// The root counts as one of the folders.
#[test]
fn folders_are_watched_up_to_the_limit() {
    let folder = Folder::new();
    let watcher = Watcher::new().expect("inotify");
    for number in 1..=MAX_FOLDERS {
        folder.file(&format!("{number}/file"), "");
        let name = format!("{number}/file");
        let is_watched = watcher.watch(&folder.0, Path::new(&name));
        assert_eq!(is_watched, number < MAX_FOLDERS, "folder {number}");
        let state = watcher.watched(Path::new(&name));
        assert_eq!(state.is_some(), is_watched, "folder {number}");
    }
    // Folders that are watched already do not count again.
    assert!(watcher.watch(&folder.0, Path::new("1/other")));
}

/// After a read of the maximum number of reports there may be more, about any folder.
#[test]
fn many_reports_at_once_concern_all_folders() {
    for (reports, is_unchanged) in [(MAX_REPORTS - 1, true), (MAX_REPORTS, false)] {
        let folder = Folder::new();
        folder.file("busy/first", "");
        folder.file("calm/file", "");
        let watcher = Watcher::new().expect("inotify");
        for name in ["busy/first", "calm/file"] {
            assert!(watcher.watch(&folder.0, Path::new(name)));
        }
        let calm = watcher.watched(Path::new("calm/file")).expect("watched");
        for number in 0..reports {
            let name = folder.path(&format!("busy/{number}"));
            // Creating a link causes exactly one report.
            std::os::unix::fs::symlink("first", name).expect("a link");
        }
        watcher.read_reports(Moment::of(1_000_000));
        assert_eq!(calm.is_unchanged(&watcher), is_unchanged, "{reports}");
    }
}
