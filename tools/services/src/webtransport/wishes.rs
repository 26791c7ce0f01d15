//! What the client of an echo asks the server to begin.

use percent_encoding::percent_decode_str;

/// The parameters in the query of a session: `open=N` for N bidirectional streams of the server, which it echoes like
/// those of the client, and `close=CODE` with an optional `reason=TEXT` for a close by the server at once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Wishes {
    /// The number of bidirectional streams that the server opens.
    pub(super) open: u32,
    /// The code and the message with which the server closes the session.
    pub(super) close: Option<(u32, String)>,
}

impl Wishes {
    /// Parses a query. Unknown parameters have no effect.
    pub(super) fn parse(query: &str) -> Result<Self, String> {
        let mut wishes = Self::default();
        let mut reason = String::new();
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "open" => wishes.open = number(name, value, MAX_OPEN)?,
                "close" => wishes.close = Some((number(name, value, u32::MAX)?, String::new())),
                "reason" => {
                    let value = value.replace('+', " ");
                    reason = percent_decode_str(&value).decode_utf8_lossy().into_owned();
                }
                _ => {}
            }
        }
        if let Some((_, message)) = &mut wishes.close {
            *message = reason;
        }
        Ok(wishes)
    }
}

fn number(name: &str, value: &str, most: u32) -> Result<u32, String> {
    let number = value.parse().ok().filter(|number| *number <= most);
    number.ok_or_else(|| {
        let value: String = value.chars().take(20).collect();
        format!("{name}={value} is not a number from 0 to {most}")
    })
}

/// Largest number of streams that the server opens for a client (limit K563): ten times what browsers allow.
const MAX_OPEN: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Limit K563.
    #[test]
    fn queries_are_parsed_within_their_bounds() {
        let wishes = |query| Wishes::parse(query);
        assert_eq!(wishes(""), Ok(Wishes::default()));
        assert_eq!(wishes("x&y=1"), Ok(Wishes::default()));
        assert_eq!(wishes("open=1000").map(|it| it.open), Ok(1000));
        let closed = Some((4_294_967_295, "so long & thanks".to_owned()));
        let query = "reason=so+long+%26%20thanks&close=4294967295";
        assert_eq!(wishes(query).map(|it| it.close), Ok(closed));
        for wrong in ["open=1001", "open=", "open=-1", "close=4294967296", "close"] {
            let error = wishes(wrong).expect_err(wrong);
            assert!(error.contains("is not a number from 0 to"), "{error}");
        }
    }
}
