//! Suggestions for misspelt names.

/// Returns the name that is most similar to `written`, if one is similar enough.
pub fn nearest<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Long text is not a misspelt name, and computing the distance takes quadratic time.
    if written.len() > 32 {
        return None;
    }
    let written = written.to_ascii_lowercase().replace('_', "-");
    let allowed = if written.len() <= 3 { 1 } else { 2 };
    names
        .map(|name| (distance(&written, name), name))
        .filter(|(distance, name)| *distance <= allowed || name.starts_with(&written))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Returns the number of letters to insert, delete, replace or swap with the next.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found_and_others_are_not() {
        let names = ["rate", "delay", "duplicate", "every"];
        let find = |written| nearest(written, names.into_iter());
        assert_eq!(find("rtae"), Some("rate"));
        assert_eq!(find("Delay"), Some("delay"));
        assert_eq!(find("dup"), Some("duplicate"));
        assert_eq!(find("bandwidth"), None);
        assert_eq!(find(&"x".repeat(100_000)), None);
    }
}
