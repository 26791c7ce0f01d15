//! Paths that are resolved by looking at them, where the system cannot open below a folder.

use std::path::{Path, PathBuf};

use crate::trouble::Trouble;

/// Returns where `relative` leads from `root`, with no symbolic link left in it.
///
/// A link that leads out of the root is followed if `follow_symlinks` says so, and is
/// [`NotFound`](Trouble::NotFound) otherwise. Whoever can change the folder at the same time can
/// make the answer wrong.
pub(super) fn resolve(
    root: &Path,
    relative: &Path,
    follow_symlinks: bool,
) -> Result<PathBuf, Trouble> {
    let real = root.join(relative).canonicalize()?;
    match real.strip_prefix(root) {
        // Windows knows `.git` by the name `GIT~1` too.
        Ok(inside) if cfg!(windows) && hides_more(inside, relative) => Err(Trouble::NotFound),
        Err(_) if !follow_symlinks => Err(Trouble::NotFound),
        _ => Ok(real),
    }
}

/// Returns true if some part of `real` is hidden, and no part of what was asked for is.
fn hides_more(real: &Path, asked: &Path) -> bool {
    let is_hidden = |path: &Path| {
        let mut names = path.iter().map(|name| name.to_string_lossy()).enumerate();
        names.any(|(index, name)| crate::path::is_hidden(index, &name))
    };
    is_hidden(real) && !is_hidden(asked)
}
