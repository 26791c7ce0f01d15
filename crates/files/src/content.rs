//! The content of files: all of it in memory, or read as it is sent.

use std::collections::VecDeque;
use std::fs::File;
use std::hash::BuildHasher as _;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use foldhash::fast::RandomState;

use crate::answer::Effort;
use crate::buffers::{self, Buffer};
use crate::disk::Reading;
use crate::root::Opened;
use crate::trouble::{Patience, Trouble};
use crate::version::Version;

/// A file that is open for reading, and the state in which it was found.
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

    /// Reads all of it into memory of its own.
    ///
    /// Fails with [`Unsettled`](Trouble::Unsettled) if the file was changed meanwhile.
    pub(crate) fn read_whole(&self, patience: Patience) -> Result<Bytes, Trouble> {
        let len = usize::try_from(self.version.len()).map_err(|_| changed())?;
        let mut content = vec![0; len];
        let mut done = 0;
        while done < len {
            let room = &mut content[done..];
            match self.reading.read(&self.file, room, done as u64, patience)? {
                0 => return Err(Trouble::Unsettled(crate::version::SETTLED_AFTER)),
                read => done += read,
            }
        }
        match self.has_changed()? {
            true => Err(Trouble::Unsettled(crate::version::SETTLED_AFTER)),
            false => Ok(content.into()),
        }
    }

    fn has_changed(&self) -> io::Result<bool> {
        let now = Version::of(&self.file.metadata()?);
        Ok(!now.has_content_of(&self.version))
    }

    /// Reads up to `most` of the bytes that are left at `offset`, at least one.
    fn read_some(
        &self,
        offset: u64,
        left: u64,
        most: usize,
        patience: Patience,
    ) -> Result<Bytes, Trouble> {
        let wanted = usize::try_from(left).map_or(most, |left| left.min(most));
        let mut buffer = Buffer::take(wanted);
        let room = buffer.room();
        let mut done = 0;
        while done < wanted {
            let (at, room) = (offset + done as u64, &mut room[done..wanted]);
            match self.reading.read(&self.file, room, at, patience) {
                Ok(0) => return Err(changed()),
                Ok(read) => done += read,
                // What is there is sent; the rest is read by a thread that may wait.
                Err(Trouble::WouldBlock) if done > 0 => break,
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(buffer.into_bytes(done))
    }

    /// Fails if the file was changed in a way that may concern what was promised of it.
    ///
    /// Files that only grow, such as logs, are sent as they were when they were asked for. That a file
    /// has only grown is seen by its length, and by what was sent last, which has to be there still.
    fn check(&mut self, last: &Last) -> Result<(), Trouble> {
        let now = Version::of(&self.file.metadata()?);
        if now.has_content_of(&self.version) {
            return Ok(());
        }
        if now.len() <= self.version.len() || !last.is_in(&self.file)? {
            return Err(changed());
        }
        self.version = now;
        Ok(())
    }

    /// As [`read_some`](Self::read_some), on a thread that may wait, and further ahead: while the disk
    /// is waited for, the kernel reads on.
    fn read_ahead(
        &self,
        mut offset: u64,
        mut left: u64,
        most: usize,
    ) -> Result<VecDeque<Bytes>, Trouble> {
        // A second piece waits outside of the windows of the transport: not for a peer that has taken
        // little.
        let count = if most < buffers::SIZE { 1 } else { READ_AHEAD };
        let mut chunks = VecDeque::with_capacity(count);
        while left > 0 && chunks.len() < count {
            let chunk = self.read_some(offset, left, most, Patience::Any)?;
            offset += chunk.len() as u64;
            left -= chunk.len() as u64;
            chunks.push_back(chunk);
        }
        Ok(chunks)
    }
}

/// The end of what was handed out last, to be found again.
#[derive(Clone, Copy, Debug)]
struct Last {
    offset: u64,
    len: usize,
    hash: u64,
}

impl Last {
    fn of(chunk: &[u8], offset: u64) -> Self {
        let skipped = chunk.len().saturating_sub(LAST);
        let end = &chunk[skipped..];
        Self {
            offset: offset + skipped as u64,
            len: end.len(),
            hash: HASHER.hash_one(end),
        }
    }

    fn is_in(&self, file: &File) -> Result<bool, Trouble> {
        let mut end = [0; LAST];
        let mut done = 0;
        while done < self.len {
            let (at, room) = (self.offset + done as u64, &mut end[done..self.len]);
            // It was read a moment ago: it is in memory.
            match Reading::read_now(file, room, at)? {
                0 => return Ok(false),
                read => done += read,
            }
        }
        Ok(HASHER.hash_one(&end[..self.len]) == self.hash)
    }
}

/// Bytes that are compared.
const LAST: usize = 1024;

static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// The file is not what the head of the response says.
fn changed() -> Trouble {
    Trouble::Failed(io::Error::other("the file was changed while it was sent"))
}

/// Part of a file, read as it is sent.
///
/// It fails when the file is changed meanwhile, so that the peer never takes a mixture of two states
/// for a file.
#[derive(Debug)]
pub(crate) struct Reader {
    source: Source,
    /// Of what is handed out next.
    offset: u64,
    /// Bytes that are still to be handed out.
    left: u64,
    /// First byte of the part.
    first: u64,
    /// Bytes of the next piece that is read, at most.
    next: usize,
    last: Last,
    /// Read, and not handed out yet.
    ahead: VecDeque<Bytes>,
    pending: Option<tokio::task::JoinHandle<Result<VecDeque<Bytes>, Trouble>>>,
}

impl Reader {
    /// Reads the first piece, so that it belongs to the version of `source` for certain: the whole of
    /// a small file or part, and little of a large one, which the peer may never read (attack A88). A
    /// part of a large file counts as large early: a peer may ask for one again and again, and the
    /// content is not shared between its requests as that of a small file is.
    ///
    /// Fails with [`Unsettled`](Trouble::Unsettled) if the file was changed meanwhile. One that has
    /// grown is fine where that was waited for: logs grow all the time.
    pub(crate) fn begin(
        source: Source,
        offset: u64,
        left: u64,
        effort: Effort,
    ) -> Result<Self, Trouble> {
        let first = match left {
            0 => Ok(None),
            left => {
                let small = match left == source.version.len() {
                    true => buffers::SIZE,
                    false => SMALL_PART,
                };
                let most = if left <= small as u64 { small } else { FIRST };
                let first = source.read_some(offset, left, most, effort.patience);
                first.map(Some)
            }
        };
        let now = Version::of(&source.file.metadata()?);
        let has_grown = now.len() > source.version.len() && first.is_ok();
        let is_fine = has_grown && effort.takes_unsettled;
        if !(now.has_content_of(&source.version) || is_fine) {
            return Err(Trouble::Unsettled(crate::version::SETTLED_AFTER));
        }
        Ok(Self {
            source,
            offset,
            left,
            first: offset,
            next: FIRST * GROWTH,
            last: Last::of(&[], offset),
            ahead: first?.into_iter().collect(),
            pending: None,
        })
    }

    /// Bytes that are still to be handed out.
    pub(crate) const fn left(&self) -> u64 {
        self.left
    }

    /// Hands out all that is left, if it was read already.
    pub(crate) fn take_whole(&mut self) -> Option<Bytes> {
        let is_whole = |chunk: &mut Bytes| chunk.len() as u64 == self.left;
        let whole = self.ahead.pop_front_if(is_whole)?;
        self.left = 0;
        Some(whole)
    }

    /// The next piece. `None` at the end.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        match ready!(self.poll_chunk(cx)) {
            Ok(chunk) => {
                self.last = Last::of(&chunk, self.offset);
                self.offset += chunk.len() as u64;
                self.left -= chunk.len() as u64;
                Poll::Ready(Some(Ok(chunk)))
            }
            Err(trouble) => {
                self.left = 0;
                Poll::Ready(Some(Err(match trouble {
                    Trouble::Failed(error) | Trouble::Exhausted(error) => error,
                    _ => io::Error::other("the file cannot be read"),
                })))
            }
        }
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Trouble>> {
        if let Some(chunk) = self.ahead.pop_front() {
            return Poll::Ready(Ok(chunk));
        }
        let read = match &mut self.pending {
            None => self
                .source
                .read_some(self.offset, self.left, self.next, Patience::Never),
            Some(_) => Err(Trouble::WouldBlock),
        };
        let chunk = match read {
            Err(Trouble::WouldBlock) => ready!(self.poll_ahead(cx))?,
            read => read?,
        };
        let taken = self.offset + chunk.len() as u64 - self.first;
        self.next = next_piece(self.next, taken);
        Poll::Ready(self.source.check(&self.last).map(|()| chunk))
    }

    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Trouble>> {
        let pending = self.pending.get_or_insert_with(|| {
            let (source, most) = (self.source.clone(), self.next);
            let (offset, left) = (self.offset, self.left);
            tokio::task::spawn_blocking(move || source.read_ahead(offset, left, most))
        });
        let read = ready!(Pin::new(pending).poll(cx));
        self.pending = None;
        self.ahead = read.map_err(|error| Trouble::Failed(error.into()))??;
        Poll::Ready(self.ahead.pop_front().ok_or_else(changed))
    }
}

/// Bytes of a large part that are read before somebody wants them.
const FIRST: usize = 512;

/// Parts of a larger file that are read at once.
const SMALL_PART: usize = 4 * 1024;

/// Each piece is at most so many times as large as the one before it, up to [`EARLY`].
const GROWTH: usize = 4;

/// Later pieces are half of what was taken before, up to [`buffers::SIZE`]: what is kept for a peer
/// that reads no further is in proportion to what it has taken (limit K111).
const EARLY: usize = 8 * 1024;

/// Bytes of the piece behind one of up to `last` bytes, when `taken` bytes of the part were handed out.
fn next_piece(last: usize, taken: u64) -> usize {
    let half = usize::try_from(taken / 2).map_or(buffers::SIZE, |half| half.min(buffers::SIZE));
    // Buffers have these sizes.
    let whole = 1 << half.max(1).ilog2();
    (last * GROWTH).min(EARLY).max(whole)
}

/// Largest chunks that one visit of a thread reads.
const READ_AHEAD: usize = 2;

/// The content kept for a peer that reads nothing, beside the send buffer of the transport.
const _: () = assert!(buffers::SIZE * READ_AHEAD <= 128 * 1024);
