//! Writes the `d` attribute of SVG paths in a short form.

/// A path of relative moves in tenths of a pixel.
///
/// Positions are rounded before they are subtracted, so that errors do not add up.
#[derive(Clone, Default, Debug)]
pub(crate) struct Path {
    out: String,
    x: i64,
    y: i64,
}

impl Path {
    pub(crate) fn move_to(&mut self, x: f64, y: f64) {
        (self.x, self.y) = (tenths(x), tenths(y));
        self.out.push('M');
        self.number(self.x);
        self.separated(self.y);
    }

    pub(crate) fn line_to(&mut self, x: f64, y: f64) {
        let (x, y) = (tenths(x), tenths(y));
        let (dx, dy) = (x - self.x, y - self.y);
        (self.x, self.y) = (x, y);
        match (dx, dy) {
            (0, 0) => {}
            (_, 0) => self.command('h', dx),
            (0, _) => self.command('v', dy),
            _ => {
                self.command('l', dx);
                self.separated(dy);
            }
        }
    }

    /// Adds a line of length zero, which round caps draw as a dot.
    pub(crate) fn dot(&mut self, x: f64, y: f64) {
        self.move_to(x, y);
        self.out.push_str("h0");
    }

    pub(crate) fn close(&mut self) {
        self.out.push('z');
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.out
    }

    fn command(&mut self, letter: char, value: i64) {
        self.out.push(letter);
        self.number(value);
    }

    /// Writes a number after another one, with a space unless a minus sign separates them.
    fn separated(&mut self, value: i64) {
        if value >= 0 {
            self.out.push(' ');
        }
        self.number(value);
    }

    fn number(&mut self, value: i64) {
        push_tenths(&mut self.out, value);
    }
}

/// Formats a number of pixels with at most one decimal.
pub(crate) fn pixels(value: f64) -> String {
    let mut out = String::new();
    push_tenths(&mut out, tenths(value));
    out
}

fn push_tenths(out: &mut String, value: i64) {
    if value < 0 {
        out.push('-');
    }
    let (whole, rest) = (value.unsigned_abs() / 10, value.unsigned_abs() % 10);
    if whole != 0 || rest == 0 {
        out.push_str(&whole.to_string());
    }
    if rest != 0 {
        out.push('.');
        out.push_str(&rest.to_string());
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "pixels are bounded by the scale; casts saturate and NaN becomes zero"
)]
fn tenths(value: f64) -> i64 {
    (value * 10.0).round() as i64
}

#[cfg(test)]
mod tests;
