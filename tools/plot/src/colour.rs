//! Colours of series. The stylesheet defines their values.

/// The colour of a series or mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Colour {
    /// The next colour of the palette, in the order of the series in the chart.
    #[default]
    Auto,
    /// A colour of the palette, which has eight. Larger numbers start again from the first.
    Nth(usize),
    /// The colour of losses and failures.
    Bad,
    /// The colour of recoveries and passed checks.
    Good,
    /// The colour of less important values, such as link rates and minimum values.
    Muted,
}

/// The number of colours in the palette.
pub(crate) const PALETTE: usize = 8;

impl Colour {
    /// Returns the CSS class that sets the colour. [`Colour::Auto`] becomes number `auto`.
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
