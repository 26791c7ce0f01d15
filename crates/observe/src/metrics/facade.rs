//! Export to the recorder of the crate `metrics`.

use metrics::{Label, counter, gauge};

use super::family::{Family, Value};

pub(super) fn publish(families: Vec<Family>) {
    for family in families {
        let name = format!("courser_{}", family.name);
        for series in family.series {
            let labels = series.labels.into_iter();
            let labels: Vec<_> = labels.map(|(name, of)| Label::new(name, of)).collect();
            match series.value {
                Value::Counter(value) => counter!(format!("{name}_total"), labels).absolute(value),
                Value::Seconds(value) => gauge!(format!("{name}_total"), labels).set(value),
                Value::Gauge(value) | Value::Least(value) => {
                    gauge!(name.clone(), labels).set(value)
                }
                Value::Histogram(of) => {
                    gauge!(format!("{name}_sum"), labels.clone()).set(of.sum);
                    counter!(format!("{name}_count"), labels).absolute(of.count);
                }
            }
        }
    }
}
