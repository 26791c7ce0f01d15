//! The file of `--trace` and `--trace-ascii`, in the format of curl.

use std::fs::File;
use std::io::Write;

use courser_base::Mutex;

use super::exit::{Failed, WRITE_ERROR};

/// The settings of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TracePlan {
    /// The file; `-` for standard output, and `%` for standard error.
    pub(crate) path: String,
    /// True to show text only, false to show hexadecimal digits as well.
    pub(crate) is_ascii: bool,
}

/// Writes what is sent and received to a file.
pub(crate) struct Trace {
    out: Mutex<Box<dyn Write + Send>>,
    is_ascii: bool,
}

impl Trace {
    pub(crate) fn open(plan: &TracePlan) -> Result<Self, Failed> {
        let out: Box<dyn Write + Send> = match &*plan.path {
            "-" => Box::new(std::io::stdout()),
            "%" => Box::new(std::io::stderr()),
            path => {
                let mut options = File::options();
                options.write(true).create(true).truncate(true);
                // Content may be confidential.
                #[cfg(unix)]
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
                let file = options.open(path).map_err(|error| {
                    let text = format!("cannot write the trace to {path}: {error}");
                    Failed::new(WRITE_ERROR, text)
                })?;
                Box::new(file)
            }
        };
        Ok(Self {
            out: Mutex::new(out),
            is_ascii: plan.is_ascii,
        })
    }

    /// Writes a line about a connection.
    pub(crate) fn info(&self, text: &str) {
        self.write(&format!("== Info: {text}\n"));
    }

    /// Writes bytes after a line that names them, such as `=> Send data`.
    pub(crate) fn dump(&self, what: &str, bytes: &[u8]) {
        let size = bytes.len();
        let mut text = format!("{what}, {size} bytes (0x{size:x})\n");
        match self.is_ascii {
            true => ascii(bytes, &mut text),
            false => hexadecimal(bytes, &mut text),
        }
        self.write(&text);
    }

    fn write(&self, text: &str) {
        // A trace that cannot be written does not end the transfer.
        let _ = self.out.lock().write_all(text.as_bytes());
    }
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace")
            .field("is_ascii", &self.is_ascii)
            .finish_non_exhaustive()
    }
}

/// Appends lines of 16 bytes, as hexadecimal digits and as text.
fn hexadecimal(bytes: &[u8], text: &mut String) {
    for (index, line) in bytes.chunks(HEX_WIDTH).enumerate() {
        text.push_str(&format!("{:04x}: ", index * HEX_WIDTH));
        for byte in line {
            text.push_str(&format!("{byte:02x} "));
        }
        text.push_str(&"   ".repeat(HEX_WIDTH - line.len()));
        text.extend(line.iter().copied().map(shown));
        text.push('\n');
    }
}

/// Appends lines of at most 64 bytes of text. A line break of HTTP begins the next one.
fn ascii(bytes: &[u8], text: &mut String) {
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let line = &rest[..rest.len().min(ASCII_WIDTH)];
        let end = rest.windows(2).position(|two| two == b"\r\n");
        let end = end.filter(|end| *end <= line.len());
        let line = &line[..end.unwrap_or(line.len())];
        text.push_str(&format!("{at:04x}: "));
        text.extend(line.iter().copied().map(shown));
        text.push('\n');
        at += line.len() + if end.is_some() { 2 } else { 0 };
    }
}

/// Returns a byte as text; a dot for those that might control a terminal.
fn shown(byte: u8) -> char {
    match byte {
        0x20..=0x7e => char::from(byte),
        _ => '.',
    }
}

const HEX_WIDTH: usize = 16;
const ASCII_WIDTH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(dump: fn(&[u8], &mut String), bytes: &[u8]) -> Vec<String> {
        let mut text = String::new();
        dump(bytes, &mut text);
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn bytes_are_shown_as_digits_and_text() {
        assert_eq!(
            lines(hexadecimal, b"GET / HTTP/1.1\r\nx\x1b"),
            [
                "0000: 47 45 54 20 2f 20 48 54 54 50 2f 31 2e 31 0d 0a GET / HTTP/1.1..",
                "0010: 78 1b                                           x.",
            ]
        );
    }

    #[test]
    fn text_is_broken_at_line_breaks_and_after_64_bytes() {
        let long = [b'y'; 70];
        let bytes = [b"GET / HTTP/1.1\r\n\r\n".as_slice(), &long].concat();
        assert_eq!(
            lines(ascii, &bytes),
            [
                "0000: GET / HTTP/1.1".to_owned(),
                "0010: ".to_owned(),
                format!("0012: {}", "y".repeat(64)),
                format!("0052: {}", "y".repeat(6)),
            ]
        );
        let full = [&[b'z'; 64][..], b"\r\n"].concat();
        assert_eq!(lines(ascii, &full), [format!("0000: {}", "z".repeat(64))]);
    }
}
