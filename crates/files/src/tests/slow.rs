//! A stalled disk that blocks every thread for blocking calls.

use std::sync::mpsc;

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
    let receiver = std::sync::Arc::new(std::sync::Mutex::new(receiver));
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
