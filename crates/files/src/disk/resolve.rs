//! Resolution of paths by inspection, for systems that cannot open files below a folder.

use std::path::{Path, PathBuf};

use crate::serve_error::ServeError;

/// Returns the target of `relative` below `root`, free of symbolic links.
///
/// A link out of the root is followed if `follow_symlinks` is set, and is
/// [`NotFound`](ServeError::NotFound) otherwise. A process that changes the folder at the same time
/// can make the result wrong.
pub(super) fn resolve(
    root: &Path,
    relative: &Path,
    follow_symlinks: bool,
) -> Result<PathBuf, ServeError> {
    let real = root.join(relative).canonicalize()?;
    match real.strip_prefix(root) {
        // On Windows, `.git` also has the name `GIT~1`.
        Ok(inside) if cfg!(windows) && hides_more(inside, relative) => Err(ServeError::NotFound),
        Err(_) if !follow_symlinks => Err(ServeError::NotFound),
        _ => Ok(real),
    }
}

/// Returns true if a component of `real` is hidden and no component of the requested path is.
fn hides_more(real: &Path, requested: &Path) -> bool {
    let is_hidden = |path: &Path| {
        let mut names = path.iter().enumerate();
        names.any(|(depth, name)| crate::path::is_hidden(depth, name.as_encoded_bytes()))
    };
    is_hidden(real) && !is_hidden(requested)
}
