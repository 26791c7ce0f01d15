//! The text format of OpenMetrics.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::family::{Series, Value};
use super::source::Source;

pub(super) fn text(collector: Box<dyn Collector>) -> String {
    let mut registry = Registry::with_prefix("courser");
    registry.register_collector(collector);
    let mut out = String::new();
    // Formatting to a string cannot fail.
    let _ = text::encode(&mut out, &registry);
    out
}

/// Reads the metrics each time they are collected.
#[derive(Debug)]
pub(super) struct Live(pub(super) Source);

impl Collector for Live {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in self.0.families() {
            let Some(first) = family.series.first() else {
                continue;
            };
            let kind = first.value.metric_type();
            let mut encoder = encoder.encode_descriptor(family.name, family.help, None, kind)?;
            for Series { labels, value } in &family.series {
                if labels.is_empty() {
                    value.write(&mut encoder)?;
                    continue;
                }
                let labels: Vec<_> = labels.iter().map(|(name, of)| (*name, &**of)).collect();
                value.write(&mut encoder.encode_family(&labels.as_slice())?)?;
            }
        }
        Ok(())
    }
}

impl Value {
    fn write(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Counter(value) => encoder.encode_counter::<NoLabelSet, _, f64>(value, None),
            Self::Seconds(value) => encoder.encode_counter::<NoLabelSet, _, f64>(value, None),
            Self::Gauge(value) | Self::Least(value) => encoder.encode_gauge(value),
            Self::Histogram(of) => {
                encoder.encode_histogram::<NoLabelSet>(of.sum, of.count, &of.buckets, None)
            }
        }
    }
}

impl EncodeMetric for Value {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        self.write(&mut encoder)
    }

    fn metric_type(&self) -> MetricType {
        match self {
            Self::Counter(_) | Self::Seconds(_) => MetricType::Counter,
            Self::Gauge(_) | Self::Least(_) => MetricType::Gauge,
            Self::Histogram(_) => MetricType::Histogram,
        }
    }
}
