//! Settings of the service.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use courser_base::ScopedIp;
use http::{Extensions, HeaderValue, Request, Response};

use crate::body::Body;
use crate::folder::Folder;
use crate::kind::Types;
use crate::threads::{DEFAULT_THREADS, DEFAULT_WAIT};

/// A handler of requests for folders without an `index.html`. Receives the folder and the request.
pub type FolderHandler = Arc<
    dyn Fn(Folder, Request<()>) -> Pin<Box<dyn Future<Output = Response<Body>> + Send>>
        + Send
        + Sync,
>;

/// A listener that is called when the system is out of file descriptors or memory.
pub(crate) type ExhaustionListener = Arc<dyn Fn(&io::Error) + Send + Sync>;

/// A function that finds the address of the client of a request.
type ClientOf = Arc<dyn Fn(&Extensions) -> Option<SocketAddr> + Send + Sync>;

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
    pub(crate) threads: usize,
    pub(crate) thread_wait: Duration,
    client: Option<ClientOf>,
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
            threads: DEFAULT_THREADS,
            thread_wait: DEFAULT_WAIT,
            client: None,
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

    /// Sets how many threads may wait for disks or compress files at the same time. The default is 384, three quarters of
    /// the threads that tokio has for blocking calls. It must be smaller if the runtime has fewer
    /// ([`max_blocking_threads`](tokio::runtime::Builder::max_blocking_threads)).
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets how long a request waits for a thread. The response is then 503 (Service Unavailable) with `Retry-After`. The
    /// default is 10 s. The content of a response that has begun waits six times as long.
    pub fn thread_wait(mut self, longest: Duration) -> Self {
        self.thread_wait = longest;
        self
    }

    /// Sets the function that finds the address of the client in the extensions of a request. Each address, network, site
    /// and allocation of addresses then has a share of the [threads](Self::threads): an address may occupy three times as
    /// many as are left. Default: none, and clients have no shares.
    ///
    /// A server of courser adds the client to each request:
    /// `.client(|it| it.get::<Peer>().map(Peer::address))`.
    pub fn client(
        mut self,
        client: impl Fn(&Extensions) -> Option<SocketAddr> + Send + Sync + 'static,
    ) -> Self {
        self.client = Some(Arc::new(client));
        self
    }

    /// Returns the client of a request with these extensions, if it is known.
    pub(crate) fn client_of(&self, extensions: &Extensions) -> Option<ScopedIp> {
        let client = self.client.as_ref()?;
        client(extensions).map(ScopedIp::of)
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
            .field("threads", &self.threads)
            .field("thread_wait", &self.thread_wait)
            .finish_non_exhaustive()
    }
}

/// The default budget in bytes: enough for ten thousand small files, or for most sites as a whole.
const MEMORY: u64 = 64 << 20;
