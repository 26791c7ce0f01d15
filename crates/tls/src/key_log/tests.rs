use std::sync::mpsc::{Receiver, sync_channel};

use super::*;

/// A disk that performs one write for each permit.
struct Gated(Receiver<()>, Arc<Mutex<Vec<u8>>>);

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // An error means that the test has ended.
        let _ = self.0.recv();
        self.1.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_have_the_form_that_analysers_read() {
    let path = std::env::temp_dir().join(format!("courser-queued-{}", std::process::id()));
    let log = QueuedKeyLog::append_to(path.clone()).expect("the thread starts");
    log.log("EXPORTER_SECRET", &[0, 0xab], &[1; 3]);
    assert!(log.flush());
    let written = std::fs::read_to_string(&path).expect("the file was written");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&path)
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "only the owner may decrypt captures");
    }
    std::fs::remove_file(&path).expect("the file can be removed");
    assert_eq!(written, "EXPORTER_SECRET 00ab 010101\n");
    assert!(log.take_error().is_none());
}

#[test]
fn stalled_disk_drops_counts_and_marks_lines() {
    let (permits, disk) = sync_channel(100);
    let written = Arc::default();
    let disk = Gated(disk, Arc::clone(&written));
    let writer = BackgroundWriter::with_capacity("test", 400).expect("the thread starts");
    let log = QueuedKeyLog::with_output(writer, || Ok(disk));
    for _ in 0..5 {
        log.log("A", &[1], &[2]);
    }
    let dropped = log.dropped();
    assert!((2..5).contains(&dropped), "{dropped} dropped");
    for _ in 0..5 {
        permits.send(()).expect("the thread runs");
    }
    assert!(log.flush());
    log.log("B", &[1], &[2]);
    assert!(log.flush());
    let written = String::from_utf8(written.lock().clone()).expect("the lines are text");
    let lines = 5 - usize::try_from(dropped).expect("the number is small");
    let expected = "A 01 02\n".repeat(lines);
    let mark = format!("# {dropped} lines were dropped here\nB 01 02\n");
    assert_eq!(written, expected + &mark);
}

#[test]
fn file_that_cannot_be_opened_is_reported_by_take_error() {
    let path = std::env::temp_dir().join("courser-no-such-folder/keys");
    let log = QueuedKeyLog::append_to(path).expect("the thread starts");
    log.log("A", &[1], &[2]);
    assert!(log.flush());
    log.log("A", &[1], &[2]);
    let error = log.take_error().expect("the error was reported");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert_eq!(log.dropped(), 0);
}
