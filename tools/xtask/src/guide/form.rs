//! The form of an output: the output without figures that differ from run to run.

/// Returns true if two outputs have the same form. A line `...` of the page stands for any lines.
pub(super) fn agree(page: &[&str], output: &[&str]) -> bool {
    let page: Vec<String> = page.iter().map(|line| form(line)).collect();
    let output: Vec<String> = output.iter().map(|line| form(line)).collect();
    matches(&page, &output)
}

fn matches(page: &[String], output: &[String]) -> bool {
    match page.split_first() {
        None => output.is_empty(),
        Some((first, rest)) if first == ANY => {
            (0..=output.len()).any(|skipped| matches(rest, &output[skipped..]))
        }
        Some((first, rest)) => {
            let next = output.split_first();
            next.is_some_and(|(line, others)| first == line && matches(rest, others))
        }
    }
}

/// Returns a line with `0` for each number, without the unit after it, with `#` for each hash, and with
/// single spaces. Lines of `─`, `-` and `=` have one of them, and bars are left out.
///
/// Names of days and months become `~`, and so does the value of an `etag`. Versions and status codes of HTTP are not
/// numbers that vary: they stay, and so does a line that is one number of up to three digits, as exit codes are.
pub(super) fn form(line: &str) -> String {
    if line.starts_with("etag: ") {
        return "etag: ~".to_owned();
    }
    let is_code = |word: &str| word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    if is_code(line) {
        return line.to_owned();
    }
    let mut is_after_version = false;
    let mut words = Vec::new();
    for word in line.split_whitespace() {
        let is_status = is_after_version && is_code(word);
        is_after_version = word.starts_with("HTTP/");
        let word = match is_status || is_after_version || names_protocol(word) {
            true => word.to_owned(),
            false => form_of_word(word),
        };
        if word.is_empty() {
            continue;
        }
        let follows_number = words
            .last()
            .is_some_and(|last: &String| last.ends_with('0'));
        let bare = word.trim_end_matches([',', ';', ')', '.', ':']);
        if follows_number && UNITS.contains(&bare) {
            let rest = &word[bare.len()..];
            let last = words.last_mut().expect("a number precedes the unit");
            last.push_str(rest);
            continue;
        }
        words.push(word);
    }
    words.join(" ")
}

/// Returns true for labels of metrics with a protocol or a status code.
fn names_protocol(word: &str) -> bool {
    word.contains("protocol=\"") || word.contains("code=\"")
}

fn form_of_word(word: &str) -> String {
    let mut formed = String::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let hex = run(rest, |c| c.is_ascii_hexdigit());
        let base64 = run(rest, |c| c.is_ascii_alphanumeric() || "+/=".contains(c));
        let name = run(rest, |c| c.is_ascii_alphabetic());
        let number = run(rest, |c| c.is_ascii_digit() || c == '.' || c == ',');
        let number = number.trim_end_matches(['.', ',']);
        if base64.len() >= HASH {
            formed.push('#');
            rest = &rest[base64.len()..];
        } else if NAMES_OF_TIMES.contains(&name) && !formed.ends_with(char::is_alphanumeric) {
            formed.push('~');
            rest = &rest[name.len()..];
        } else if is_hash(hex) {
            formed.push('#');
            rest = &rest[hex.len()..];
        } else if first.is_ascii_digit() && !number.is_empty() {
            formed.push('0');
            rest = &rest[number.len()..];
            let unit = run(rest, |c| c.is_alphabetic() || c == '/' || c == '%');
            if UNITS.contains(&unit) {
                rest = &rest[unit.len()..];
            }
        } else {
            let length = first.len_utf8();
            let is_rule = matches!(first, '─' | '-' | '=') && formed.ends_with(first);
            let is_bar = ('▀'..='▟').contains(&first);
            if !is_rule && !is_bar {
                formed.push(first);
            }
            rest = &rest[length..];
        }
    }
    formed
}

/// Returns true for a run of hexadecimal digits that is a hash or an ID. Ten million and more are numbers.
fn is_hash(hex: &str) -> bool {
    let is_decimal = hex.bytes().all(|byte| byte.is_ascii_digit());
    let has_digit = hex.contains(|c: char| c.is_ascii_digit());
    hex.len() >= 16 && is_decimal || hex.len() >= 8 && has_digit && !is_decimal
}

/// Returns the characters at the start of `text` that `is_part` accepts.
fn run(text: &str, is_part: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    &text[..end]
}

/// A line of a page that stands for any number of lines.
pub(super) const ANY: &str = "...";

/// The length of a SHA-256 hash in base64, without its padding.
const HASH: usize = 43;

const NAMES_OF_TIMES: &[&str] = &[
    "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan", "Feb", "Mar", "Apr", "May", "Jun",
    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Units that depend on the size of a figure.
const UNITS: &[&str] = &[
    "ns", "us", "µs", "ms", "s", "min", "h", "B", "bytes", "k", "M", "G", "kB", "KB", "MB", "GB",
    "KiB", "MiB", "GiB", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "B/s", "kB/s", "KB/s", "MB/s",
    "GB/s", "KiB/s", "MiB/s", "GiB/s", "/s", "k/s", "M/s",
];
