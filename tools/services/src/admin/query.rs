//! The query of a request to the admin endpoints.

use percent_encoding::percent_decode_str;

use super::rows::{Column, Selection};

/// The parameters of a query as pairs of name and decoded value.
#[derive(Clone, Debug)]
pub(super) struct Query<'q>(Vec<(&'q str, String)>);

impl<'q> Query<'q> {
    /// Reads a query of the form `a=1&b=2`, with percent-encoded values.
    ///
    /// # Errors
    /// A message for the user if a name is not in `known` or occurs twice.
    pub(super) fn parse(text: Option<&'q str>, known: &[&str]) -> Result<Self, String> {
        let pairs = text.unwrap_or_default().split('&');
        let mut all = Vec::new();
        for pair in pairs.filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !known.contains(&name) {
                return Err(format!("the parameters are {}", known.join(", ")));
            }
            if all.len() >= known.len() {
                return Err("a parameter is repeated".to_owned());
            }
            let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
            all.push((name, value));
        }
        Ok(Self(all))
    }

    fn text(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        let found = pairs.find(|(it, _)| *it == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the value of a numeric parameter, `default` if it is missing, and at most `most`.
    ///
    /// # Errors
    /// A message for the user if the value is not a number.
    pub(super) fn number(&self, name: &str, default: u64, most: u64) -> Result<u64, String> {
        let Some(text) = self.text(name) else {
            return Ok(default);
        };
        let number = text.parse::<u64>();
        let number = number.map_err(|_| format!("{name} must be a number"))?;
        Ok(number.min(most))
    }

    /// Returns the selection of connections that the query describes.
    ///
    /// # Errors
    /// A message for the user if a parameter is invalid.
    pub(super) fn selection(&self) -> Result<Selection, String> {
        let sort = self.text("sort").unwrap_or("id");
        let Some(sort) = Column::parse(sort) else {
            return Err(format!("sort by one of {}", Column::names()));
        };
        let is_descending = match self.text("order") {
            None | Some("asc") => false,
            Some("desc") => true,
            Some(_) => return Err("order is asc or desc".to_owned()),
        };
        let filter = self.text("filter").unwrap_or_default();
        if filter.chars().count() > MAX_FILTER {
            return Err(format!("the filter has more than {MAX_FILTER} characters"));
        }
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Selection {
            sort,
            is_descending,
            offset: size(self.number("offset", 0, u64::MAX)?),
            count: size(self.number("count", DEFAULT_ROWS, MAX_ROWS)?),
            filter: filter.to_owned(),
        })
    }
}

/// The parameters of `/connections`.
pub(super) const LIST_PARAMETERS: [&str; 5] = ["sort", "order", "offset", "count", "filter"];

const DEFAULT_ROWS: u64 = 100;
/// Largest number of connections in one response (limit K247); the live page requests fewer.
pub(super) const MAX_ROWS: u64 = 500;
/// Largest number of characters of a decoded filter (limit K247). The live page allows as many UTF-16 units,
/// which is never more characters.
const MAX_FILTER: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(text: &str) -> Result<Selection, String> {
        Query::parse(Some(text), &LIST_PARAMETERS)?.selection()
    }

    #[test]
    fn selection_has_defaults() {
        let selected = selection("").expect("empty");
        let expected = Selection {
            sort: Column::Id,
            is_descending: false,
            offset: 0,
            count: 100,
            filter: String::new(),
        };
        assert_eq!(selected, expected);
        let text = "sort=rtt_ms&order=desc&offset=40&count=20&filter=a%20%3Cb%3E";
        let expected = Selection {
            sort: Column::Rtt,
            is_descending: true,
            offset: 40,
            count: 20,
            filter: "a <b>".to_owned(),
        };
        assert_eq!(selection(text), Ok(expected));
    }

    #[test]
    fn selections_are_bounded() {
        assert_eq!(selection("count=99999999").map(|it| it.count), Ok(500));
        let long = "%41".repeat(MAX_FILTER);
        assert!(selection(&format!("filter={long}")).is_ok());
        assert!(selection(&format!("filter={long}A")).is_err());
        let wide = "%C3%A4".repeat(MAX_FILTER);
        assert!(selection(&format!("filter={wide}")).is_ok());
    }

    #[test]
    fn mistakes_are_explained() {
        for text in [
            "sort=colour",
            "order=down",
            "offset=-1",
            "count=many",
            "offset=99999999999999999999999",
            "else=1",
            "count=1&count=1&count=1&count=1&count=1&count=1",
        ] {
            let reason = selection(text).expect_err(text);
            assert!(
                !reason.is_empty() && !reason.contains('\n'),
                "{text}: {reason}"
            );
        }
    }
}
