//! Files that are replaced as a whole.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Replaces a file, so that other processes find either the old or the new content even after a crash.
///
/// Only the owner can read and write a new file. An existing one keeps its permissions, and a symbolic link stays
/// and its target is replaced. Content for a device or a pipe is written to it.
///
/// # Errors
/// Returns the error of the file system. The old content is unchanged then.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let path = resolve_links(path);
    match fs::metadata(&path) {
        Ok(known) if !known.is_file() => fs::write(&path, content),
        Ok(known) => replace(&path, content, Some(known.permissions())),
        Err(_) => replace(&path, content, None),
    }
}

fn replace(path: &Path, content: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let opened = options.open(&temporary).or_else(|error| {
        if error.kind() != io::ErrorKind::AlreadyExists {
            return Err(error);
        }
        // A file that a process with the same ID left behind.
        fs::remove_file(&temporary)?;
        options.open(&temporary)
    });
    let mut file = opened?;
    let written = file.write_all(content);
    let written = written.and_then(|()| match permissions {
        Some(permissions) => file.set_permissions(permissions),
        None => Ok(()),
    });
    // Synchronized first: after a loss of power, the name must not refer to a file without its content.
    let written = written.and_then(|()| file.sync_all());
    let result = written.and_then(|()| fs::rename(&temporary, path));
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Follows symbolic links. The target need not exist.
fn resolve_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else {
            break;
        };
        // A relative target is relative to the folder of the link.
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    fs::canonicalize(&path).unwrap_or(path)
}

/// Largest number of links that are followed, as in Linux.
const MAX_LINKS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("courser-replace-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).expect("a folder");
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).expect("removed");
        }
    }

    #[test]
    fn files_are_replaced_although_a_temporary_file_is_left() {
        let folder = Folder::new("left");
        let path = folder.0.join("file");
        fs::write(&path, "old").expect("written");
        let left = format!("file.{}.tmp", std::process::id());
        fs::write(folder.0.join(left), "rest").expect("written");
        replace_file(&path, b"new").expect("replaced");
        assert_eq!(fs::read(&path).expect("there"), b"new");
        assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 1);
    }

    #[test]
    fn old_content_stays_if_the_folder_is_missing() {
        let folder = Folder::new("missing");
        let path = folder.0.join("none/file");
        let error = replace_file(&path, b"new").expect_err("no folder");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn new_files_are_private_and_existing_permissions_stay() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = Folder::new("mode");
        let path = folder.0.join("file");
        let mode = || fs::metadata(&path).expect("there").permissions().mode() & 0o777;
        replace_file(&path, b"1").expect("created");
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("set");
        replace_file(&path, b"2").expect("replaced");
        assert_eq!(mode(), 0o640);
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_and_their_targets_are_replaced() {
        let folder = Folder::new("links");
        let (link, target) = (folder.0.join("link"), folder.0.join("target"));
        std::os::unix::fs::symlink("target", &link).expect("a link");
        for content in ["1", "2"] {
            replace_file(&link, content.as_bytes()).expect("replaced");
            assert_eq!(fs::read_to_string(&target).expect("there"), content);
            assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        }
    }
}
