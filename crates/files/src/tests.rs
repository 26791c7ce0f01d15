//! Tests of the service on real folders.

mod changes;
mod content;
mod hostile;
mod limits;
mod links;
mod names;
mod ranges;
mod slow;
#[cfg(target_os = "linux")]
mod watching;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use tower_service::Service as _;

use crate::{Builder, Files};

/// A folder that is removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("courser-files-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary folder can be created");
        Self(path.canonicalize().expect("the file exists"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file and sets its modification time back, so that it counts as settled.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("below"))
            .expect("a temporary folder can be created");
        std::fs::write(&path, content).expect("a file can be written");
        self.settle(name);
    }

    fn settle(&self, name: &str) {
        let file = std::fs::File::options()
            .append(true)
            .open(self.path(name))
            .expect("the file exists");
        let before = SystemTime::now() - Duration::from_secs(10);
        file.set_modified(before)
            .expect("write access to the test folder");
    }

    fn serve(&self) -> Files {
        self.serve_with(Files::builder())
    }

    fn serve_with(&self, builder: Builder) -> Files {
        builder.open(&self.0).expect("a folder")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A complete response.
#[derive(Debug)]
struct Collected {
    status: StatusCode,
    headers: HeaderMap,
    content: Result<Bytes, crate::BoxError>,
}

impl Collected {
    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).map(|value| value.to_str());
        value.unwrap_or(Ok("")).expect("text")
    }

    fn text(&self) -> String {
        let content = self.content.as_ref().expect("content");
        String::from_utf8(content.to_vec()).expect("UTF-8")
    }
}

async fn send(files: &Files, request: Request<()>) -> Collected {
    let answer = files.clone().call(request);
    let answer = tokio::time::timeout(Duration::from_secs(10), answer).await;
    let Ok(response) = answer.expect("an answer in time");
    let (parts, body) = response.into_parts();
    let content = body.collect().await.map(|content| content.to_bytes());
    Collected {
        status: parts.status,
        headers: parts.headers,
        content,
    }
}

async fn get_with(files: &Files, path: &str, fields: &[(&str, &str)]) -> Collected {
    let mut request = Request::get(path);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    send(files, request.body(()).expect("a request")).await
}

async fn get(files: &Files, path: &str) -> Collected {
    get_with(files, path, &[]).await
}

async fn head(files: &Files, path: &str) -> Collected {
    let request = Request::builder().method(Method::HEAD).uri(path);
    send(files, request.body(()).expect("a request")).await
}

/// Creates a symbolic link.
#[cfg(unix)]
fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) {
    std::os::unix::fs::symlink(target, link).expect("a link can be created");
}
