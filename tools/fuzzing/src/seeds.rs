//! The seed files, for tests.

/// Returns the content of a seed of a target.
pub(crate) fn read(target: &str, name: &str) -> Vec<u8> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("../../fuzz/seeds").join(target).join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
