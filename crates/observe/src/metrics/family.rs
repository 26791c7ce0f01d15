//! Metrics as data, independent of the format in which they are exported.

/// All series of a metric.
#[derive(Clone, Debug)]
pub struct Family {
    /// The name without the prefix `courser_` and without the suffix of counters.
    pub name: &'static str,
    /// One sentence without a full stop.
    pub help: &'static str,
    /// The series, which differ in their labels.
    pub series: Vec<Series>,
}

/// One series of a metric.
#[derive(Clone, Debug)]
pub struct Series {
    /// Names and values of the labels.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Value,
}

/// The value of a series.
#[derive(Clone, Debug)]
pub enum Value {
    /// A number that only grows.
    Counter(u64),
    /// A monotonic sum of seconds.
    Seconds(f64),
    /// A number that grows and shrinks.
    Gauge(f64),
    /// A gauge of which the least value counts when the families of several sources are merged.
    Least(f64),
    /// The distribution of many values.
    Histogram(Distribution),
}

/// The state of a histogram.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// The sum of all values.
    pub sum: f64,
    /// The number of values.
    pub count: u64,
    /// The upper bound of each bucket with the number of values only in this bucket. The last bound is infinity.
    pub buckets: Vec<(f64, u64)>,
}

impl Family {
    /// Creates a family without series.
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            help,
            series: Vec::new(),
        }
    }

    /// Creates a family of counters that differ in one label.
    pub fn counters<T: Into<String>>(
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

    /// Adds a series.
    pub fn push(&mut self, labels: Vec<(&'static str, String)>, value: Value) {
        self.series.push(Series { labels, value });
    }

    /// Adds a value to the series with these labels, or adds the series.
    fn add(&mut self, more: Series) {
        match self.series.iter_mut().find(|it| it.labels == more.labels) {
            Some(series) => series.value.add(&more.value),
            None => self.series.push(more),
        }
    }
}

impl Value {
    /// Combines the values of two sources. Histograms have one source.
    fn add(&mut self, more: &Self) {
        match (self, more) {
            (Self::Counter(sum), Self::Counter(more)) => *sum += more,
            (Self::Seconds(sum), Self::Seconds(more)) | (Self::Gauge(sum), Self::Gauge(more)) => {
                *sum += more;
            }
            (Self::Least(least), Self::Least(more)) => *least = least.min(*more),
            (before, more) => debug_assert!(false, "{before:?} with {more:?}"),
        }
    }
}

/// Merges families of a second source into those of a first one: values with equal labels are added.
pub fn merge(into: &mut Vec<Family>, more: Vec<Family>) {
    for family in more {
        match into.iter_mut().find(|it| it.name == family.name) {
            Some(known) => family.series.into_iter().for_each(|it| known.add(it)),
            None => into.push(family),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_values_are_added_by_their_labels() {
        let of = |count, ready| {
            let mut least = Family::new("ready", "");
            least.push(Vec::new(), Value::Least(ready));
            vec![
                Family::counters("requests", "", "protocol", [("h3", count)]),
                least,
            ]
        };
        let mut families = of(1, 1.0);
        merge(&mut families, of(2, 0.0));
        merge(
            &mut families,
            vec![Family::counters("requests", "", "protocol", [("h2", 5)])],
        );
        assert_eq!(families.len(), 2);
        let values: Vec<_> = families[0].series.iter().map(|it| &it.value).collect();
        assert!(
            matches!(values[..], [Value::Counter(3), Value::Counter(5)]),
            "{values:?}"
        );
        assert!(matches!(families[1].series[0].value, Value::Least(0.0)));
    }
}
