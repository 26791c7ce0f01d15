//! The format of the files of `--config`.

/// Returns the lines that are not comments, with their numbers.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.map(|(index, line)| (index + 1, line));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Returns the flag of a line and its value.
pub(super) fn flag(line: &str) -> Result<(&str, Option<String>), String> {
    let is_dashed = line.starts_with('-');
    let is_separator =
        |letter: char| letter.is_whitespace() || (!is_dashed && matches!(letter, '=' | ':'));
    let end = line.find(is_separator).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    Ok((name, value(rest.trim_start_matches(is_separator))?))
}

/// Parses a value, which is quoted if it contains spaces. Returns `None` if there is none.
fn value(text: &str) -> Result<Option<String>, String> {
    let Some(quoted) = text.strip_prefix('"') else {
        let value = text.split_whitespace().next();
        let value = value.filter(|value| !value.starts_with('#'));
        return Ok(value.map(str::to_owned));
    };
    let mut value = String::new();
    let mut letters = quoted.chars();
    loop {
        let letter = match letters.next() {
            None => return Err("unterminated quotes".to_owned()),
            Some('"') => return Ok(Some(value)),
            Some('\\') => match letters.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('v') => '\u{b}',
                Some(letter) => letter,
                None => continue,
            },
            Some(letter) => letter,
        };
        value.push(letter);
    }
}
