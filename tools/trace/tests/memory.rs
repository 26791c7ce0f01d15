//! Measures the memory of reading long traces, in a separate process because of the peak.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};

use clap::Parser;
use courser_trace::explain::Explanation;
use courser_trace::qlog::{Reader, Series, Summary};
use courser_trace::{ComparedTrace, Comparison, Console, QlogCommand, run};
use flate2::Compression;
use flate2::write::GzEncoder;

/// A trace that is generated while it is read: packets of many streams, losses, gaps and metrics.
struct Endless {
    left: u64,
    number: u64,
    plain: bool,
    buffer: Vec<u8>,
    at: usize,
}

impl Endless {
    fn new(bytes: u64, plain: bool) -> Self {
        Self::of("server", bytes, plain)
    }

    /// The trace of one end. All packets of one end arrive at the other.
    fn of(end: &str, bytes: u64, plain: bool) -> Self {
        let point = format!("\"vantage_point\":{{\"type\":\"{end}\"}}");
        let head = match plain {
            true => {
                format!("{{\"qlog_version\":\"0.3\",\"traces\":[{{{point},\"events\":[\n")
            }
            false => format!("\u{1e}{{\"qlog_version\":\"0.3\",\"trace\":{{{point}}}}}\n"),
        };
        Self {
            left: bytes,
            number: 0,
            plain,
            buffer: head.into_bytes(),
            at: 0,
        }
    }

    fn refill(&mut self) {
        self.buffer.clear();
        self.at = 0;
        if self.left == 0 {
            return;
        }
        for _ in 0..100 {
            let number = self.number;
            self.number += 1;
            let time = number as f64 / 10.0;
            let (stream, offset) = (number / 40 * 4, number % 40 * 1000);
            let (from, to) = (number.saturating_sub(20), number.saturating_sub(10));
            let packet = format!(
                "\"header\":{{\"packet_type\":\"1RTT\",\"packet_number\":{number}}},\"raw\":{{\"length\":1250}}"
            );
            let events = [
                format!(
                    "{{\"time\":{time},\"name\":\"transport:packet_sent\",\"data\":{{{packet},\"frames\":[{{\"frame_type\":\"stream\",\"stream_id\":{stream},\"offset\":{offset},\"length\":1000}}]}}}}"
                ),
                format!(
                    "{{\"time\":{time},\"name\":\"transport:packet_received\",\"data\":{{{packet},\"frames\":[{{\"frame_type\":\"ack\",\"acked_ranges\":[[{from},{to}]]}},{{\"frame_type\":\"stream\",\"stream_id\":{},\"offset\":{},\"length\":100}}]}}}}",
                    stream + 1,
                    offset * 2
                ),
                format!(
                    "{{\"time\":{time},\"name\":\"recovery:metrics_updated\",\"data\":{{\"bytes_in_flight\":{},\"cwnd\":{},\"latest_rtt\":{}}}}}",
                    number % 7 * 1000,
                    10_000 + number % 90_000,
                    10 + number % 90
                ),
                format!(
                    "{{\"time\":{time},\"name\":\"recovery:packet_lost\",\"data\":{{{packet}}}}}"
                ),
            ];
            for event in events {
                if !self.plain {
                    self.buffer.push(0x1e);
                }
                self.buffer.extend_from_slice(event.as_bytes());
                self.buffer
                    .extend_from_slice(if self.plain { b",\n" } else { b"\n" });
            }
        }
        self.left = self.left.saturating_sub(self.buffer.len() as u64);
        if self.left == 0 && self.plain {
            self.buffer.extend_from_slice(b"]}]}");
        }
    }
}

impl Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.buffer.len() {
            self.refill();
        }
        let rest = &self.buffer[self.at..];
        let len = rest.len().min(out.len());
        out[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}

/// Returns the largest resident memory so far in MiB, if the system reports it.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024)
}

/// Returns the size of the traces in bytes, which `COURSER_TRACE_MB` overrides.
fn size(usual_megabytes: u64) -> u64 {
    let asked = std::env::var("COURSER_TRACE_MB").ok();
    let megabytes = asked.and_then(|text| text.parse().ok());
    megabytes.unwrap_or(usual_megabytes) * 1_000_000
}

#[test]
fn memory_does_not_grow_with_the_trace() {
    let bytes = size(24);
    for plain in [false, true] {
        let open = || Reader::new(BufReader::new(Endless::new(bytes, plain))).expect("a header");
        let explanation = Explanation::of(open());
        assert_eq!(
            explanation.unreadable_lines, 0,
            "{:?}",
            explanation.unreadable
        );
        assert!(explanation.counts.lost > 1000 && !explanation.findings.is_empty());
        let summary = Summary::of(&mut open());
        assert!(summary.sent.packets > bytes / 2000);
        let side = ComparedTrace::of(&mut open());
        assert!(!Comparison::of(&side, &side).lines().is_empty());
        let (series, _) = Series::of(&mut open(), 0.1);
        assert!(!series.sent.as_slice().is_empty());
    }
    assert_peak();
}

/// Fails if this process has had 200 MiB of memory or more.
fn assert_peak() {
    if let Some(peak) = peak() {
        assert!(peak < 200, "{peak} MiB");
        println!("peak {peak} MiB");
    }
}

/// `courser qlog`, as the binary has it.
#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: QlogCommand,
}

/// The output of a command.
#[derive(Default)]
struct Seen(String);

impl Console for Seen {
    fn line(&mut self, text: &str) {
        self.0 += &format!("{text}\n");
    }

    fn note(&mut self, text: &str) {
        self.line(text);
    }
}

/// Runs a command and returns its output.
fn courser_qlog(words: &[&Path]) -> String {
    let words = [Path::new("qlog")].into_iter().chain(words.iter().copied());
    let line = Line::try_parse_from(words).expect("valid flags");
    let mut seen = Seen::default();
    run(&line.command, &mut seen).expect("readable traces");
    seen.0
}

/// A directory that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("courser-trace-memory-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    /// Writes a trace of one end that is compressed with gzip.
    fn compressed(&self, end: &str, bytes: u64) -> PathBuf {
        let path = self.0.join(format!("{end}.sqlog.gz"));
        let file = BufWriter::new(File::create(&path).expect("a file"));
        let mut encoder = GzEncoder::new(file, Compression::fast());
        io::copy(&mut Endless::of(end, bytes, false), &mut encoder).expect("room");
        encoder.finish().expect("room");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A temporary directory that remains is harmless.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the number of packets sent according to a trace without unreadable lines, and removes the file.
fn packets_sent(path: &Path) -> u64 {
    let file = File::open(path).expect("a file");
    let mut reader = Reader::new(BufReader::new(file)).expect("a header");
    let summary = Summary::of(&mut reader);
    assert!(summary.unreadable.is_empty(), "{:?}", summary.unreadable);
    fs::remove_file(path).expect("a file");
    summary.sent.packets
}

#[test]
fn memory_of_commands_does_not_grow_with_compressed_traces() {
    let bytes = size(8);
    let folder = Folder::new();
    let [client, server] = ["client", "server"].map(|end| folder.compressed(end, bytes));
    let original = Reader::new(BufReader::new(Endless::of("client", bytes, false)));
    let packets = Summary::of(&mut original.expect("a header")).sent.packets;
    assert!(packets > bytes / 2000);
    for command in ["stats", "explain", "summary"] {
        let text = courser_qlog(&[Path::new(command), &client]);
        assert!(!text.contains("unreadable"), "{text}");
        assert!(text.lines().count() > 5, "{text}");
    }
    let text = courser_qlog(&[Path::new("diff"), &client, &server]);
    assert!(text.lines().count() > 5, "{text}");
    for name in ["converted.sqlog", "converted.qlog"] {
        let output = folder.0.join(name);
        courser_qlog(&[Path::new("convert"), &client, Path::new("-o"), &output]);
        assert_eq!(packets_sent(&output), packets, "{name}");
    }
    let output = folder.0.join("both.sqlog");
    let text = courser_qlog(&[
        Path::new("merge"),
        &client,
        &server,
        Path::new("-o"),
        &output,
    ]);
    // A merge compares a limited number of packets (limit K209).
    let compared = packets.min(1 << 18);
    let whole = format!("0 of {compared} packets from the client did not reach the server");
    assert!(text.contains(&whole), "{text}");
    assert_eq!(packets_sent(&output), 2 * packets);
    assert_peak();
}
