//! Files of a disk that stalls, requested by clients of several sources.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use axum::Router;
use courser::files::{Body, Files};
use courser::server::{Peer, Protocol};
use http::Response;

use super::client::Client;
use super::{Running, start, within};
use crate::common::until;

/// A folder that takes until the end of the sender to list.
fn stalling(ended: mpsc::Receiver<()>, stalled: Arc<AtomicUsize>) -> courser::files::Builder {
    let ended = Arc::new(Mutex::new(ended));
    Files::builder()
        .threads(THREADS)
        .thread_wait(Duration::from_millis(500))
        .client(|it| it.get().map(Peer::address))
        .on_folder(move |folder, _| {
            let (ended, stalled) = (ended.clone(), stalled.clone());
            async move {
                let read = folder.read(move |_| {
                    stalled.fetch_add(1, Relaxed);
                    let _ = ended.lock().expect("no panic").recv();
                });
                match read.await {
                    Ok(()) => Response::new(Body::full("listed")),
                    Err(reason) => reason.into_response(),
                }
            }
        })
}

async fn connect(running: &Running, protocol: Protocol, source: [u8; 4]) -> Client {
    let address = running.handle.local_addr();
    let source = SocketAddr::from((source, 0));
    let client = Client::connect_from(source, protocol, address, &running.identity);
    within(client).await.expect("admitted")
}

/// Attack A270. Clients of one network hold all the threads that it may have, and have more requests waiting.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_whose_files_stall_delays_no_other() {
    let folder = std::env::temp_dir().join(format!("courser-stalled-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("temporary files");
    let (end, ended) = mpsc::channel();
    let stalled = Arc::new(AtomicUsize::new(0));
    let files = stalling(ended, stalled.clone());
    let files = files.open(&folder).expect("a folder");
    let running = start(Router::new().fallback_service(files.clone()));
    let mut greedy = Vec::new();
    for number in 0..2 * THREADS {
        let source = [127, 1, 0, 1 + u8::try_from(number % 8).expect("small")];
        let protocol = Protocol::ALL[number % 3];
        let mut client = connect(&running, protocol, source).await;
        greedy.push(tokio::spawn(async move {
            let response = client.get("/").await.expect("a response");
            let after = response.headers().get("retry-after").cloned();
            (response.status().as_u16(), after)
        }));
    }
    until(|| stalled.load(Relaxed) == THREADS - 1).await;
    for (number, protocol) in Protocol::ALL.into_iter().enumerate() {
        let name = format!("new-{number}");
        // A thread that may wait reads files that have just changed.
        std::fs::write(folder.join(&name), "content").expect("temporary files");
        let mut honest = connect(&running, protocol, [127, 2, 0, 1]).await;
        let text = within(honest.text(&format!("/{name}"))).await;
        assert_eq!(text, "content", "{protocol}");
    }
    until(|| files.stats().busy == 1 + THREADS as u64).await;
    drop(end);
    let mut refused = 0;
    for request in greedy {
        match within(request).await.expect("no panic") {
            (200, _) => {}
            (503, Some(after)) if after == "1" => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(refused, 1 + THREADS);
    std::fs::remove_dir_all(&folder).expect("temporary files");
}

const THREADS: usize = 8;
