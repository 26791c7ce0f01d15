//! Separates Rust source into code and comments.

pub(crate) mod tokens;

use std::ops::Range;

/// Blanks comments, strings and characters. Every line keeps its number.
pub(crate) fn only_code(source: &str) -> String {
    let characters: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while at < characters.len() {
        let end = not_code_until(&characters, at);
        if end == at {
            code.push(characters[at]);
            at += 1;
        } else {
            blank(&characters[at..end], &mut code);
            at = end;
        }
    }
    code
}

/// Blanks the items that only tests compile. Takes the result of [`only_code`].
pub(crate) fn without_tests(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut end = 0;
    for item in test_items(code) {
        kept.push_str(&code[end..item.start]);
        let blanked: Vec<char> = code[item.clone()].chars().collect();
        blank(&blanked, &mut kept);
        end = item.end;
    }
    kept.push_str(&code[end..]);
    kept
}

/// Returns each `name` of `#[cfg(test)] mod name;`. Takes the result of [`only_code`].
pub(crate) fn test_modules(code: &str) -> Vec<String> {
    let name = |item: &str| {
        let declaration = item.strip_suffix(';')?;
        let mut words = declaration.split_whitespace().rev();
        let name = words.next()?;
        (words.next() == Some("mod")).then(|| name.to_owned())
    };
    let items = test_items(code).into_iter();
    items.filter_map(|item| name(&code[item])).collect()
}

/// Returns the lines of `code` that contain `word` as a whole identifier, counted from 1.
pub(crate) fn lines_with(code: &str, word: &str) -> Vec<usize> {
    code.lines()
        .enumerate()
        .filter(|(_, line)| {
            line.split(|c: char| !is_identifier(c))
                .any(|identifier| identifier == word)
        })
        .map(|(index, _)| index + 1)
        .collect()
}

/// Returns the end of the comment or literal that starts at `at`, or `at` if code starts there.
fn not_code_until(text: &[char], at: usize) -> usize {
    let next = text.get(at + 1).copied();
    match text[at] {
        '/' if next == Some('/') => {
            at + text[at..]
                .iter()
                .position(|&c| c == '\n')
                .unwrap_or(text.len() - at)
        }
        '/' if next == Some('*') => block_comment_end(text, at),
        '"' => string_end(text, at + 1),
        '\'' if next == Some('\\') => {
            // The escaped character may itself be a quote.
            let from = (at + 3).min(text.len());
            let closing = text[from..].iter().position(|&c| c == '\'');
            closing.map_or(text.len(), |distance| from + distance + 1)
        }
        // Without a closing quote it is a lifetime, which is code.
        '\'' if next.is_some() && text.get(at + 2) == Some(&'\'') => at + 3,
        'r' | 'b' | 'c' if at == 0 || !is_identifier(text[at - 1]) => raw_string_end(text, at),
        _ => at,
    }
}

fn block_comment_end(text: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < text.len() {
        match (text[at], text.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

fn string_end(text: &[char], start: usize) -> usize {
    let mut at = start;
    while at < text.len() {
        match text[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// Returns the end of `r"…"`, `r#"…"#`, `br"…"` or `cr"…"`, or `start` if none starts there.
fn raw_string_end(text: &[char], start: usize) -> usize {
    let mut at = start;
    if matches!(text[at], 'b' | 'c') {
        at += 1;
    }
    if text.get(at) != Some(&'r') {
        return start;
    }
    at += 1;
    let hashes = text[at..].iter().take_while(|&&c| c == '#').count();
    at += hashes;
    if text.get(at) != Some(&'"') {
        return start;
    }
    at += 1;
    while at < text.len() {
        let closes = text[at] == '"'
            && text.len() > at + hashes
            && text[at + 1..=at + hashes].iter().all(|&c| c == '#');
        if closes {
            return at + 1 + hashes;
        }
        at += 1;
    }
    text.len()
}

/// Returns the ranges of the items that only tests compile, each from its attribute on.
fn test_items(code: &str) -> Vec<Range<usize>> {
    let mut items = Vec::new();
    let mut from = 0;
    while let Some(attribute) = test_attribute(&code[from..]) {
        let end = from + attribute.end;
        let item = from + attribute.start..end + item_len(&code[end..]);
        from = item.end;
        items.push(item);
    }
    items
}

/// Returns the range of the first attribute that limits an item to tests.
fn test_attribute(code: &str) -> Option<Range<usize>> {
    TEST_ATTRIBUTES
        .iter()
        .filter_map(|attribute| {
            let start = code.find(attribute)?;
            let end = code[start..].find(']')? + 1;
            Some(start..start + end)
        })
        .min_by_key(|range| range.start)
}

/// Returns the length of the item at the start of `code`, with the attributes before it.
///
/// It ends with its `;` or its braces. A field, a variant or an arm ends with its comma, or before
/// the brace that closes the list.
fn item_len(code: &str) -> usize {
    let is_listed = !starts_with_keyword(code);
    let mut depth = 0_usize;
    for (index, character) in code.char_indices() {
        match character {
            '{' | '(' | '[' => depth += 1,
            '}' if depth == 0 => return index,
            '}' if depth == 1 => return index + 1,
            '}' | ')' | ']' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => return index + 1,
            ',' if depth == 0 && is_listed => return index + 1,
            _ => {}
        }
    }
    code.len()
}

/// Returns true for an item that a keyword introduces, such as a function. Attributes and
/// visibility may precede it.
fn starts_with_keyword(code: &str) -> bool {
    let mut rest = code.trim_start();
    while let Some(end) = rest.starts_with("#[").then(|| rest.find(']')).flatten() {
        rest = rest[end + 1..].trim_start();
    }
    if let Some(visible) = rest.strip_prefix("pub") {
        rest = visible.trim_start();
        if let Some(end) = rest.starts_with('(').then(|| rest.find(')')).flatten() {
            rest = rest[end + 1..].trim_start();
        }
    }
    let end = rest.find(|c: char| !is_identifier(c)).unwrap_or(rest.len());
    ITEM_KEYWORDS.contains(&&rest[..end])
}

fn blank(characters: &[char], code: &mut String) {
    code.extend(
        characters
            .iter()
            .map(|&c| if c == '\n' { '\n' } else { ' ' }),
    );
}

fn is_identifier(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

const TEST_ATTRIBUTES: &[&str] = &["#[cfg(test)]", "#[cfg(all(test,"];

const ITEM_KEYWORDS: &[&str] = &[
    "async", "const", "enum", "extern", "fn", "impl", "let", "mod", "static", "struct", "trait",
    "type", "union", "unsafe", "use",
];

#[cfg(test)]
mod tests;
