//! Which files a path may mean.
//!
//! - Paths are decoded once. One with `..`, a NUL, a backslash, or anything else that is no plain
//!   name is nobody's: 404.
//! - Names that begin with a dot are nobody's, `/.well-known` excepted (RFC 8615), unless
//!   `--dotfiles` is given.
//! - Symbolic links are followed to wherever within the folder, and out of it only with
//!   `--follow-symlinks`. Whoever may change the folder while it is served is trusted.

use std::io;
use std::path::{Path, PathBuf};

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use tower::ServiceExt as _;
use tower_http::services::ServeDir;

use super::args::FileArguments;
use super::body::{Body, boxed, of_length, plain};
use super::listing;
use crate::error::Failure;

/// A folder that is served.
#[derive(Clone, Debug)]
pub(super) struct Files {
    /// Without symbolic links in it.
    root: PathBuf,
    serve: ServeDir,
    policy: FileArguments,
}

/// What a path means.
#[derive(Debug)]
enum Target {
    Nothing,
    /// Something that is served as it is, or redirected to.
    File,
    /// A folder without an index.
    Folder(PathBuf),
}

impl Files {
    pub(super) fn new(folder: &Path, policy: FileArguments) -> Result<Self, Failure> {
        let root = folder.canonicalize().and_then(|root| match root.is_dir() {
            true => Ok(root),
            false => Err(io::Error::other("not a folder")),
        });
        let root = root
            .map_err(|error| Failure::new(format!("cannot serve {}: {error}", folder.display())))?;
        let mut serve = ServeDir::new(&root).with_buf_chunk_size(CHUNK);
        if policy.precompressed {
            serve = serve
                .precompressed_zstd()
                .precompressed_br()
                .precompressed_gzip();
        }
        Ok(Self {
            root,
            serve,
            policy,
        })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: Send + 'static,
    {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED);
            let allowed = HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(header::ALLOW, allowed);
            return response;
        }
        let (files, path) = (self.clone(), request.uri().path().to_owned());
        // The disk may be slow, and others want to be served.
        let target = tokio::task::spawn_blocking(move || files.target(&path)).await;
        match target.unwrap_or(Target::Nothing) {
            Target::Nothing => plain(StatusCode::NOT_FOUND),
            Target::Folder(folder) if self.policy.browse => {
                listing::answer(&folder, &request, self.policy.dotfiles).await
            }
            Target::Folder(_) => plain(StatusCode::NOT_FOUND),
            Target::File => self.serve(request).await,
        }
    }

    async fn serve<B: Send + 'static>(&self, request: Request<B>) -> Response<Body> {
        let mut request = request.map(|_| ());
        let mut answer = self.serve_once(&request).await;
        if is_part_of_another(request.headers(), &answer) {
            request.headers_mut().remove(header::RANGE);
            answer = self.serve_once(&request).await;
        }
        answer
    }

    async fn serve_once(&self, request: &Request<()>) -> Response<Body> {
        let request = request
            .clone()
            .map(|()| http_body_util::Empty::<bytes::Bytes>::new());
        match self.serve.clone().oneshot(request).await {
            Ok(response) if response.status() == StatusCode::NOT_FOUND => {
                plain(StatusCode::NOT_FOUND)
            }
            Ok(response) => {
                let mut response = of_length(response.map(boxed));
                add_charset(response.headers_mut());
                make_relative(response.headers_mut());
                // What is there is what its name says it is.
                let nosniff = HeaderValue::from_static("nosniff");
                let name = header::X_CONTENT_TYPE_OPTIONS;
                response.headers_mut().insert(name, nosniff);
                response
            }
            Err(never) => match never {},
        }
    }

    /// Looks at the disk.
    fn target(&self, path: &str) -> Target {
        let Some(relative) = self.relative(path) else {
            return Target::Nothing;
        };
        let full = self.root.join(relative);
        let Ok(real) = full.canonicalize() else {
            // Only its compressed forms may be there.
            return self.compressed_only(&full);
        };
        if !self.is_ours(&real) {
            return Target::Nothing;
        }
        if real.is_dir() && path.ends_with('/') {
            // The index may be a link of its own.
            return match real.join("index.html").canonicalize() {
                Ok(index) if self.is_ours(&index) => {
                    self.served_with_variants(&real.join("index.html"))
                }
                Ok(_) => Target::Nothing,
                Err(_) => Target::Folder(real),
            };
        }
        // A name with a slash behind it is a folder's.
        if real.is_dir() {
            return Target::File;
        }
        match real.is_file() && !path.ends_with('/') {
            true => self.served_with_variants(&full),
            false => Target::Nothing,
        }
    }

    fn compressed_only(&self, full: &Path) -> Target {
        match self.variants(full).next() {
            Some(_) => self.served_with_variants(full),
            None => Target::Nothing,
        }
    }

    /// A compressed form may be a link of its own.
    fn served_with_variants(&self, full: &Path) -> Target {
        match self.variants(full).all(|real| self.is_ours(&real)) {
            true => Target::File,
            false => Target::Nothing,
        }
    }

    /// Compressed forms that are there, and that the user wants served.
    fn variants(&self, full: &Path) -> impl Iterator<Item = PathBuf> {
        let suffixes: &[&str] = match self.policy.precompressed {
            true => &[".zst", ".br", ".gz"],
            false => &[],
        };
        let name = full.as_os_str().to_owned();
        suffixes.iter().filter_map(move |suffix| {
            let mut name = name.clone();
            name.push(suffix);
            PathBuf::from(name).canonicalize().ok()
        })
    }

    fn is_ours(&self, real: &Path) -> bool {
        match real.strip_prefix(&self.root) {
            // Windows knows `.git` by the name `GIT~1` too.
            Ok(inside) => !(cfg!(windows) && self.hides(inside)),
            Err(_) => self.policy.follow_symlinks,
        }
    }

    /// Some part of the path is not for everybody.
    fn hides(&self, path: &Path) -> bool {
        let mut names = path.iter().map(|name| name.to_string_lossy()).enumerate();
        !self.policy.dotfiles && names.any(|(index, name)| is_hidden(index, &name))
    }

    /// The path on disk, or `None` for what is nobody's.
    fn relative(&self, path: &str) -> Option<PathBuf> {
        let mut relative = PathBuf::new();
        // Two slashes at the beginning would make a redirect to another host of a name.
        let path = path
            .strip_prefix('/')
            .filter(|path| !path.starts_with('/'))?;
        for (index, part) in path.split('/').enumerate() {
            let name = percent_decode(part)?;
            // Behind a colon, Windows has a drive or a part of the file that nobody sees.
            let is_odd = name.contains(['/', '\\', '\0'])
                || name == ".."
                || (cfg!(windows) && name.contains(':'));
            let is_open = self.policy.dotfiles && name != ".";
            if is_odd || (is_hidden(index, &name) && !is_open) {
                return None;
            }
            relative.push(name);
        }
        Some(relative)
    }
}

/// RFC 8615 has one folder at the root for everybody.
fn is_hidden(index: usize, name: &str) -> bool {
    name.starts_with('.') && !(index == 0 && name == ".well-known")
}

/// RFC 9110 §13.1.5: whoever has a part of what the file was before gets all of what it is now.
fn is_part_of_another(asked: &http::HeaderMap, answer: &Response<Body>) -> bool {
    let Some(condition) = asked.get(header::IF_RANGE) else {
        return false;
    };
    let is_range = [
        StatusCode::PARTIAL_CONTENT,
        StatusCode::RANGE_NOT_SATISFIABLE,
    ]
    .contains(&answer.status());
    let is = |name| answer.headers().get(name) == Some(condition);
    is_range && !is(header::ETAG) && !is(header::LAST_MODIFIED)
}

/// Whatever name the client has called us by, what it is redirected to is here.
fn make_relative(headers: &mut http::HeaderMap) {
    let location = headers
        .get(header::LOCATION)
        .and_then(|location| location.to_str().ok());
    let uri = location.and_then(|location| location.parse::<http::Uri>().ok());
    let path = uri.as_ref().and_then(http::Uri::path_and_query);
    if let Some(path) = path.and_then(|path| HeaderValue::try_from(path.as_str()).ok()) {
        headers.insert(header::LOCATION, path);
    }
}

/// Text is UTF-8 these days, and browsers guess otherwise.
fn add_charset(headers: &mut http::HeaderMap) {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else {
        return;
    };
    let with_charset = match kind.as_bytes() {
        b"text/html" => "text/html; charset=utf-8",
        b"text/plain" => "text/plain; charset=utf-8",
        b"text/css" => "text/css; charset=utf-8",
        b"text/javascript" => "text/javascript; charset=utf-8",
        b"text/markdown" => "text/markdown; charset=utf-8",
        b"text/csv" => "text/csv; charset=utf-8",
        b"text/xml" => "text/xml; charset=utf-8",
        _ => return,
    };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(with_charset));
}

/// `None` for what is not UTF-8, or not encoded as it should be.
pub(super) fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let high = char::from(rest.next()?).to_digit(16)?;
        let low = char::from(rest.next()?).to_digit(16)?;
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// Enough for a system call of its own.
const CHUNK: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn relative(path: &str, dotfiles: bool) -> Option<PathBuf> {
        let policy = FileArguments {
            browse: false,
            precompressed: false,
            dotfiles,
            follow_symlinks: false,
        };
        let files = Files::new(Path::new("."), policy).expect("a folder");
        files.relative(path)
    }

    #[test]
    fn paths_that_are_no_names_are_nobodys() {
        for path in [
            "/..",
            "/a/../b",
            "/%2e%2e/etc",
            "/%2E%2e%2fetc",
            "/a%00",
            "/a%5cb",
            "//host",
            "/%",
            "/%zz",
            "/%ff",
            "/.",
            "/a/./b",
            "*",
            "",
        ] {
            assert_eq!(relative(path, false), None, "{path}");
            assert_eq!(relative(path, true), None, "{path} with dot files");
        }
    }

    #[test]
    fn names_with_a_dot_before_them_are_hidden() {
        assert_eq!(relative("/.git/config", false), None);
        assert_eq!(relative("/a/.env", false), None);
        assert_eq!(relative("/a/.well-known", false), None);
        assert!(relative("/.well-known/security.txt", false).is_some());
        assert_eq!(relative("/.git/config", true), Some(".git/config".into()));
    }

    #[test]
    fn names_are_decoded_once() {
        assert_eq!(relative("/a%20b/%C3%A9", false), Some("a b/é".into()));
        assert_eq!(relative("/a%2520b", false), Some("a%20b".into()));
    }
}
