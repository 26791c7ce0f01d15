use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A temporary folder, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("courser-token-file-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("tokens")
    }

    /// Writes a file that only its owner can read.
    fn write(&self, text: &str) -> PathBuf {
        replace_file(&self.file(), text.as_bytes()).expect("a file");
        self.file()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn token(number: usize) -> Bytes {
    Bytes::from(format!("token {number}"))
}

fn refused(path: &Path) -> TokenFileReason {
    let error = FileTokenStore::open(path).expect_err("refused");
    let text = error.to_string();
    assert!(text.contains(&path.display().to_string()), "{text}");
    assert!(!text.contains('\n'), "{text}");
    error.reason
}

#[test]
fn temporary_file_of_an_earlier_process_is_ignored() {
    let folder = Folder::new();
    let beside = format!("tokens.{}.tmp", std::process::id());
    fs::write(folder.0.join(&beside), "half a line").expect("a file");
    let store = FileTokenStore::open(folder.file()).expect("a missing file is empty");
    store.put("a.test", token(1));
    store.save().expect("a file");
    let store = FileTokenStore::open(folder.file()).expect("write access to the test folder");
    assert_eq!(store.take("a.test"), Some(token(1)));
    assert!(!folder.0.join(&beside).exists());
}

#[test]
fn empty_file_contains_no_tokens() {
    let folder = Folder::new();
    let path = folder.write("");
    let store = FileTokenStore::open(&path).expect("no tokens");
    assert_eq!(store.take("a.test"), None);
}

#[cfg(unix)]
#[test]
fn link_to_a_file_that_does_not_exist_yet_is_followed() {
    let folder = Folder::new();
    let (link, target) = (folder.file(), folder.0.join("elsewhere"));
    std::os::unix::fs::symlink("elsewhere", &link).expect("a link");
    let store = FileTokenStore::open(&link).expect("a missing file is empty");
    store.put("a.test", token(1));
    store.save().expect("a file");
    assert!(fs::read_link(&link).is_ok(), "the link remains");
    let store = FileTokenStore::open(&target).expect("write access to the test folder");
    assert_eq!(store.take("a.test"), Some(token(1)));
}

#[test]
fn tokens_are_found_by_another_process_and_used_once() {
    let folder = Folder::new();
    let store = FileTokenStore::open(folder.file()).expect("a missing file is empty");
    store.put("a.test", token(1));
    store.put("a.test#quic-v2", token(2));
    store.put("a.test", token(1));
    store.save().expect("a file");
    let store = FileTokenStore::open(folder.file()).expect("write access to the test folder");
    assert_eq!(store.take("a.test"), Some(token(1)));
    assert_eq!(store.take("a.test"), None);
    assert_eq!(store.take("b.test"), None);
    store.save().expect("a file");
    let store = FileTokenStore::open(folder.file()).expect("write access to the test folder");
    assert_eq!(store.take("a.test"), None);
    assert_eq!(store.take("a.test#quic-v2"), Some(token(2)));
}

#[test]
fn file_without_changes_is_not_written() {
    let folder = Folder::new();
    let store = FileTokenStore::open(folder.file()).expect("empty");
    assert_eq!(store.take("a.test"), None);
    store.put("a name", token(1));
    store.save().expect("nothing to save");
    assert!(!folder.file().exists());
}

#[cfg(unix)]
#[test]
fn new_files_are_private_and_replace_others_atomically() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = Folder::new();
    let store = FileTokenStore::open(folder.file()).expect("empty");
    for number in 0..2 {
        store.put("a.test", token(number));
        store.save().expect("a file");
        let known = fs::metadata(folder.file()).expect("the file exists");
        assert_eq!(known.mode() & 0o777, 0o600);
    }
    let names = fs::read_dir(&folder.0).expect("a folder").count();
    assert_eq!(names, 1, "nothing is left beside it");
    let gone = folder.0.join("missing/tokens");
    let store = FileTokenStore::open(gone).expect("empty");
    store.put("a.test", token(1));
    assert!(store.save().is_err(), "there is no such folder");
}

#[cfg(unix)]
#[test]
fn files_of_others_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let path = folder.write("courser-tokens 1\n");
    for mode in [0o640, 0o604, 0o620, 0o602, 0o610] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))
            .expect("write access to the test folder");
        let reason = refused(&path);
        assert!(matches!(reason, TokenFileReason::OpenToOthers), "{mode:o}");
    }
    let other = check_user(1, Some(0), 0o600);
    assert!(matches!(other, Err(TokenFileReason::OtherUser)));
    assert!(check_user(7, Some(7), 0o600).is_ok());
    assert!(check_user(7, None, 0o600).is_ok(), "a system without /proc");
    assert!(matches!(refused(&folder.0), TokenFileReason::NotAFile));
}

#[test]
fn other_formats_are_refused_and_left_as_they_are() {
    let texts = [
        "courser-tokens 1",
        "courser-tokens 2\n",
        "# Netscape HTTP Cookie File\n",
        "courser-tokens 1\na.test\n",
        "courser-tokens 1\na.test\t0\n",
        "courser-tokens 1\na.test\t+1\n",
        "courser-tokens 1\na.test\t0g\n",
        "courser-tokens 1\na.test\täöü\n",
        "courser-tokens 1\n\n",
    ];
    for text in texts {
        let folder = Folder::new();
        let path = folder.write(text);
        let reason = refused(&path);
        assert!(matches!(reason, TokenFileReason::Format), "{text:?}");
        assert_eq!(fs::read_to_string(&path).expect("the file exists"), text);
    }
    let folder = Folder::new();
    let path = folder.write("");
    fs::write(&path, [0xff, 0xfe]).expect("write access to the test folder");
    assert!(matches!(refused(&path), TokenFileReason::Format));
}

/// K240.
#[test]
fn long_files_are_refused() {
    let folder = Folder::new();
    let line = "a.test\t00\n";
    let mut text = "courser-tokens 1\n".to_owned();
    while text.len() + line.len() <= MAX_FILE {
        text.push_str(line);
    }
    let store = FileTokenStore::open(folder.write(&text)).expect("as long as permitted");
    assert_eq!(store.tokens.lock().all.len(), 1);
    text.push_str(line);
    let reason = refused(&folder.write(&text));
    assert!(matches!(reason, TokenFileReason::TooLong));
}

/// K241, K242 and K243: the oldest tokens are removed, and the file stays below K240.
#[test]
fn tokens_are_bounded() {
    let folder = Folder::new();
    let store = FileTokenStore::open(folder.file()).expect("empty");
    let longest = |number: usize| {
        let mut token = vec![7; MAX_TOKEN];
        token[..8].copy_from_slice(&number.to_be_bytes());
        Bytes::from(token)
    };
    let name = |number: usize| format!("{number:0>MAX_NAME$}");
    for number in 0..MAX_TOKENS {
        for token in 0..5 {
            store.put(&name(number), longest(token));
        }
    }
    let count = |name: &str| {
        let tokens = store.tokens.lock();
        tokens.all.iter().filter(|(known, _)| known == name).count()
    };
    assert_eq!(store.tokens.lock().all.len(), MAX_TOKENS);
    assert_eq!(count(&name(0)), 0, "the oldest server");
    assert_eq!(count(&name(MAX_TOKENS - 1)), MAX_TOKENS_OF_SERVER);
    assert_eq!(
        store.take(&name(MAX_TOKENS - 1)),
        Some(longest(4)),
        "the newest"
    );
    store.put("a.test", Bytes::from(vec![0; MAX_TOKEN + 1]));
    store.put("a.test", Bytes::new());
    store.put(&"a".repeat(MAX_NAME + 1), token(1));
    store.put("a\tb", token(1));
    store.put("", token(1));
    assert_eq!(count("a.test") + count("a\tb") + count(""), 0);
    store.save().expect("a file");
    let len = fs::metadata(folder.file()).expect("the file exists").len();
    assert!(len < MAX_FILE as u64, "{len}");
    FileTokenStore::open(folder.file()).expect("write access to the test folder");
}
