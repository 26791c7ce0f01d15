//! Series of values, and the shapes in which they are drawn.

use crate::Colour;

/// A series of values over time (or another quantity), with its shape and colour.
///
/// Points are pairs in base units. Points whose x is not finite are left out, and those whose y is
/// not finite make a gap. Points are sorted by x.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) points: Vec<(f64, f64)>,
    /// The lower edge of a band, one value for each point; empty for other shapes.
    pub(crate) lows: Vec<f64>,
    pub(crate) colour: Colour,
    pub(crate) is_dashed: bool,
}

/// The shape in which the points of a series are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    Line,
    Step,
    Area,
    Band,
    Stack,
    Dots,
    Markers(Marker),
}

/// A marker for single points. Different markers distinguish series without colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Marker {
    /// A filled circle: ●
    #[default]
    Circle,
    /// A diagonal cross: ✕
    Cross,
    /// A filled triangle: ▲
    Triangle,
    /// A filled square: ■
    Square,
    /// A filled diamond: ◆
    Diamond,
}

impl Series {
    /// Creates points joined by straight lines.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::of(name, Shape::Line, points)
    }

    /// Creates a line of steps: each value holds until the next one.
    pub fn step(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::of(name, Shape::Step, points)
    }

    /// Creates a line with a filled area between it and the axis.
    pub fn area(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::of(name, Shape::Area, points)
    }

    /// Creates a filled area between two lines. Each point is x, lower and upper value.
    pub fn band(
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64, f64)>,
    ) -> Self {
        let mut rows: Vec<_> = points
            .into_iter()
            .filter(|(x, _, _)| x.is_finite())
            .map(|(x, low, high)| match low.is_finite() && high.is_finite() {
                true => (x, low, high),
                false => (x, f64::NAN, f64::NAN),
            })
            .collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            lows: rows.iter().map(|row| row.1).collect(),
            ..Self::of(name, Shape::Band, rows.iter().map(|row| (row.0, row.2)))
        }
    }

    /// Creates an area on top of the previous stacked series, for example the share of one of several flows.
    ///
    /// If the series have different x values, values between points are interpolated. Before its
    /// first and after its last point, a series counts as zero.
    pub fn stacked(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::of(name, Shape::Stack, points)
    }

    /// Creates small dots, for thousands of points such as the packets of a connection.
    pub fn dots(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::of(name, Shape::Dots, points)
    }

    /// Creates markers. If there are few, each has a tooltip.
    pub fn markers(
        name: impl Into<String>,
        marker: Marker,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        Self::of(name, Shape::Markers(marker), points)
    }

    /// Sets the colour. Without it, the series has the next colour of the palette.
    #[must_use]
    pub fn colour(mut self, colour: Colour) -> Self {
        self.colour = colour;
        self
    }

    /// Makes the line dashed, whatever its position in the chart.
    #[must_use]
    pub fn dashed(mut self) -> Self {
        self.is_dashed = true;
        self
    }

    /// Returns true if the series has no point.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Returns the same series with other points, which must be sorted by x.
    pub(crate) fn with_points(&self, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: String::new(),
            points,
            lows: Vec::new(),
            ..*self
        }
    }

    fn of(
        name: impl Into<String>,
        shape: Shape,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let mut points: Vec<_> = points
            .into_iter()
            .filter(|(x, _)| x.is_finite())
            .map(|(x, y)| (x, if y.is_finite() { y } else { f64::NAN }))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            name: name.into(),
            shape,
            points,
            lows: Vec::new(),
            colour: Colour::Auto,
            is_dashed: false,
        }
    }

    /// Returns the value at `x`, or `None` in gaps and outside the series.
    ///
    /// Steps have the value of the last point not after `x`. Other shapes are interpolated.
    pub(crate) fn value_at(&self, x: f64) -> Option<f64> {
        let after = self.points.partition_point(|point| point.0 <= x);
        let before = *self.points.get(after.checked_sub(1)?)?;
        let value = match (self.shape, self.points.get(after)) {
            (Shape::Step, _) => before.1,
            (_, Some(next)) => {
                before.1 + (next.1 - before.1) * (x - before.0) / (next.0 - before.0)
            }
            (_, None) if x > before.0 => return None,
            (_, None) => before.1,
        };
        Some(value).filter(|value| value.is_finite())
    }
}
