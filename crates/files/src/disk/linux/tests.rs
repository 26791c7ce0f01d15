use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;

/// A folder with `a/b/file` and a link beside each of its components. Removed when dropped.
struct Tree(PathBuf);

impl Tree {
    fn new() -> Self {
        let name = format!("courser-files-links-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        std::fs::create_dir_all(root.join("a/b")).expect("a folder for temporary files");
        std::fs::write(root.join("a/b/file"), "content").expect("write access to the test folder");
        symlink("a", root.join("first")).expect("write access to the test folder");
        symlink("b", root.join("a/second")).expect("write access to the test folder");
        symlink("file", root.join("a/b/last")).expect("write access to the test folder");
        Self(root.canonicalize().expect("the folder exists"))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Covers links that are created between the resolution of a path and its opening.
#[test]
fn no_link_is_followed_after_a_path_was_resolved() {
    let tree = Tree::new();
    let (folder, _) = open_root(&tree.0, Blocking::Allowed).expect("a folder");
    let open = |path: &str| open_without_links(&folder.0, Path::new(path));
    let mut text = String::new();
    let mut file = File::from(open("a/b/file").expect("no link"));
    file.read_to_string(&mut text).expect("readable");
    assert_eq!(text, "content");
    assert!(open("").is_ok() && open("a/b").is_ok());
    for path in ["first/b/file", "a/second/file", "a/b/last", "first"] {
        let error = open(path).expect_err(path);
        assert!(
            matches!(error, Errno::LOOP | Errno::NOTDIR),
            "{path}: {error}"
        );
    }
    // Without openat2, links inside of the root are resolved first.
    let access = Access {
        follow_symlinks: false,
        opens_beneath: false,
        opens_cached: false,
    };
    for path in ["a/b/file", "first/second/last"] {
        let opened = access.open(&folder, &tree.0, Path::new(path), Blocking::Allowed);
        assert!(opened.is_ok_and(|(_, is_direct)| !is_direct), "{path}");
    }
}
