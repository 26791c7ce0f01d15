//! Escapes and shortens untrusted text.

/// Escapes text for use as content or attribute value of XML and HTML.
///
/// The five characters of markup become entities. Characters that XML 1.0 forbids (§2.2) or that
/// change the direction of the text around them become U+FFFD. Line breaks and tabs become spaces.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            other if is_replaced(other) => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

/// Shortens text to at most `limit` characters, with an ellipsis as the last one.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    if text.chars().nth(limit).is_none() {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(limit.saturating_sub(1)).collect();
    out.push('…');
    out
}

/// Shortens text to fit into `width` pixels at a font size, but to no less than one character.
pub(crate) fn fit(text: &str, size: f64, width: f64) -> String {
    let room = width - em('…') * size;
    let (mut used, mut fitting) = (0.0, 0);
    for (index, character) in text.chars().enumerate() {
        used += em(character) * size;
        if used <= room {
            fitting = index + 1;
        }
        // The time is bounded by the visible part of the text.
        if used > width {
            return shorten(text, fitting.max(1) + 1);
        }
    }
    text.to_owned()
}

/// Returns an upper estimate of the width of text in pixels at a font size.
///
/// The reader's font is unknown. The factors are those of the widest common fonts (Verdana, DejaVu
/// Sans), so that labels do not touch in any font.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(em).sum::<f64>() * size
}

/// Returns the width of a character relative to the font size.
fn em(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' => 0.34,
        ' ' | '-' | '(' | ')' | '[' | ']' | '/' | 'f' | 't' | 'r' | 'I' => 0.41,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' | '—' => 0.99,
        'A'..='Z' => 0.73,
        other if other.is_ascii() || (other as u32) < 0x0500 => 0.63,
        _ => 1.05,
    }
}

fn is_replaced(character: char) -> bool {
    let changes_direction = matches!(
        character,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    let is_forbidden = matches!(character, '\u{fffe}' | '\u{ffff}') || character.is_control();
    changes_direction || is_forbidden
}

#[cfg(test)]
mod tests;
