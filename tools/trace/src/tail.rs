//! Follows a trace while it is written.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use courser_units::{bits, seconds, size};

use crate::qlog::{Event, EventKind, Reader};
use crate::{Error, text};

/// A file that is still being written. It ends when nothing is added for `wait`, or soon after its
/// connection has closed.
struct Growing {
    file: File,
    wait: Duration,
    /// The last bytes read, which are searched for the close of the connection.
    last: VecDeque<u8>,
    is_closed: bool,
    /// True once the end was reported. A reader may read again after the end.
    is_over: bool,
}

impl Read for Growing {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let since = Instant::now();
        while !self.is_over {
            let len = self.file.read(out)?;
            if len > 0 {
                self.detect_close(&out[..len]);
                return Ok(len);
            }
            let wait = match self.is_closed {
                true => self.wait.min(AFTER_CLOSE),
                false => self.wait,
            };
            self.is_over = since.elapsed() >= wait;
            if !self.is_over {
                std::thread::sleep(POLL);
            }
        }
        Ok(0)
    }
}

impl Growing {
    fn detect_close(&mut self, bytes: &[u8]) {
        self.last.extend(bytes);
        let text: &[u8] = self.last.make_contiguous();
        self.is_closed |= text.windows(CLOSED.len()).any(|window| window == CLOSED);
        let excess = self.last.len().saturating_sub(CLOSED.len());
        self.last.drain(..excess);
    }
}

/// Returns the trace itself, or the newest trace in a directory.
fn newest(path: &Path) -> Result<PathBuf, Error> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let name = path.display();
    let failed = |error| Error::new(format!("cannot read {name}: {error}"));
    let mut found = None;
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let is_trace = entry
            .path()
            .extension()
            .is_some_and(|it| it == courser_qlog::EXTENSION);
        let modified = entry.metadata().and_then(|it| it.modified());
        if let Ok(modified) = modified
            && is_trace
        {
            found = found.max(Some((modified, entry.path())));
        }
    }
    let newest = found.ok_or_else(|| Error::new(format!("{name} has no traces yet")))?;
    Ok(newest.1)
}

/// The figures of one line of output.
#[derive(Debug, Default)]
struct Interval {
    index: u64,
    /// Seconds from the first event of the trace to the beginning of the interval.
    start: f64,
    /// Events in the interval, which is not printed without any.
    events: u64,
    sent: u64,
    received: u64,
    lost: u64,
    window: Option<u64>,
    rtt: Option<f64>,
    limit: Option<String>,
}

impl Interval {
    fn on_event(&mut self, event: &Event) {
        self.events += 1;
        match &event.kind {
            EventKind::PacketSent(packet) => {
                self.sent = self.sent.saturating_add(packet.len);
            }
            EventKind::PacketReceived(packet) => {
                self.received = self.received.saturating_add(packet.len);
            }
            EventKind::PacketLost(_) => self.lost += 1,
            EventKind::Metrics(metrics) => {
                self.window = metrics.congestion_window.or(self.window);
                self.rtt = metrics.smoothed_rtt.or(self.rtt);
            }
            EventKind::Limited { reason } => self.limit.clone_from(reason),
            _ => {}
        }
    }

    /// Returns the line of this interval, and begins the interval with the index `next`.
    fn next(&mut self, width: f64, next: u64) -> String {
        let end = self.index.saturating_add(1) as f64 * width;
        let line = self.line(width, end);
        (self.index, self.start) = (next, next as f64 * width);
        line
    }

    /// Returns a line about the time from `start` to `end`, and starts the next line at `end`.
    fn line(&mut self, width: f64, end: f64) -> String {
        // Packets at a single moment have no rate: theirs is averaged over a part of the interval.
        let time = (end - self.start).max(width * MIN_PART);
        let [sent, received] = [self.sent, self.received].map(|it| bits(it as f64 * 8.0 / time));
        let mut line = format!(
            "{:>9}  sent {sent:>11}  received {received:>11}",
            seconds(end)
        );
        if let Some(window) = self.window {
            line += &format!("  window {:>8}", size(window));
        }
        if let Some(rtt) = self.rtt {
            line += &format!("  rtt {:>8}", seconds(rtt));
        }
        line += &format!("  lost {}", self.lost);
        if let Some(limit) = &self.limit {
            line += &format!("  limited by {}", text::clean(limit));
        }
        (self.sent, self.received, self.lost, self.events) = (0, 0, 0, 0);
        self.start = end;
        line
    }
}

/// Returns the remark for a trace that ended because no more records arrived for `wait`.
pub(crate) fn timeout(wait: Duration) -> String {
    format!(
        "stopped because no records arrived for {}: the connection may still be open (--wait sets this time)",
        seconds(wait.as_secs_f64())
    )
}

/// The result of following a trace to its end.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) path: PathBuf,
    pub(crate) events: u64,
    /// True if the trace records the close of its connection. Otherwise no records arrived in time.
    pub(crate) is_closed: bool,
}

/// Follows a trace, and calls `line` with the text for each interval.
pub(crate) fn tail(
    path: &Path,
    interval: Duration,
    wait: Duration,
    line: impl FnMut(&str),
) -> Result<Followed, Error> {
    let path = newest(path)?;
    let name = path.display().to_string();
    let file = File::open(&path);
    let file = file.map_err(|error| Error::new(format!("cannot read {name}: {error}")))?;
    let mut growing = Growing {
        file,
        wait,
        last: VecDeque::new(),
        is_closed: false,
        is_over: false,
    };
    let events = follow(&name, &mut growing, interval, line)?;
    Ok(Followed {
        path,
        events,
        is_closed: growing.is_closed,
    })
}

/// Follows a trace that is read from `content`, and calls `line` with the text for each interval. Returns
/// the number of events.
pub(crate) fn follow(
    name: &str,
    content: impl Read,
    interval: Duration,
    mut line: impl FnMut(&str),
) -> Result<u64, Error> {
    let reader = Reader::new(BufReader::new(content));
    let mut reader = reader.map_err(|error| Error::new(format!("{name}: {error}")))?;
    line(&format!("{name} ({})", text::origin(reader.about())));
    let width = interval.as_secs_f64();
    let mut current = Interval::default();
    let mut events = 0;
    let mut last = 0.0_f64;
    let mut is_closed = false;
    for event in reader.by_ref().flatten() {
        events += 1;
        // The cast saturates.
        let index = (event.time / width) as u64;
        if index > current.index {
            line(&current.next(width, index));
        }
        last = last.max(event.time);
        current.on_event(&event);
        if let EventKind::Closed(closed) = &event.kind {
            let reason = closed.reason.as_deref().or(closed.trigger.as_deref());
            let reason = text::clean(reason.unwrap_or("no reason"));
            line(&current.line(width, last));
            is_closed = true;
            line(&format!("{:>9}  closed: {reason}", seconds(event.time)));
        }
    }
    if current.events > 0 && !is_closed {
        line(&current.line(width, last));
    }
    if let Some(warning) = text::ignored(reader.about()) {
        line(&warning);
    }
    Ok(events)
}

/// The time between two checks of a file.
const POLL: Duration = Duration::from_millis(50);
/// The smallest part of an interval over which a rate is averaged.
const MIN_PART: f64 = 0.01;
/// The time for which records may follow the close of a connection.
const AFTER_CLOSE: Duration = Duration::from_millis(500);
/// The name of the event for the close of a connection.
const CLOSED: &[u8] = b":connection_closed\"";

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn growing_trace_is_followed_until_its_connection_closes() {
        let folder = std::env::temp_dir().join(format!("courser-tail-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a directory");
        let path = folder.join("a.sqlog");
        let packet = |time| {
            format!(
                "\u{1e}{{\"time\":{time},\"name\":\"quic:packet_sent\",\"data\":{{\"raw\":{{\"length\":125000}}}}}}\n"
            )
        };
        let head = "\u{1e}{\"trace\":{\"vantage_point\":{\"type\":\"server\"}}}\n";
        fs::write(&path, head.to_owned() + &packet(0)).expect("written");
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .expect("an entry");
        let mut rest = vec![
            packet(500),
            packet(1500),
            "\u{1e}{\"time\":1600,\"name\":\"quic:connection_closed\",\"data\":{\"reason\":\"done\"}}\n".to_owned(),
        ]
        .into_iter();
        let mut lines = Vec::new();
        let interval = Duration::from_secs(1);
        // The rest is written once the beginning has been read.
        let found = tail(&folder, interval, Duration::from_secs(20), |text| {
            lines.push(text.to_owned());
            for record in rest.by_ref() {
                file.write_all(record.as_bytes()).expect("written");
            }
        })
        .expect("followed");
        assert_eq!((found.path, found.events, found.is_closed), (path, 4, true));
        assert!(
            lines[0].ends_with("a.sqlog (server, JSON-SEQ)"),
            "{lines:?}"
        );
        assert!(lines[1].contains("1.00 s  sent 2.00 Mbit/s"), "{lines:?}");
        assert!(lines[2].contains("1.60 s  sent 1.67 Mbit/s"), "{lines:?}");
        assert!(lines[3].contains("1.60 s  closed: done"), "{lines:?}");
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn last_interval_is_printed_without_a_close_after_one_wait() {
        let folder = std::env::temp_dir().join(format!("courser-cut-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a directory");
        let path = folder.join("a.sqlog");
        let text = "\u{1e}{\"trace\":{}}\n\u{1e}{\"time\":0,\"name\":\"quic:a\"}\n\
            \u{1e}{\"time\":500,\"name\":\"quic:packet_sent\",\"data\":{\"raw\":{\"length\":62500}}}\n";
        fs::write(&path, text).expect("written");
        let mut lines = Vec::new();
        let wait = Duration::from_millis(400);
        let since = Instant::now();
        let found = tail(&path, Duration::from_secs(1), wait, |text| {
            lines.push(text.to_owned());
        });
        let found = found.expect("followed");
        assert_eq!((found.events, found.is_closed), (2, false));
        assert!(since.elapsed() < wait * 2, "{:?}", since.elapsed());
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[1].contains("500 ms  sent 1.00 Mbit/s"), "{lines:?}");
        // A reader may read again after the end.
        let file = File::open(&path).expect("a file");
        let mut growing = Growing {
            file,
            wait,
            last: VecDeque::new(),
            is_closed: false,
            is_over: false,
        };
        let since = Instant::now();
        let mut all = Vec::new();
        growing.read_to_end(&mut all).expect("read");
        assert_eq!(growing.read(&mut [0; 8]).expect("over"), 0);
        assert!(since.elapsed() < wait * 2, "{:?}", since.elapsed());
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn directory_without_traces_is_reported() {
        let folder = std::env::temp_dir().join(format!("courser-no-tail-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a directory");
        let error = newest(&folder).expect_err("nothing there").to_string();
        assert!(error.ends_with("has no traces yet"), "{error}");
        fs::remove_dir_all(folder).expect("removed");
    }
}
