//! The data of one chart, independent of the output format.

use crate::{Axis, Marks, Reference, Series};

/// One chart with two axes, written as image, table or text.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    pub(crate) marks: Vec<Marks>,
    pub(crate) references: Vec<Reference>,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Chart {
    /// Creates an empty chart of 720 by 320 pixels.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            title: title.into(),
            subtitle: String::new(),
            x,
            y,
            series: Vec::new(),
            marks: Vec::new(),
            references: Vec::new(),
            width: 720.0,
            height: 320.0,
        }
    }

    /// Sets the subtitle, a smaller line under the title.
    #[must_use]
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// Sets the size of the image in CSS pixels, from 240 by 160 to 4000 by 4000.
    #[must_use]
    pub fn size(mut self, width: f64, height: f64) -> Self {
        self.width = width.clamp(240.0, 4000.0);
        self.height = height.clamp(160.0, 4000.0);
        self
    }

    /// Adds a series. Images show the first 24, and tables show all of them.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a group of events. Images show the first 8 groups, and tables show all of them.
    #[must_use]
    pub fn marks(mut self, marks: Marks) -> Self {
        self.marks.push(marks);
        self
    }

    /// Adds a reference level. Images show the first 8, and tables show all of them.
    #[must_use]
    pub fn reference(mut self, reference: Reference) -> Self {
        self.references.push(reference);
        self
    }

    /// Returns the title that was set with [`new`](Self::new), without escapes.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns true if the chart has no value to draw.
    pub fn is_empty(&self) -> bool {
        let mut points = self.series.iter().flat_map(|series| &series.points);
        !points.any(|point| point.1.is_finite())
    }
}
