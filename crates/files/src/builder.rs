//! Settings of the service.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use http::{HeaderValue, Request, Response};

use crate::body::Body;
use crate::folder::Folder;
use crate::kind::Types;

/// A handler of requests for folders without an `index.html`. Receives the folder and the request.
pub type FolderHandler = Arc<
    dyn Fn(Folder, Request<()>) -> Pin<Box<dyn Future<Output = Response<Body>> + Send>>
        + Send
        + Sync,
>;

/// A listener that is called when the system is out of file descriptors or memory.
pub(crate) type ExhaustionListener = Arc<dyn Fn(&io::Error) + Send + Sync>;

/// Settings of a [`Files`](crate::Files) service.
///
/// ```
/// use courser_files::Files;
///
/// # fn main() -> std::io::Result<()> {
/// # let folder = std::env::temp_dir();
/// let files = Files::builder().precompressed(true).memory(16 << 20).open(folder)?;
/// println!("serving {}", files.root().display());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Builder {
    pub(crate) dotfiles: bool,
    pub(crate) follow_symlinks: bool,
    pub(crate) precompressed: bool,
    pub(crate) compress: bool,
    pub(crate) memory: u64,
    pub(crate) prefix: String,
    pub(crate) types: Types,
    pub(crate) on_folder: Option<FolderHandler>,
    pub(crate) on_exhausted: Option<ExhaustionListener>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            dotfiles: false,
            follow_symlinks: false,
            precompressed: false,
            compress: false,
            memory: MEMORY,
            prefix: String::new(),
            types: Types::default(),
            on_folder: None,
            on_exhausted: None,
        }
    }
}

impl Builder {
    /// Sets whether names that begin with a dot are served. By default only `/.well-known` is
    /// served.
    pub fn dotfiles(mut self, is_on: bool) -> Self {
        self.dotfiles = is_on;
        self
    }

    /// Sets whether symbolic links out of the folder are followed. By default only links that stay
    /// within it are followed.
    pub fn follow_symlinks(mut self, is_on: bool) -> Self {
        self.follow_symlinks = is_on;
        self
    }

    /// Sets whether `FILE.zst`, `FILE.br` or `FILE.gz` is served in place of `FILE` to clients that
    /// accept the coding. Off by default.
    pub fn precompressed(mut self, is_on: bool) -> Self {
        self.precompressed = is_on;
        self
    }

    /// Sets whether files are compressed for clients that accept it, if their type benefits. The
    /// results of files up to 256 KiB are kept in memory. Off by default.
    pub fn compress(mut self, is_on: bool) -> Self {
        self.compress = is_on;
        self
    }

    /// Sets the memory budget in bytes for files of up to 256 KiB and their compressed forms. The
    /// default is 64 MiB. With 0 every request reads its file.
    pub fn memory(mut self, budget: u64) -> Self {
        self.memory = budget;
        self
    }

    /// Sets the path under which the service is nested, such as `/static`, in a router that strips
    /// it. Redirects to folders include it. Default: none.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the content type of files whose names end with a dot and this suffix, in any case. It takes
    /// precedence over the type that is built in. Files with unknown suffixes are
    /// `application/octet-stream`.
    pub fn content_type(mut self, suffix: &str, content_type: HeaderValue) -> Self {
        self.types.set(suffix, content_type);
        self
    }

    /// Sets the handler of requests for folders without an `index.html`. Default: 404.
    pub fn on_folder<F>(
        mut self,
        answer: impl Fn(Folder, Request<()>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        self.on_folder = Some(Arc::new(move |folder, request| {
            Box::pin(answer(folder, request))
        }));
        self
    }

    /// Calls `listener` when the response is 503 because the system is out of file descriptors or
    /// memory, at most once in ten seconds.
    pub fn on_exhausted(mut self, listener: impl Fn(&io::Error) + Send + Sync + 'static) -> Self {
        self.on_exhausted = Some(Arc::new(listener));
        self
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("dotfiles", &self.dotfiles)
            .field("follow_symlinks", &self.follow_symlinks)
            .field("precompressed", &self.precompressed)
            .field("compress", &self.compress)
            .field("memory", &self.memory)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// The default budget in bytes: enough for ten thousand small files, or for most sites as a whole.
const MEMORY: u64 = 64 << 20;
