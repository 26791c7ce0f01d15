use super::*;

fn list(text: &str) -> Vec<String> {
    let prefixes = parse(text).expect("a list");
    prefixes.iter().map(ToString::to_string).collect()
}

#[test]
fn lines_are_addresses_prefixes_and_comments() {
    let text = "\
# Documentation
192.0.2.7
2001:db8::/32 # all of it

  10.0.0.0/8\t
::ffff:198.51.100.1
::ffff:198.51.100.128/121
2001:db9::1
0.0.0.1/32";
    let sorted = [
        "0.0.0.1/32",
        "10.0.0.0/8",
        "192.0.2.7/32",
        "198.51.100.1/32",
        "198.51.100.128/25",
        "2001:db8::/32",
        "2001:db9::1/128",
    ];
    assert_eq!(list(text), sorted);
    assert_eq!(list(""), [""; 0]);
    assert_eq!(list("0.0.0.0/0\n::/0"), ["0.0.0.0/0", "::/0"]);
}

#[test]
fn prefixes_inside_others_are_left_out() {
    let text = "10.1.2.3\n10.0.0.0/8\n10.0.0.0/9\n10.0.0.0/8\n11.0.0.0\n::/64\n::1\n";
    assert_eq!(list(text), ["10.0.0.0/8", "11.0.0.0/32", "::/64"]);
}

#[test]
fn wrong_lines_are_named_with_what_is_allowed() {
    for (line, allowed) in [
        ("example.org", "such as 192.0.2.1"),
        ("192.0.2.256", "such as 192.0.2.1"),
        ("192.0.2.1:443", "such as 192.0.2.1"),
        ("fe80::1%eth0", "such as 192.0.2.1"),
        ("192.0.2.0/33", "0 to 32"),
        ("192.0.2.0/+8", "0 to 32"),
        ("192.0.2.0/", "0 to 32"),
        ("2001:db8::/129", "0 to 128"),
        ("::ffff:192.0.2.0/24", "96 to 128"),
        ("10.1.0.0/8", "'10.0.0.0/8'"),
        ("2001:db8::1/64", "'2001:db8::/64'"),
    ] {
        let error = parse(&format!("# first\n192.0.2.1\n{line}\n")).expect_err(line);
        let names_all = error.starts_with("line 3: ") && error.contains(line);
        assert!(names_all && error.contains(allowed), "{line}: {error}");
    }
}

#[test]
fn one_entry_too_many_is_refused() {
    let mut text = "192.0.2.1\n".repeat(MOST_PREFIXES);
    assert_eq!(parse(&text).expect("as many as allowed").len(), 1);
    text.push_str("192.0.2.1");
    let error = parse(&text).expect_err("one more");
    assert!(
        error.contains("1048577") && error.contains("1048576"),
        "{error}"
    );
}

/// A file that is removed at the end.
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
fn addresses_are_found_as_one_by_one() {
    let text = "10.0.0.0/8\n192.0.2.4/30\n192.0.2.9\n2001:db8::/33\n::/128\n255.255.255.255";
    let file = Temporary::new("found", text);
    let list = AddressList::load(&file.0).expect("a list");
    for address in [
        "9.255.255.255",
        "10.0.0.0",
        "10.255.255.255",
        "11.0.0.0",
        "192.0.2.3",
        "192.0.2.4",
        "192.0.2.7",
        "192.0.2.8",
        "192.0.2.9",
        "0.0.0.0",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:10.1.2.3",
        "2001:db8:7fff::",
        "2001:db8:8000::",
    ] {
        let address: IpAddr = address.parse().expect("an address");
        let one_by_one = list.prefixes().iter().any(|it| it.contains(address));
        assert_eq!(list.contains(address), one_by_one, "{address}");
    }
    assert!(list.contains([10, 1, 2, 3].into()) && !list.contains([11, 0, 0, 0].into()));
}

#[test]
fn wrong_files_leave_the_list_as_it_was() {
    let file = Temporary::new("reload", "192.0.2.1\n");
    let mut list = AddressList::load(&file.0).expect("a list");
    assert!(!list.has_changed());
    std::fs::write(&file.0, "192.0.2.1\n192.0.2.2\n").expect("ours");
    assert!(list.has_changed());
    list.reload().expect("in order");
    assert!(!list.has_changed());
    assert_eq!(list.prefixes().len(), 2);
    std::fs::write(&file.0, "192.0.2.1\nnonsense\n").expect("ours");
    let error = list.reload().expect_err("nonsense").to_string();
    assert!(
        error.contains("line 2") && error.contains("nonsense"),
        "{error}"
    );
    assert_eq!(list.prefixes().len(), 2);
    std::fs::remove_file(&file.0).expect("ours");
    assert!(list.has_changed());
    assert!(list.reload().is_err());
    assert_eq!(list.prefixes().len(), 2);
    let missing = AddressList::load(&file.0).expect_err("gone").to_string();
    let path = file.0.display().to_string();
    assert!(missing.contains(&path), "{missing}");
}
