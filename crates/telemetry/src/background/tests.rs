use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::*;

/// A disk that performs one write for each permit.
struct Gated {
    permits: Receiver<()>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // An error means that the test has ended.
        let _ = self.permits.recv();
        self.written.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn gated(writer: &BackgroundWriter) -> (Output, SyncSender<()>, Arc<Mutex<Vec<u8>>>) {
    let (sender, permits) = sync_channel(1000);
    let written = Arc::default();
    let disk = Gated {
        permits,
        written: Arc::clone(&written),
    };
    let output = writer.output(|| Ok(disk), |error| panic!("{error}"));
    (output, sender, written)
}

/// A timeout long enough for any machine. No test waits until it expires.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn writes_are_performed_in_order_after_the_output_is_dropped() {
    let writer = BackgroundWriter::new("test").expect("the thread starts");
    let (mut output, permits, written) = gated(&writer);
    for byte in 0..100 {
        output.write_all(&[byte]).expect("the queue has room");
        permits.send(()).expect("the thread runs");
    }
    drop(output);
    assert!(writer.flush(LONG));
    assert!(written.lock().iter().copied().eq(0..100));
    assert_eq!(writer.dropped(), DroppedWrites::default());
}

#[test]
fn full_queue_refuses_writes_and_counts_them() {
    let writer =
        BackgroundWriter::with_capacity("test", 3 * cost_of(1000)).expect("the thread starts");
    let (mut output, permits, written) = gated(&writer);
    for _ in 0..3 {
        output.write_all(&[1; 1000]).expect("the queue has room");
    }
    for _ in 0..2 {
        let error = output.write_all(&[2; 1000]).expect_err("the queue is full");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
    let dropped = DroppedWrites {
        writes: 2,
        bytes: 2000,
    };
    assert_eq!(writer.dropped(), dropped);
    for _ in 0..4 {
        permits.send(()).expect("the thread runs");
    }
    assert!(writer.flush(LONG));
    output
        .write_all(&[3; 1000])
        .expect("the queue has room again");
    assert!(writer.flush(LONG));
    let written = written.lock();
    assert_eq!(written.len(), 4000);
    assert!(!written.contains(&2) && written.ends_with(&[3; 1000]));
}

#[test]
fn many_small_writes_are_bounded_too() {
    let writer = BackgroundWriter::with_capacity("test", 10_000).expect("the thread starts");
    let (mut output, _permits, _) = gated(&writer);
    let accepted = (0..10_000).filter(|_| output.write_all(&[0]).is_ok());
    assert_eq!(accepted.count(), 10_000 / cost_of(1));
}

#[test]
fn flush_times_out_on_a_stalled_disk() {
    let writer = BackgroundWriter::new("test").expect("the thread starts");
    let (mut output, permits, _) = gated(&writer);
    output.write_all(b"x").expect("the queue has room");
    assert!(!writer.flush(Duration::from_millis(10)));
    permits.send(()).expect("the thread runs");
    assert!(writer.flush(LONG));
}

#[test]
fn failure_to_open_is_reported_once_and_writes_are_refused() {
    let writer = BackgroundWriter::new("test").expect("the thread starts");
    let (reported, errors) = sync_channel(10);
    let open = || Err::<io::Sink, _>(io::ErrorKind::NotFound.into());
    let mut output = writer.output(open, move |error| {
        // An error means that the test has ended.
        let _ = reported.send(error.kind());
    });
    output.write_all(b"x").expect("the write is queued");
    assert!(writer.flush(LONG));
    let error = output.write_all(b"x").expect_err("the file has failed");
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    assert_eq!(errors.recv(), Ok(io::ErrorKind::NotFound));
    assert!(errors.recv().is_err(), "the error is reported once");
}

#[test]
fn panic_of_a_writer_drops_later_writes_and_ends_flush() {
    struct Panics;
    impl Write for Panics {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            panic!("a disk of the test");
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let writer = BackgroundWriter::new("test").expect("the thread starts");
    let mut output = writer.output(|| Ok(Panics), |error| panic!("{error}"));
    output.write_all(b"x").expect("the write is queued");
    assert!(!writer.flush(LONG));
    let error = output.write_all(b"x").expect_err("the thread has ended");
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    assert_eq!(writer.dropped().writes, 1);
}
