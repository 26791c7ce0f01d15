//! Rust source with everything that is not code blanked out.

/// Blanks comments, strings and characters; every line stays on its line.
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
            code.extend(
                characters[at..end]
                    .iter()
                    .map(|&c| if c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    code
}

/// Blanks what stands behind `#[cfg(test)]` in the result of [`only_code`].
pub(crate) fn without_tests(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find(TEST_ATTRIBUTE) {
        let end = start + TEST_ATTRIBUTE.len() + item_len(&rest[start + TEST_ATTRIBUTE.len()..]);
        kept.push_str(&rest[..start]);
        kept.extend(
            rest[start..end]
                .chars()
                .map(|c| if c == '\n' { '\n' } else { ' ' }),
        );
        rest = &rest[end..];
    }
    kept.push_str(rest);
    kept
}

/// The names in `#[cfg(test)] mod name;`, looked for in the result of [`only_code`].
pub(crate) fn test_modules(code: &str) -> Vec<String> {
    let items = code.match_indices(TEST_ATTRIBUTE).map(|(at, _)| {
        let rest = &code[at + TEST_ATTRIBUTE.len()..];
        &rest[..item_len(rest)]
    });
    let name = |item: &str| {
        let declaration = item.strip_suffix(';')?;
        let mut words = declaration.split_whitespace().rev();
        let name = words.next()?;
        (words.next() == Some("mod")).then(|| name.to_owned())
    };
    items.filter_map(name).collect()
}

/// The lines, counted from 1, on which `code` has `word` as a whole identifier.
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

/// Where the comment or literal that starts at `at` ends; `at` itself when code stands there.
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
        // Without the closing quote it is a lifetime, and code.
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

/// The end of `r"…"`, `r#"…"#`, `br"…"` and `cr"…"`; `start` when something else stands there.
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

/// The length of the item that `code` begins with: up to its `;` or the end of its braces.
fn item_len(code: &str) -> usize {
    let mut depth = 0_usize;
    for (index, character) in code.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth <= 1 => return index + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return index + 1,
            _ => {}
        }
    }
    code.len()
}

fn is_identifier(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

const TEST_ATTRIBUTE: &str = "#[cfg(test)]";

#[cfg(test)]
mod tests;
