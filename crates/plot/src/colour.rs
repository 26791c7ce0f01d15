//! Which colour a series has; what it looks like is said in the stylesheet.

/// The colour of a series or mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Colour {
    /// The next one of the palette, in the order of the series of the chart.
    #[default]
    Auto,
    /// This one of the palette's eight; larger numbers begin again.
    Nth(usize),
    /// Something bad: losses, failures.
    Bad,
    /// Something good: recovered, passed.
    Good,
    /// Background knowledge: link rates, minimum values.
    Muted,
}

/// Colours in the palette.
pub(crate) const PALETTE: usize = 8;

impl Colour {
    /// The CSS class that sets the colour; `auto` is what [`Colour::Auto`] stands for.
    pub(crate) fn class(self, auto: usize) -> &'static str {
        const CLASSES: [&str; PALETTE] = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];
        match self {
            Colour::Auto => CLASSES[auto % PALETTE],
            Colour::Nth(number) => CLASSES[number % PALETTE],
            Colour::Bad => "cb",
            Colour::Good => "cg",
            Colour::Muted => "cm",
        }
    }
}
