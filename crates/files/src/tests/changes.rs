//! Files that are changed while they are served.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::*;

/// A pause after which every change has been noticed, whether the kernel reported it or not.
const NOTICED: Duration = Duration::from_millis(12);

#[tokio::test]
async fn changes_of_every_kind_are_noticed() {
    let folder = Folder::new();
    let files = folder.serve();
    let content = async |path: &str| {
        tokio::time::sleep(NOTICED).await;
        let got = get(&files, path).await;
        match got.status {
            StatusCode::OK => got.text(),
            status => status.as_str().to_owned(),
        }
    };
    folder.file("d/a.txt", "one");
    assert_eq!(content("/d/a.txt").await, "one");
    std::fs::write(folder.path("d/a.txt"), "two").expect("write access to the test folder");
    assert_eq!(content("/d/a.txt").await, "two", "written in place");
    folder.file("d/new", "three");
    std::fs::rename(folder.path("d/new"), folder.path("d/a.txt"))
        .expect("write access to the test folder");
    assert_eq!(content("/d/a.txt").await, "three", "replaced");
    let file = std::fs::File::options()
        .write(true)
        .open(folder.path("d/a.txt"));
    file.expect("write access to the test folder")
        .set_len(2)
        .expect("write access to the test folder");
    assert_eq!(content("/d/a.txt").await, "th", "truncated");
    std::fs::remove_file(folder.path("d/a.txt")).expect("write access to the test folder");
    assert_eq!(content("/d/a.txt").await, "404", "removed");
    folder.file("d/a.txt", "four");
    assert_eq!(content("/d/a.txt").await, "four", "there again");
    folder.file("e/a.txt", "five");
    std::fs::rename(folder.path("d"), folder.path("f")).expect("write access to the test folder");
    assert_eq!(content("/d/a.txt").await, "404", "its folder moved away");
    std::fs::rename(folder.path("e"), folder.path("d")).expect("write access to the test folder");
    assert_eq!(
        content("/d/a.txt").await,
        "five",
        "another folder in its place"
    );
    #[cfg(unix)]
    {
        symlink("f", folder.path("current"));
        assert_eq!(content("/current/a.txt").await, "four", "through a link");
        symlink("d", folder.path("next"));
        std::fs::rename(folder.path("next"), folder.path("current"))
            .expect("write access to the test folder");
        assert_eq!(
            content("/current/a.txt").await,
            "five",
            "through another link"
        );
    }
}

/// Replaces the root by renaming, as a deployment does, and also removes it.
#[tokio::test]
async fn another_root_in_its_place_is_served() {
    let parent = Folder::new();
    let parent_path = |name: &str| parent.path(name);
    parent.file("site/a.txt", "one");
    parent.file("next/a.txt", "two");
    let files = Files::builder()
        .open(parent_path("site"))
        .expect("a folder");
    assert_eq!(get(&files, "/a.txt").await.text(), "one");
    std::fs::rename(parent_path("site"), parent_path("old"))
        .expect("write access to the test folder");
    tokio::time::sleep(NOTICED).await;
    assert_eq!(
        get(&files, "/a.txt").await.status,
        StatusCode::NOT_FOUND,
        "no root"
    );
    std::fs::rename(parent_path("next"), parent_path("site"))
        .expect("write access to the test folder");
    tokio::time::sleep(NOTICED).await;
    assert_eq!(get(&files, "/a.txt").await.text(), "two");
    // Changes in the new root are noticed as well.
    parent.file("site/a.txt", "three");
    tokio::time::sleep(NOTICED).await;
    assert_eq!(get(&files, "/a.txt").await.text(), "three");
    std::fs::remove_dir_all(parent_path("site")).expect("write access to the test folder");
    tokio::time::sleep(NOTICED).await;
    assert_eq!(
        get(&files, "/a.txt").await.status,
        StatusCode::NOT_FOUND,
        "removed"
    );
}

/// Lengths of the files that are written during the load.
const LENS: [usize; 3] = [4096, 100_000, 600_000];

/// Returns lines that all contain `version`.
fn lines(version: u64, len: usize) -> String {
    format!("{version:07}\n").repeat(len / 8)
}

/// Rewrites files as an editor does (truncate, then write in two pieces) and as a deployment does
/// (rename), until `stop` is set. Returns the number of versions.
fn rewrite(root: &Path, stop: &AtomicBool) -> u64 {
    let mut version = 0;
    while !stop.load(Relaxed) {
        version += 1;
        for nominal in LENS {
            let len = nominal + (version as usize % 7) * 8;
            let text = lines(version, len);
            let name = root.join(format!("in-place-{nominal}"));
            let mut file = std::fs::File::create(&name).expect("write access to the test folder");
            file.write_all(&text.as_bytes()[..len / 2])
                .expect("write access to the test folder");
            file.write_all(&text.as_bytes()[len / 2..])
                .expect("write access to the test folder");
            drop(file);
            let next = root.join("next");
            std::fs::write(&next, &text).expect("write access to the test folder");
            std::fs::rename(&next, root.join(format!("renamed-{nominal}")))
                .expect("write access to the test folder");
        }
        // Lets the files settle, so that they are served from memory too.
        std::thread::sleep(Duration::from_millis(60));
    }
    version
}

/// Returns the version that all lines of `got` contain. Returns `None` for content that is
/// incomplete because its writer was paused for longer than files take to settle.
fn version_of(got: &Collected, name: &str, nominal: usize) -> Option<u64> {
    assert_eq!(got.status, StatusCode::OK, "{name}");
    let stated: usize = got.header("content-length").parse().expect("a length");
    let is_in_place = name.starts_with("/in-place");
    let Ok(content) = &got.content else {
        assert!(is_in_place, "{name} was replaced, not changed");
        return None;
    };
    assert_eq!(content.len(), stated, "{name}");
    assert!(is_in_place || stated >= nominal, "{name} is not whole");
    let (lines, rest) = content.as_chunks::<8>();
    assert_eq!(rest, b"", "{name}");
    let first = lines.first()?;
    let torn = lines.iter().position(|line| line != first);
    assert_eq!(torn, None, "{name} is torn");
    let text = String::from_utf8_lossy(first);
    Some(text.trim().parse().expect("a number"))
}

/// No response contains a mixture of two versions, part of a replaced file, or a version older than
/// one seen before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_written_during_the_load_are_never_torn() {
    let folder = Folder::new();
    for len in LENS {
        folder.file(&format!("in-place-{len}"), lines(0, len));
        folder.file(&format!("renamed-{len}"), lines(0, len));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, root) = (stop.clone(), folder.0.clone());
    let writer = std::thread::spawn(move || rewrite(&root, &stopped));
    let files = folder.serve();
    let end = Instant::now() + Duration::from_secs(3);
    let mut readers = Vec::new();
    for _ in 0..4 {
        let files = files.clone();
        readers.push(tokio::spawn(async move {
            let mut seen = std::collections::BTreeMap::new();
            while Instant::now() < end {
                for (how, len) in LENS
                    .iter()
                    .flat_map(|len| [("in-place", len), ("renamed", len)])
                {
                    let name = format!("/{how}-{len}");
                    let got = get(&files, &name).await;
                    let Some(version) = version_of(&got, &name, *len) else {
                        continue;
                    };
                    let last = seen.insert(name.clone(), version).unwrap_or(0);
                    assert!(version >= last, "{name}: {version} after {last}");
                }
                tokio::task::yield_now().await;
            }
            seen
        }));
    }
    for reader in readers {
        let seen = reader.await.expect("no torn content");
        assert!(seen.values().all(|version| *version > 5), "{seen:?}");
    }
    stop.store(true, Relaxed);
    let versions = writer.join().expect("it wrote");
    let stats = files.stats();
    assert!(versions > 5 && stats.hits > 100, "{versions} {stats:?}");
}

/// A large file is read as it is sent, so a change meanwhile cannot be undone. The response ends
/// with an error.
#[tokio::test]
async fn large_file_that_is_changed_while_it_is_sent_ends_with_an_error() {
    let folder = Folder::new();
    let old = vec![b'a'; 1_000_000];
    for (change, is_fine) in [
        ("rewritten", false),
        ("truncated", false),
        ("replaced", true),
        ("appended to", true),
        ("left alone", true),
    ] {
        folder.file("large", &old);
        let files = folder.serve();
        let request = Request::get("/large").body(()).expect("a request");
        let Ok(response) = files.clone().call(request).await;
        let mut body = response.into_body();
        let first = body.frame().await.expect("content").expect("content");
        let mut got = first.into_data().expect("data").to_vec();
        let path = folder.path("large");
        match change {
            "rewritten" => std::fs::write(&path, vec![b'b'; 2_000_000])
                .expect("write access to the test folder"),
            "truncated" => {
                let file = std::fs::File::options()
                    .write(true)
                    .open(&path)
                    .expect("write access to the test folder");
                file.set_len(500_000)
                    .expect("write access to the test folder");
            }
            "replaced" => {
                folder.file("next", vec![b'b'; 1_000_000]);
                std::fs::rename(folder.path("next"), &path)
                    .expect("write access to the test folder");
            }
            "appended to" => {
                let mut file = std::fs::File::options()
                    .append(true)
                    .open(&path)
                    .expect("write access to the test folder");
                file.write_all(b"bbbb")
                    .expect("write access to the test folder");
            }
            _ => {}
        }
        let mut result = Ok(());
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => got.extend_from_slice(&frame.into_data().expect("data")),
                Err(error) => result = Err(error.to_string()),
            }
        }
        assert!(got.iter().all(|byte| *byte == b'a'), "{change}: a mixture");
        assert_eq!(result.is_ok(), is_fine, "{change}: {result:?}");
        assert_eq!(got.len() == old.len(), is_fine, "{change}: {}", got.len());
    }
}

/// A file that is written continuously is still served.
#[tokio::test]
async fn file_that_never_settles_is_served_after_a_while() {
    let folder = Folder::new();
    folder.file("log", "line\n");
    let (stop, path) = (Arc::new(AtomicBool::new(false)), folder.path("log"));
    let stopped = stop.clone();
    let writer = std::thread::spawn(move || {
        let mut log = std::fs::File::options()
            .append(true)
            .open(path)
            .expect("write access to the test folder");
        while !stopped.load(Relaxed) {
            log.write_all(b"line\n")
                .expect("write access to the test folder");
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    let files = folder.serve();
    tokio::time::sleep(Duration::from_millis(20)).await;
    for _ in 0..5 {
        let began = Instant::now();
        let got = get(&files, "/log").await;
        assert!(got.text().lines().all(|line| line == "line"), "{got:?}");
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{:?}",
            began.elapsed()
        );
    }
    stop.store(true, Relaxed);
    writer.join().expect("it wrote");
}
