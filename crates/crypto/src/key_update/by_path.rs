//! State of each path of a connection.

use courser_wire::PathId;

/// A value for each path. A connection with one path has it inline and allocates nothing.
#[derive(Debug, Default)]
pub(super) struct ByPath<T> {
    zero: T,
    others: Vec<(PathId, T)>,
}

impl<T: Default> ByPath<T> {
    /// Returns the value of path 0 if there is no other path.
    pub(super) fn single(&self) -> Option<&T> {
        self.others.is_empty().then_some(&self.zero)
    }

    /// Returns the value of a path, or `None` if nothing was sent or received on it.
    #[inline]
    pub(super) fn get(&self, path: PathId) -> Option<&T> {
        match path {
            PathId::ZERO => Some(&self.zero),
            path => self.others.iter().find(|it| it.0 == path).map(|it| &it.1),
        }
    }

    /// Returns the value of a path, and adds the path if it is new.
    #[inline]
    pub(super) fn get_mut(&mut self, path: PathId) -> &mut T {
        match path {
            PathId::ZERO => &mut self.zero,
            path => self.other(path),
        }
    }

    /// Iterates over the values of all paths.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let others = self.others.iter_mut().map(|it| &mut it.1);
        std::iter::once(&mut self.zero).chain(others)
    }

    #[cold]
    fn other(&mut self, path: PathId) -> &mut T {
        let found = self.others.iter().position(|it| it.0 == path);
        let index = found.unwrap_or_else(|| {
            self.others.push((path, T::default()));
            self.others.len() - 1
        });
        &mut self.others[index].1
    }
}
