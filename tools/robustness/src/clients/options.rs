//! Options of the modes.

use std::str::FromStr;

/// Options of a mode, each as `NAME=VALUE`.
pub(super) struct Options(Vec<(String, String)>);

impl Options {
    pub(super) fn read(words: &[String]) -> Result<Self, String> {
        let pair = |word: &String| {
            let (name, value) = word.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        let pairs = words
            .iter()
            .map(|word| pair(word).ok_or_else(|| format!("`{word}` is not NAME=VALUE")));
        pairs.collect::<Result<_, _>>().map(Self)
    }

    /// Parses the value of an option.
    pub(super) fn get<T: FromStr>(&self, name: &str) -> Result<T, String> {
        let found = self.0.iter().find(|(other, _)| other == name);
        let value = found.and_then(|(_, value)| value.parse().ok());
        value.ok_or_else(|| format!("{name} is missing or invalid"))
    }
}
