#![cfg(unix)]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;

#[tokio::test]
async fn links_are_followed_within_the_folder_only() {
    let (outside, folder) = (Folder::new(), Folder::new());
    outside.file("secret.txt", "secret");
    folder.file("sub/inner.txt", "inner");
    folder.file("sub/index.html", "index");
    symlink(outside.path("secret.txt"), folder.path("out.txt"));
    symlink(&outside.0, folder.path("outside"));
    symlink("../..", folder.path("sub/up"));
    symlink("sub/inner.txt", folder.path("in.txt"));
    symlink(folder.path("sub/inner.txt"), folder.path("absolute.txt"));
    symlink("sub", folder.path("linked"));
    symlink(folder.path("sub"), folder.path("absolute"));
    symlink("loop", folder.path("loop"));
    symlink("nowhere", folder.path("dangling"));
    let files = folder.serve();
    for round in 0..2 {
        for path in [
            "/in.txt",
            "/absolute.txt",
            "/linked/inner.txt",
            "/absolute/inner.txt",
        ] {
            assert_eq!(
                get(&files, path).await.text(),
                "inner",
                "{path}, round {round}"
            );
        }
        assert_eq!(get(&files, "/linked/").await.text(), "index");
        assert_eq!(get(&files, "/linked").await.header("location"), "/linked/");
        for path in [
            "/out.txt",
            "/outside/secret.txt",
            "/outside/",
            "/outside",
            "/sub/up/",
            "/loop",
            "/dangling",
        ] {
            assert_eq!(
                get(&files, path).await.status,
                StatusCode::NOT_FOUND,
                "{path}"
            );
        }
    }
    let files = folder.serve_with(Files::builder().follow_symlinks(true));
    assert_eq!(get(&files, "/out.txt").await.text(), "secret");
    assert_eq!(get(&files, "/outside/secret.txt").await.text(), "secret");
    assert_eq!(get(&files, "/loop").await.status, StatusCode::NOT_FOUND);
}

/// A precompressed file that is a link out of the folder is ignored.
#[tokio::test]
async fn precompressed_files_do_not_lead_outside() {
    let (outside, folder) = (Folder::new(), Folder::new());
    outside.file("secret.gz", "secret");
    folder.file("a.txt", "plain");
    symlink(outside.path("secret.gz"), folder.path("a.txt.gz"));
    let files = folder.serve_with(Files::builder().precompressed(true));
    let got = get_with(&files, "/a.txt", &[("accept-encoding", "gzip")]).await;
    assert_eq!(got.text(), "plain");
}

/// Another thread swaps a folder with a link out of the root all the time. Content from outside is
/// never served.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_links_never_lead_outside() {
    let (outside, folder) = (Folder::new(), Folder::new());
    outside.file("a.txt", "secret");
    folder.file("real/a.txt", "inside");
    symlink(&outside.0, folder.path("link"));
    std::fs::rename(folder.path("real"), folder.path("swapped"))
        .expect("write access to the test folder");
    let (stop, root) = (Arc::new(AtomicBool::new(false)), folder.0.clone());
    let stopped = stop.clone();
    let swapper = std::thread::spawn(move || {
        let mut swaps = 0_u32;
        while !stopped.load(Relaxed) {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            let (one, other) = (root.join("swapped"), root.join("link"));
            renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).expect("both are there");
            swaps += 1;
        }
        swaps
    });
    // Without memory, each request looks up the file again.
    let (mut inside, mut nowhere) = (0, 0);
    for budget in [0, 1 << 20] {
        let files = folder.serve_with(Files::builder().memory(budget));
        for _ in 0..3000 {
            let got = get(&files, "/swapped/a.txt").await;
            match got.status {
                StatusCode::OK => {
                    assert_eq!(got.text(), "inside");
                    inside += 1;
                }
                StatusCode::NOT_FOUND => nowhere += 1,
                // The kernel aborted the lookup too often.
                StatusCode::SERVICE_UNAVAILABLE => {}
                status => panic!("{status}"),
            }
        }
    }
    stop.store(true, Relaxed);
    let swaps = swapper.join().expect("it ran");
    assert!(
        swaps > 100 && inside > 0 && nowhere > 0,
        "{swaps} {inside} {nowhere}"
    );
}
