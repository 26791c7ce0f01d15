//! Memory while a long trace is read. It is a process of its own, because its peak is measured.

use std::io::{BufReader, Read};

use courser_qlog::{Reader, Series, Summary};
use courser_trace::explain::Explanation;
use courser_trace::{Comparison, Side};

/// A trace that is made while it is read: packets of many streams, losses, gaps and metrics.
struct Endless {
    left: u64,
    number: u64,
    plain: bool,
    buffer: Vec<u8>,
    at: usize,
}

impl Endless {
    fn new(bytes: u64, plain: bool) -> Self {
        let head = match plain {
            true => {
                "{\"qlog_version\":\"0.3\",\"traces\":[{\"vantage_point\":{\"type\":\"server\"},\"events\":[\n"
            }
            false => {
                "\u{1e}{\"qlog_version\":\"0.3\",\"trace\":{\"vantage_point\":{\"type\":\"server\"}}}\n"
            }
        };
        Self {
            left: bytes,
            number: 0,
            plain,
            buffer: head.as_bytes().to_vec(),
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

/// Returns the largest resident memory so far, in MiB, where the system says so.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024)
}

/// The size of the traces in MB; `COURSER_TRACE_MB` sets another.
fn megabytes() -> u64 {
    let asked = std::env::var("COURSER_TRACE_MB").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(24)
}

#[test]
fn memory_does_not_grow_with_the_trace() {
    let bytes = megabytes() * 1_000_000;
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
        let side = Side::of(&mut open());
        assert!(!Comparison::of(&side, &side).lines().is_empty());
        let (series, _) = Series::of(&mut open(), 0.1);
        assert!(!series.sent.as_slice().is_empty());
    }
    if let Some(peak) = peak() {
        assert!(peak < 200, "{peak} MiB");
        println!("peak {peak} MiB");
    }
}
