//! Metrics as data, independent of the format in which they are exported.

/// All series of a metric.
#[derive(Clone, Debug)]
pub(super) struct Family {
    /// The name without the prefix `courser_` and without the suffix of counters.
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) series: Vec<Series>,
}

/// One series of a metric.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Counter(u64),
    /// A monotonic sum of seconds.
    Seconds(f64),
    Gauge(f64),
    Histogram(Distribution),
}

/// The state of a histogram.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    pub(super) sum: f64,
    pub(super) count: u64,
    /// The upper bound of each bucket with the number of values only in this bucket. The last bound is infinity.
    pub(super) buckets: Vec<(f64, u64)>,
}

impl Family {
    pub(super) const fn new(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            help,
            series: Vec::new(),
        }
    }

    /// Creates a family of counters that differ in one label.
    pub(super) fn counters<T: Into<String>>(
        name: &'static str,
        help: &'static str,
        label: &'static str,
        values: impl IntoIterator<Item = (T, u64)>,
    ) -> Self {
        let mut family = Self::new(name, help);
        for (of, value) in values {
            family.push(vec![(label, of.into())], Value::Counter(value));
        }
        family
    }

    pub(super) fn push(&mut self, labels: Vec<(&'static str, String)>, value: Value) {
        self.series.push(Series { labels, value });
    }
}
