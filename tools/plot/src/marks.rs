//! Events along the horizontal axis, and levels across a chart.

use crate::Colour;

/// A group of events at points of the horizontal axis: losses, changes of state.
#[derive(Clone, PartialEq, Debug)]
pub struct Marks {
    pub(crate) name: String,
    pub(crate) style: MarkStyle,
    pub(crate) marks: Vec<(f64, String)>,
    pub(crate) colour: Colour,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MarkStyle {
    /// Lines over the whole height, with labels where they fit.
    Lines,
    /// Short strokes above the horizontal axis.
    Ticks,
}

impl Marks {
    /// Creates lines over the whole height, each with a label: changes of state, steps of a rate.
    pub fn lines<Label: Into<String>>(
        name: impl Into<String>,
        marks: impl IntoIterator<Item = (f64, Label)>,
    ) -> Self {
        let marks = marks.into_iter().map(|(x, label)| (x, label.into()));
        Self::of(name, MarkStyle::Lines, marks.collect())
    }

    /// Creates short strokes at the bottom, for frequent events. They have the colour of losses by default.
    pub fn ticks(name: impl Into<String>, marks: impl IntoIterator<Item = f64>) -> Self {
        let marks = marks.into_iter().map(|x| (x, String::new()));
        Self::of(name, MarkStyle::Ticks, marks.collect()).colour(Colour::Bad)
    }

    /// Sets the colour. By default lines are muted, and ticks have the colour of losses.
    #[must_use]
    pub fn colour(mut self, colour: Colour) -> Self {
        self.colour = colour;
        self
    }

    fn of(name: impl Into<String>, style: MarkStyle, mut marks: Vec<(f64, String)>) -> Self {
        marks.retain(|mark| mark.0.is_finite());
        marks.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            name: name.into(),
            style,
            marks,
            colour: Colour::Muted,
        }
    }
}

/// A level across a chart: the rate of a link, a limit.
#[derive(Clone, PartialEq, Debug)]
pub struct Reference {
    pub(crate) name: String,
    pub(crate) value: f64,
}

impl Reference {
    /// Creates a dashed line at `value` in the base unit. It is not drawn if `value` is not finite.
    pub fn new(name: impl Into<String>, value: f64) -> Self {
        Self {
            name: name.into(),
            value,
        }
    }
}
