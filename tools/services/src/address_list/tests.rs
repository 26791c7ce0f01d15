use super::*;

/// A temporary file, removed when dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, text: &str) -> Self {
        let name = format!("courser-list-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("writable");
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn files_are_read_again_when_they_change() {
    let block = Temporary::new("block", "192.0.2.0/24\n");
    let allow = Temporary::new("allow", "192.0.2.1\n");
    let mut lists = AddressLists::load(Some(&block.0), Some(&allow.0)).expect("two lists");
    assert_eq!(lists.check(), FileState::Same);
    let blocked = |lists: &AddressLists| {
        [1, 2, 3].map(|low| lists.filter().is_blocked([192, 0, 2, low].into()))
    };
    assert_eq!(blocked(&lists), [false, true, true]);
    std::fs::write(&allow.0, "192.0.2.1\n192.0.2.2\n").expect("write access to the test folder");
    assert_eq!(lists.check(), FileState::Changing);
    assert_eq!(lists.check(), FileState::Changed);
    lists.reload().expect("in order");
    assert_eq!(lists.check(), FileState::Same);
    assert_eq!(blocked(&lists), [false, false, true]);
    // The file is truncated first and written a moment later.
    std::fs::write(&block.0, "").expect("write access to the test folder");
    assert_eq!(lists.check(), FileState::Changing);
    std::fs::write(&block.0, "192.0.2.0/28\n").expect("write access to the test folder");
    assert_eq!(lists.check(), FileState::Changing);
    assert_eq!(lists.check(), FileState::Changed);
}

#[test]
fn wrong_files_leave_the_lists_as_they_were() {
    let file = Temporary::new("reload", "192.0.2.1\n");
    let mut lists = AddressLists::load(Some(&file.0), None).expect("a list");
    std::fs::write(&file.0, "192.0.2.2\nnonsense\n").expect("write access to the test folder");
    let error = lists.reload().expect_err("a malformed address").to_string();
    for part in ["block list", "line 2", "nonsense", "such as 192.0.2.1"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(lists.check(), FileState::Same, "reported once");
    assert!(lists.filter().is_blocked([192, 0, 2, 1].into()));
    assert!(!lists.filter().is_blocked([192, 0, 2, 2].into()));
    std::fs::remove_file(&file.0).expect("write access to the test folder");
    assert_eq!(lists.check(), FileState::Changing);
    assert_eq!(lists.check(), FileState::Changed);
    assert!(lists.reload().is_err());
    assert!(lists.filter().is_blocked([192, 0, 2, 1].into()));
}

#[test]
fn large_files_are_not_read() {
    let file = Temporary::new("large", "");
    let opened = std::fs::File::options()
        .write(true)
        .open(&file.0)
        .expect("write access to the test folder");
    opened.set_len(MAX_BYTES + 1).expect("sparse");
    let error = AddressLists::load(Some(&file.0), None).expect_err("too large");
    let error = error.to_string();
    assert!(
        error.contains("67108865") && error.contains("67108864"),
        "{error}"
    );
}
