//! Opens traces, compressed or not, and writes files.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::Error;
use crate::qlog::Reader;

/// A trace in a file.
pub(crate) type TraceFile = Reader<Box<dyn BufRead>>;

/// Opens a trace and reads its header.
pub(crate) fn open(path: &Path) -> Result<TraceFile, Error> {
    let name = path.display();
    let failed = |error| Error::new(format!("cannot read {name}: {error}"));
    if path.is_dir() {
        return Err(Error::new(format!(
            "{name} is a directory: pass the files in it"
        )));
    }
    let file = File::open(path).map_err(failed)?;
    let content = decompressed(BufReader::with_capacity(READ_BUFFER, file)).map_err(failed)?;
    Reader::new(content).map_err(|error| Error::new(format!("{name}: {error}")))
}

/// Returns the content of a file. Decompresses gzip and zstd, which the first bytes of the file show.
pub(crate) fn decompressed<R: BufRead + 'static>(mut file: R) -> std::io::Result<Box<dyn BufRead>> {
    let start = file.fill_buf()?;
    if start.starts_with(&GZIP) {
        return Ok(Box::new(buffered(MultiGzDecoder::new(file))));
    }
    if start.starts_with(&ZSTD) {
        return zstd(file);
    }
    Ok(Box::new(file))
}

fn buffered<R: Read>(content: R) -> BufReader<R> {
    BufReader::with_capacity(READ_BUFFER, content)
}

#[cfg(feature = "zstd")]
fn zstd<R: BufRead + 'static>(file: R) -> std::io::Result<Box<dyn BufRead>> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(file)?;
    decoder.window_log_max(WINDOW_LOG_MAX)?;
    Ok(Box::new(buffered(decoder)))
}

#[cfg(not(feature = "zstd"))]
fn zstd<R: BufRead + 'static>(_file: R) -> std::io::Result<Box<dyn BufRead>> {
    Err(std::io::Error::other(
        "it is compressed with zstd, which this build does not read: run unzstd on it first",
    ))
}

/// Creates or replaces a file. Fails if it is one of the inputs.
pub(crate) fn create(path: &Path, inputs: &[&Path]) -> Result<BufWriter<File>, Error> {
    let name = path.display();
    let own = fs::canonicalize(path).ok();
    let is_input = |input: &&Path| own.is_some() && fs::canonicalize(input).ok() == own;
    if inputs.iter().any(is_input) {
        return Err(Error::new(format!(
            "{name} is also an input: choose another output"
        )));
    }
    let file = File::create(path);
    let file = file.map_err(|error| Error::new(format!("cannot write {name}: {error}")))?;
    Ok(BufWriter::with_capacity(READ_BUFFER, file))
}

/// Creates or replaces a file with `content`. Fails if it is the input.
pub(crate) fn write(path: &Path, content: &str, input: &Path) -> Result<(), Error> {
    let mut file = create(path, &[input])?;
    file.write_all(content.as_bytes())
        .and_then(|()| file.flush())
        .map_err(|error| Error::new(format!("cannot write {}: {error}", path.display())))
}

const READ_BUFFER: usize = 256 * 1024;
/// The first bytes of compressed files (RFC 1952 §2.3.1, RFC 8878 §3.1.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The largest window of zstd: 64 MiB, as a power of two. K208.
#[cfg(feature = "zstd")]
const WINDOW_LOG_MAX: u32 = 26;

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &[u8] = b"\x1e{\"trace\":{}}\n\x1e{\"time\":1,\"name\":\"quic:a\"}\n";

    fn events(compressed: Vec<u8>) -> usize {
        let content = decompressed(std::io::Cursor::new(compressed)).expect("known");
        Reader::new(content).expect("a header").count()
    }

    #[test]
    fn traces_compressed_with_gzip_are_read() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(TRACE).expect("memory");
        let mut compressed = encoder.finish().expect("memory");
        assert_eq!(events(compressed.clone()), 1);
        // A file that ends too early is read up to there.
        compressed.truncate(compressed.len() - 12);
        let content = decompressed(std::io::Cursor::new(compressed)).expect("gzip");
        let lines: Vec<_> = Reader::new(content).expect("a header").collect();
        assert!(lines.last().is_some_and(Result::is_err), "{lines:?}");
    }

    #[cfg(feature = "zstd")]
    #[test]
    fn traces_compressed_with_zstd_are_read_with_a_bounded_window() {
        let compressed = zstd::stream::encode_all(TRACE, 3).expect("memory");
        assert_eq!(events(compressed), 1);
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).expect("memory");
        encoder.window_log(WINDOW_LOG_MAX + 1).expect("allowed");
        encoder.include_contentsize(false).expect("allowed");
        encoder.write_all(TRACE).expect("memory");
        let compressed = encoder.finish().expect("memory");
        let content = decompressed(std::io::Cursor::new(compressed)).expect("zstd");
        assert!(Reader::new(content).is_err(), "the window is too large");
    }

    #[cfg(not(feature = "zstd"))]
    #[test]
    fn zstd_without_the_feature_is_refused_with_a_remedy() {
        let file = std::io::Cursor::new(ZSTD.to_vec());
        let error = decompressed(file).err().expect("refused");
        assert!(error.to_string().contains("unzstd"), "{error}");
    }
}
