use std::future::poll_fn;
use std::pin::Pin;

use courser_base::demand;
use http_body::Body as _;

use super::*;

/// Requests far more files than fit into memory.
#[tokio::test]
async fn memory_stays_within_its_budget() {
    let folder = Folder::new();
    for number in 0..400 {
        folder.file(&format!("{number}"), vec![b'x'; 10_000]);
    }
    let budget = 1 << 20;
    let files = folder.serve_with(Files::builder().memory(budget));
    for round in 0..3 {
        for number in (0..400).flat_map(|number| [number, number]) {
            let got = get(&files, &format!("/{number}")).await;
            assert_eq!(got.content.expect("content").len(), 10_000);
            let stats = files.stats();
            assert!(stats.memory <= budget, "round {round}: {stats:?}");
        }
    }
    let stats = files.stats();
    assert!(stats.files > 40, "the budget is used: {stats:?}");
}

#[tokio::test]
async fn file_at_the_limit_is_kept_and_one_byte_more_is_not() {
    let folder = Folder::new();
    let limit = 256 * 1024;
    folder.file("at", vec![b'x'; limit]);
    folder.file("beyond", vec![b'x'; limit + 1]);
    let files = folder.serve();
    for (path, len, kept) in [
        ("/at", limit, 0),
        ("/at", limit, 1),
        ("/beyond", limit + 1, 1),
        ("/beyond", limit + 1, 1),
    ] {
        assert_eq!(get(&files, path).await.content.expect("content").len(), len);
        assert_eq!(files.stats().files, kept, "after {path}");
    }
}

/// Covers paths longer than any file system allows, and longer than a key may be.
#[tokio::test]
async fn long_paths_are_not_found_and_not_kept() {
    let folder = Folder::new();
    folder.file("a", "a");
    let files = folder.serve();
    for len in [255, 256, 1024, 4096, 60_000] {
        let path = format!("/{}", "a".repeat(len));
        assert_eq!(
            get(&files, &path).await.status,
            StatusCode::NOT_FOUND,
            "{len}"
        );
    }
    let deep = format!("/{}a", "b/".repeat(3000));
    assert_eq!(get(&files, &deep).await.status, StatusCode::NOT_FOUND);
    assert_eq!(files.stats().files, 0);
}

/// Attack A88: at most 512 bytes of a large file or part are in memory before a client reads any.
/// Later pieces have at most 8 KiB, or half of the bytes read before.
#[tokio::test]
async fn little_is_read_before_a_client_takes_it() {
    let folder = Folder::new();
    folder.file("large", vec![b'x'; 1 << 20]);
    let files = folder.serve();
    for (range, len) in [("bytes=0-", 1 << 20), ("bytes=1000-60999", 60_000)] {
        let request = Request::get("/large").header("range", range).body(());
        let answer = files.clone().call(request.expect("a request")).await;
        let mut body = answer.expect("an answer").into_body();
        let (mut taken, mut largest) = (0, 0);
        while let Some(frame) = body.frame().await {
            let piece = frame.expect("content").into_data().expect("content").len();
            let most = if taken == 0 {
                512
            } else {
                (taken / 2).max(8192)
            };
            assert!(piece <= most, "{piece} bytes after {taken}");
            taken += piece;
            largest = largest.max(piece);
        }
        assert_eq!(taken, len);
        // Bulk content is sent in large pieces.
        assert!(len < 1 << 20 || largest == 64 * 1024, "{largest}");
    }
}

/// After a peer has taken the first 64 KiB of a response, the next piece has at most half of that.
#[tokio::test]
async fn pieces_are_in_proportion_to_the_bytes_taken() {
    let folder = Folder::new();
    folder.file("large", vec![b'x'; 1 << 20]);
    let files = folder.serve();
    let request = Request::get("/large").body(()).expect("a request");
    let mut body = files
        .clone()
        .call(request)
        .await
        .expect("an answer")
        .into_body();
    let mut taken = 0;
    while taken < 64 * 1024 {
        let frame = body.frame().await.expect("a frame").expect("content");
        taken += frame.into_data().expect("content").len();
    }
    let next = body.frame().await.expect("a frame").expect("content");
    assert!(next.into_data().expect("content").len() <= 32 * 1024);
}

/// A piece beyond the credit of the peer would wait in memory for as long as the peer likes.
#[tokio::test]
async fn pieces_are_no_larger_than_the_demand() {
    let folder = Folder::new();
    folder.file("large", vec![b'x'; 1 << 20]);
    let files = folder.serve();
    let request = Request::get("/large").body(()).expect("a request");
    let answer = files.clone().call(request).await.expect("an answer");
    let mut body = answer.into_body();
    let (mut taken, mut largest) = (0, 0);
    for demand in [u64::MAX, 5_000, 100, 0, u64::MAX] {
        for _ in 0..20 {
            let next = poll_fn(|cx| demand::within(demand, || Pin::new(&mut body).poll_frame(cx)));
            let frame = next.await.expect("a frame").expect("content");
            let len = frame.into_data().expect("content").len();
            // Fewer bytes than a first piece are not worth a call.
            assert!(len as u64 <= demand.max(512), "{len} bytes for {demand}");
            (taken, largest) = (taken + len, largest.max(len));
            if taken > 400_000 {
                break;
            }
        }
    }
    assert_eq!(largest, 64 * 1024);
}
