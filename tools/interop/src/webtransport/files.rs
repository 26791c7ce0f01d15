//! Names of files, which come from the other end.

use std::path::{Component, Path, PathBuf};

use courser_measure::Failure;

/// Returns the name in a request.
pub(super) fn requested(request: &[u8]) -> Result<&str, Failure> {
    let text = request
        .strip_prefix(GET)
        .and_then(|name| std::str::from_utf8(name).ok());
    let name = text.map(str::trim).filter(|name| !name.is_empty());
    name.ok_or_else(|| Failure::new("a request that is not GET NAME"))
}

/// Returns the request for a file.
pub(super) fn request(name: &str) -> Vec<u8> {
    [GET, name.as_bytes()].concat()
}

/// Returns a file with the line that names it.
pub(super) fn push(name: &str, content: &[u8]) -> Vec<u8> {
    let base = name.rsplit('/').next().unwrap_or(name);
    [PUSH, base.as_bytes(), b"\n", content].concat()
}

/// Splits a file from the line that names it.
pub(super) fn pushed(bytes: &[u8]) -> Result<(&str, &[u8]), Failure> {
    let wrong = || Failure::new("a file that does not begin with PUSH NAME");
    let rest = bytes.strip_prefix(PUSH).ok_or_else(wrong)?;
    let end = rest.iter().position(|byte| *byte == b'\n');
    let (name, content) = rest.split_at(end.ok_or_else(wrong)?);
    let name = std::str::from_utf8(name).map_err(|_| wrong())?;
    Ok((name.trim(), &content[1..]))
}

/// Reads a file of an endpoint.
pub(super) async fn read(root: &Path, endpoint: &str, name: &str) -> Result<Vec<u8>, Failure> {
    let path = root.join(below(endpoint)?).join(below(name)?);
    let read = tokio::fs::read(&path).await;
    read.map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))
}

/// Writes a file of an endpoint. Only the last segment of the name counts.
pub(super) async fn write(
    root: &Path,
    endpoint: &str,
    name: &str,
    content: &[u8],
) -> Result<(), Failure> {
    let base = name.rsplit('/').next().unwrap_or(name);
    let folder = root.join(below(endpoint)?);
    let path = folder.join(below(base)?);
    let written = async {
        tokio::fs::create_dir_all(&folder).await?;
        tokio::fs::write(&path, content).await
    };
    let failed = |error| Failure::new(format!("cannot write {}: {error}", path.display()));
    written.await.map_err(failed)
}

/// Returns a relative path that does not leave its folder.
fn below(name: &str) -> Result<PathBuf, Failure> {
    let path = PathBuf::from(name.trim_start_matches('/'));
    let is_below = |part| matches!(part, Component::Normal(_));
    match path.components().all(is_below) {
        true => Ok(path),
        false => Err(Failure::new(format!("'{name}' leaves its folder"))),
    }
}

const GET: &[u8] = b"GET ";
const PUSH: &[u8] = b"PUSH ";
