//! A stalled disk that blocks every thread for blocking calls.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::*;

const THREADS: usize = 2;
const COLD: usize = 200;

/// A runtime with few threads for blocking calls.
fn runtime() -> Runtime {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(THREADS)
        .enable_all()
        .build();
    runtime.expect("threads")
}

/// Blocks all threads for blocking calls until the sender is dropped.
fn stall_disk() -> mpsc::Sender<()> {
    let (sender, receiver) = mpsc::channel();
    let receiver = Arc::new(std::sync::Mutex::new(receiver));
    for _ in 0..THREADS {
        let receiver = receiver.clone();
        tokio::task::spawn_blocking(move || receiver.lock().expect("no panic").recv());
    }
    sender
}

#[test]
fn files_in_memory_are_served_while_every_other_read_waits_for_a_disk() {
    let folder = Folder::new();
    folder.file("hot", "in memory");
    let files = folder.serve();
    runtime().block_on(async {
        for _ in 0..3 {
            assert_eq!(
                get(&files, "/hot").await.content.expect("content"),
                "in memory"
            );
        }
        let disk = stall_disk();
        let read = |number: usize| -> JoinHandle<Bytes> {
            // A thread that may wait reads files that have just changed.
            let path = folder.path(&format!("cold-{number}"));
            std::fs::write(path, number.to_string()).expect("a file can be written");
            let request = Request::get(format!("/cold-{number}")).body(());
            let answering = files.clone().call(request.expect("a request"));
            tokio::spawn(async move {
                let body = answering.await.expect("never fails").into_body();
                body.collect().await.expect("content").to_bytes()
            })
        };
        let reads: Vec<_> = (0..COLD).map(read).collect();
        let hits = async {
            for _ in 0..1000 {
                let got = get(&files, "/hot").await;
                assert_eq!(
                    (got.status, got.content.expect("content")),
                    (StatusCode::OK, "in memory".into())
                );
                tokio::task::yield_now().await;
            }
        };
        let limit = Duration::from_secs(20);
        let hits = tokio::time::timeout(limit, hits).await;
        hits.expect("requests wait for a disk that they do not need");
        let waiting = reads.iter().filter(|read| !read.is_finished()).count();
        // If the machine paused this thread after a write, that request was answered at once.
        assert!(waiting > COLD / 2, "{waiting} wait for the stalled disk");
        drop(disk);
        for (number, read) in reads.into_iter().enumerate() {
            let content = tokio::time::timeout(limit, read).await.expect("in time");
            assert_eq!(content.expect("no panic"), number.to_string());
        }
    });
}

/// A disk that stalls until this is dropped.
struct StalledDisk {
    _end: mpsc::Sender<()>,
    /// Number of threads that wait for it.
    waiting: Arc<AtomicUsize>,
}

impl StalledDisk {
    /// Returns the settings of a folder whose requests for itself wait for the disk.
    fn of(builder: crate::Builder) -> (crate::Builder, Self) {
        let (end, ended) = mpsc::channel::<()>();
        let ended = Arc::new(std::sync::Mutex::new(ended));
        let waiting = Arc::new(AtomicUsize::new(0));
        let disk = Self {
            _end: end,
            waiting: waiting.clone(),
        };
        let builder = builder.on_folder(move |folder, _| {
            let (ended, waiting) = (ended.clone(), waiting.clone());
            async move {
                let read = folder.read(move |_| {
                    waiting.fetch_add(1, Relaxed);
                    let _ = ended.lock().expect("no panic").recv();
                });
                match read.await {
                    Ok(()) => http::Response::new(crate::Body::full("listed")),
                    Err(reason) => reason.into_response(),
                }
            }
        });
        (builder, disk)
    }

    async fn wait_for(&self, threads: usize) {
        while self.waiting.load(Relaxed) < threads {
            tokio::task::yield_now().await;
        }
    }
}

fn from(client: [u8; 4], path: &str) -> Request<()> {
    let client = std::net::SocketAddr::from((client, 1));
    let request = Request::get(path).extension(client);
    request.body(()).expect("a request")
}

const GREEDY: [u8; 4] = [192, 0, 2, 1];
const HONEST: [u8; 4] = [198, 51, 100, 1];

/// Attack A270.
#[test]
fn client_whose_reads_stall_delays_no_other() {
    let folder = Folder::new();
    let builder = Files::builder()
        .threads(4)
        .thread_wait(Duration::from_millis(300))
        .client(|it| it.get().copied());
    let (builder, disk) = StalledDisk::of(builder);
    let files = folder.serve_with(builder);
    let runtime = Builder::new_multi_thread().enable_all().build();
    runtime.expect("threads").block_on(async {
        let greedy: Vec<_> = (0..20)
            .map(|_| {
                let files = files.clone();
                tokio::spawn(async move { send(&files, from(GREEDY, "/")).await })
            })
            .collect();
        disk.wait_for(3).await;
        for number in 0..5 {
            let name = format!("new-{number}");
            std::fs::write(folder.path(&name), "content").expect("a file can be written");
            let got = send(&files, from(HONEST, &format!("/{name}"))).await;
            assert_eq!((got.status, got.text()), (StatusCode::OK, "content".into()));
        }
        let mut refused = 0;
        while files.stats().busy < 17 {
            tokio::task::yield_now().await;
        }
        assert_eq!(files.stats().threads, 3);
        drop(disk);
        for request in greedy {
            let got = request.await.expect("no panic");
            if got.status == StatusCode::SERVICE_UNAVAILABLE {
                assert_eq!(got.header("retry-after"), "1");
                refused += 1;
            }
        }
        assert_eq!(refused, 17);
    });
}

#[tokio::test]
async fn content_that_waits_too_long_for_a_thread_ends_with_a_reason() {
    let folder = Folder::new();
    folder.file("large", vec![7; 1 << 20]);
    let builder = Files::builder()
        .threads(1)
        .thread_wait(Duration::from_millis(20));
    let (builder, disk) = StalledDisk::of(builder);
    let files = folder.serve_with(builder);
    let Ok(response) = files
        .clone()
        .call(Request::get("/large").body(()).expect("a request"))
        .await;
    let stalled = files.clone();
    let stalled = tokio::spawn(async move { send(&stalled, from(GREEDY, "/")).await });
    disk.wait_for(1).await;
    let mut body = response.into_body();
    // As on a disk that has nothing of the file in memory.
    body.read_with_threads();
    let error = loop {
        match body.frame().await.expect("more than the first piece") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    let reason = error
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::get_ref);
    let reason = reason.and_then(|it| it.downcast_ref::<crate::Unavailable>());
    assert_eq!(reason, Some(&crate::Unavailable::Busy));
    drop(disk);
    assert_eq!(stalled.await.expect("no panic").status, StatusCode::OK);
}
