//! The content of files: whole in memory, or read while it is sent.

use std::collections::VecDeque;
use std::fs::File;
use std::hash::BuildHasher as _;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use courser_base::demand;
use foldhash::fast::RandomState;

use crate::buffers::{self, Buffer};
use crate::disk::Reading;
use crate::root::Opened;
use crate::serve_error::{Blocking, Effort, ServeError};
use crate::version::Version;

/// A file that is open for reading, and its state when it was found.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    file: Arc<File>,
    version: Version,
    reading: Reading,
}

impl Source {
    pub(crate) fn new(opened: Opened, reading: Reading) -> Self {
        Self {
            version: opened.version,
            file: Arc::new(opened.file),
            reading,
        }
    }

    pub(crate) const fn version(&self) -> &Version {
        &self.version
    }

    /// Reads the whole content into newly allocated memory.
    ///
    /// Fails with [`Unsettled`](ServeError::Unsettled) if the file changed meanwhile.
    pub(crate) fn read_whole(&self, blocking: Blocking) -> Result<Bytes, ServeError> {
        let len = usize::try_from(self.version.len()).map_err(|_| changed())?;
        let mut content = vec![0; len];
        let mut done = 0;
        while done < len {
            let space = &mut content[done..];
            match self
                .reading
                .read(&self.file, space, done as u64, blocking)?
            {
                0 => return Err(ServeError::Unsettled(crate::version::SETTLED_AFTER)),
                read => done += read,
            }
        }
        match self.has_changed()? {
            true => Err(ServeError::Unsettled(crate::version::SETTLED_AFTER)),
            false => Ok(content.into()),
        }
    }

    fn has_changed(&self) -> io::Result<bool> {
        let now = Version::of(&self.file.metadata()?);
        Ok(!now.has_content_of(&self.version))
    }

    /// Reads at least one and at most `most` of the remaining bytes at `offset`.
    fn read_some(
        &self,
        offset: u64,
        left: u64,
        most: usize,
        blocking: Blocking,
    ) -> Result<Bytes, ServeError> {
        let len = usize::try_from(left).map_or(most, |left| left.min(most));
        let mut buffer = Buffer::take(len);
        let space = buffer.as_mut_slice();
        let mut done = 0;
        while done < len {
            let (at, space) = (offset + done as u64, &mut space[done..len]);
            match self.reading.read(&self.file, space, at, blocking) {
                Ok(0) => return Err(changed()),
                Ok(read) => done += read,
                // Sends the data that is available. A thread that may wait reads the rest.
                Err(ServeError::WouldBlock) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(buffer.into_bytes(done))
    }

    /// Fails if the file changed in a way that may affect the content promised to the client.
    ///
    /// Files that only grow, such as logs, are sent as they were when they were requested. A file
    /// has only grown if it is longer and still contains the data that was sent last.
    fn check(&mut self, last: &PieceEnd) -> Result<(), ServeError> {
        let now = Version::of(&self.file.metadata()?);
        if now.has_content_of(&self.version) {
            return Ok(());
        }
        if now.len() <= self.version.len() || !last.is_unchanged_in(&self.file)? {
            return Err(changed());
        }
        self.version = now;
        Ok(())
    }

    /// Reads like [`read_some`](Self::read_some), on a thread that may wait, and further ahead:
    /// while the thread waits for the disk, the kernel continues to read.
    fn read_ahead(
        &self,
        mut offset: u64,
        mut left: u64,
        most: usize,
    ) -> Result<VecDeque<Bytes>, ServeError> {
        // A second piece is held outside of the windows of the transport, so a peer that has taken
        // little gets only one.
        let count = if most < buffers::SIZE { 1 } else { READ_AHEAD };
        let mut chunks = VecDeque::with_capacity(count);
        while left > 0 && chunks.len() < count {
            let chunk = self.read_some(offset, left, most, Blocking::Allowed)?;
            offset += chunk.len() as u64;
            left -= chunk.len() as u64;
            chunks.push_back(chunk);
        }
        Ok(chunks)
    }
}

/// The end of the last piece that was sent, by which [`Source::check`] recognizes a file that only grew.
#[derive(Clone, Copy, Debug)]
struct PieceEnd {
    offset: u64,
    len: usize,
    hash: u64,
}

impl PieceEnd {
    fn of(chunk: &[u8], offset: u64) -> Self {
        let skipped = chunk.len().saturating_sub(COMPARED);
        let end = &chunk[skipped..];
        Self {
            offset: offset + skipped as u64,
            len: end.len(),
            hash: HASHER.hash_one(end),
        }
    }

    fn is_unchanged_in(&self, file: &File) -> Result<bool, ServeError> {
        let mut end = [0; COMPARED];
        let mut done = 0;
        while done < self.len {
            let (at, space) = (self.offset + done as u64, &mut end[done..self.len]);
            // This data was read a moment ago, so it is in memory.
            match Reading::read_now(file, space, at)? {
                0 => return Ok(false),
                read => done += read,
            }
        }
        Ok(HASHER.hash_one(&end[..self.len]) == self.hash)
    }
}

/// Largest number of bytes of a piece that are compared.
const COMPARED: usize = 1024;

static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// Returns the error for a file that no longer matches the header section of its response.
fn changed() -> ServeError {
    ServeError::Failed(io::Error::other("the file was changed while it was sent"))
}

/// Part of a file, read while it is sent.
///
/// Reading fails if the file changes meanwhile, so that the peer never mistakes a mixture of two
/// states for a file.
#[derive(Debug)]
pub(crate) struct Reader {
    source: Source,
    /// Offset of the next piece.
    offset: u64,
    /// Number of bytes still to be returned.
    left: u64,
    /// Offset of the first byte of the part.
    first: u64,
    /// Maximum size of the next piece that is read.
    next: usize,
    last: PieceEnd,
    /// Pieces that were read but not returned yet.
    ahead: VecDeque<Bytes>,
    pending: Option<tokio::task::JoinHandle<Result<VecDeque<Bytes>, ServeError>>>,
}

impl Reader {
    /// Reads the first piece and checks that it belongs to the version of `source`. It is the whole of
    /// a small file or part, and [`FIRST`] bytes of a large one, because the peer may never read it
    /// (attack A88). Parts count as large above [`SMALL_PART`]: a peer may request one repeatedly, and
    /// these requests do not share memory as requests for a small file do.
    ///
    /// Fails with [`Unsettled`](ServeError::Unsettled) if the file changed meanwhile. If the request
    /// has already waited for the file, growth is accepted, because logs grow constantly.
    pub(crate) fn begin(
        source: Source,
        offset: u64,
        left: u64,
        effort: Effort,
    ) -> Result<Self, ServeError> {
        let first = match left {
            0 => Ok(None),
            left => {
                let small = match left == source.version.len() {
                    true => buffers::SIZE,
                    false => SMALL_PART,
                };
                let most = if left <= small as u64 { small } else { FIRST };
                let first = source.read_some(offset, left, most, effort.blocking);
                first.map(Some)
            }
        };
        let now = Version::of(&source.file.metadata()?);
        let has_grown = now.len() > source.version.len() && first.is_ok();
        let is_fine = has_grown && effort.accepts_unsettled;
        if !(now.has_content_of(&source.version) || is_fine) {
            return Err(ServeError::Unsettled(crate::version::SETTLED_AFTER));
        }
        Ok(Self {
            source,
            offset,
            left,
            first: offset,
            // As small as the first, because a protocol may take two before it detects that the peer takes none.
            next: FIRST,
            last: PieceEnd::of(&[], offset),
            ahead: first?.into_iter().collect(),
            pending: None,
        })
    }

    /// Returns the number of bytes still to be returned.
    pub(crate) const fn remaining(&self) -> u64 {
        self.left
    }

    /// Continues with another part after all of this one was returned. The file is still compared with
    /// the piece that was sent last.
    pub(crate) fn move_to(&mut self, part: Range<u64>) {
        debug_assert!(self.left == 0 && self.pending.is_none(), "{part:?}");
        self.ahead.clear();
        self.first = part.start;
        self.offset = part.start;
        self.left = part.end - part.start;
    }

    /// Returns all remaining content if it was read already.
    pub(crate) fn take_whole(&mut self) -> Option<Bytes> {
        self.ahead
            .front()
            .filter(|chunk| chunk.len() as u64 == self.left)?;
        let whole = self.ahead.pop_front()?;
        self.left = 0;
        Some(whole)
    }

    /// Returns the next piece, or `None` at the end.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        match ready!(self.poll_chunk(cx)) {
            Ok(chunk) => {
                self.last = PieceEnd::of(&chunk, self.offset);
                self.offset += chunk.len() as u64;
                self.left -= chunk.len() as u64;
                Poll::Ready(Some(Ok(chunk)))
            }
            Err(error) => {
                self.left = 0;
                Poll::Ready(Some(Err(match error {
                    ServeError::Failed(error) | ServeError::Exhausted(error) => error,
                    _ => io::Error::other("the file cannot be read"),
                })))
            }
        }
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, ServeError>> {
        if let Some(chunk) = self.ahead.pop_front() {
            return Poll::Ready(Ok(chunk));
        }
        let read = match &mut self.pending {
            None => {
                let most = self.most();
                self.source
                    .read_some(self.offset, self.left, most, Blocking::Forbidden)
            }
            Some(_) => Err(ServeError::WouldBlock),
        };
        let chunk = match read {
            Err(ServeError::WouldBlock) => ready!(self.poll_ahead(cx))?,
            read => read?,
        };
        let taken = self.offset + chunk.len() as u64 - self.first;
        self.next = next_piece(self.next, taken);
        Poll::Ready(self.source.check(&self.last).map(|()| chunk))
    }

    /// Returns the largest size of the next piece: no more than the caller can use, because the rest would wait
    /// in memory for the peer, unless that is very little.
    fn most(&self) -> usize {
        let demand = usize::try_from(demand::current()).unwrap_or(usize::MAX);
        self.next.min(demand.max(FIRST))
    }

    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, ServeError>> {
        let most = self.most();
        let pending = self.pending.get_or_insert_with(|| {
            let (source, most) = (self.source.clone(), most);
            let (offset, left) = (self.offset, self.left);
            tokio::task::spawn_blocking(move || source.read_ahead(offset, left, most))
        });
        let read = ready!(Pin::new(pending).poll(cx));
        self.pending = None;
        self.ahead = read.map_err(|error| ServeError::Failed(error.into()))??;
        Poll::Ready(self.ahead.pop_front().ok_or_else(changed))
    }
}

/// Number of bytes of a large part that are read before the peer takes any.
const FIRST: usize = 512;

/// Size in bytes up to which part of a larger file is read at once.
const SMALL_PART: usize = 4 * 1024;

/// Each piece from the third on is at most this many times as large as the one before it, up to [`EARLY`].
const GROWTH: usize = 4;

/// The largest early piece in bytes. Later pieces are half of what was taken before, up to
/// [`buffers::SIZE`]. The content kept for a peer that stops reading is therefore in proportion to
/// what it has taken (limit K111).
const EARLY: usize = 8 * 1024;

/// Returns the size of the piece after one of up to `last` bytes, when `taken` bytes of the part
/// were returned.
fn next_piece(last: usize, taken: u64) -> usize {
    let half = usize::try_from(taken / 2).map_or(buffers::SIZE, |half| half.min(buffers::SIZE));
    // Buffers have sizes that are powers of two.
    let whole = 1 << half.max(1).ilog2();
    (last * GROWTH).min(EARLY).max(whole)
}

/// Number of pieces of the largest size that a thread reads ahead.
const READ_AHEAD: usize = 2;

/// Limits the content kept for a peer that reads nothing, beside the send buffer of the transport.
const _: () = assert!(buffers::SIZE * READ_AHEAD <= 128 * 1024);
