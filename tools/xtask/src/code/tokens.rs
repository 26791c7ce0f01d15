//! Splits code into words and punctuation.

use super::is_identifier;

/// An identifier, a number, `::`, `->`, `=>`, or one punctuation character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// The number of its line, counted from 1.
    pub(crate) line: usize,
}

impl Token<'_> {
    /// Returns true for identifiers and keywords.
    pub(crate) fn is_word(&self) -> bool {
        let first = self.text.chars().next();
        first.is_some_and(|c| is_identifier(c) && !c.is_ascii_digit())
    }
}

/// Returns the tokens of `code`, which comes from [`super::only_code`].
pub(crate) fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let len = token_len(rest, first);
        if first == '\n' {
            line += 1;
        } else if !first.is_whitespace() {
            found.push(Token {
                text: &rest[..len],
                line,
            });
        }
        rest = &rest[len..];
    }
    found
}

/// Returns the text of the token at `at`, or an empty one after the last token.
pub(crate) fn text_at<'a>(tokens: &[Token<'a>], at: usize) -> &'a str {
    tokens.get(at).map_or("", |token| token.text)
}

/// Returns the index of the bracket that closes the one at `open`.
pub(crate) fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

fn token_len(rest: &str, first: char) -> usize {
    if is_identifier(first) {
        return rest.find(|c| !is_identifier(c)).unwrap_or(rest.len());
    }
    let pairs = ["::", "->", "=>"];
    if pairs.iter().any(|pair| rest.starts_with(pair)) {
        return 2;
    }
    first.len_utf8()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(code: &str) -> Vec<&str> {
        tokens(code).iter().map(|token| token.text).collect()
    }

    #[test]
    fn words_and_punctuation_are_separate() {
        assert_eq!(
            texts("fn a(&self) -> b::C<'a> { x => 1 }"),
            [
                "fn", "a", "(", "&", "self", ")", "->", "b", "::", "C", "<", "'", "a", ">", "{",
                "x", "=>", "1", "}"
            ]
        );
    }

    #[test]
    fn tokens_know_their_line() {
        let lines: Vec<usize> = tokens("a\n\nb c").iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 3, 3]);
    }

    #[test]
    fn brackets_are_matched() {
        let found = tokens("{ ( [ ] { } ) } x");
        assert_eq!(closing(&found, 0), 7);
        assert_eq!(closing(&found, 1), 6);
        assert_eq!(closing(&tokens("{ ("), 0), 2);
    }

    #[test]
    fn numbers_are_no_words() {
        let words: Vec<bool> = tokens("a _b 1u8 +").iter().map(Token::is_word).collect();
        assert_eq!(words, [true, true, false, false]);
    }
}
