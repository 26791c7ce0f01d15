//! The data from which metrics are read.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use courser_base::Mutex;
use courser_quic::Endpoint;

use super::counts::Counts;
use super::endpoint;
use super::family::{Family, Value, merge};
use super::http::HttpCounts;

/// A server whose metrics are read when they are reported.
pub trait Report: fmt::Debug + Send + Sync {
    /// Returns the present values.
    fn families(&self) -> Vec<Family>;
}

/// The counters of connections, and the endpoints by name. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Source(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The counters of connections, by the name of the endpoint if it has one.
    counts: Mutex<Vec<(Option<String>, Arc<Counts>)>>,
    endpoints: Mutex<Vec<(String, Endpoint)>>,
    /// The counters of requests, once there is a server.
    http: OnceLock<Arc<HttpCounts>>,
    servers: Mutex<Servers>,
}

/// The servers that report their metrics.
#[derive(Debug, Default)]
struct Servers {
    running: Vec<Weak<dyn Report>>,
    /// The sums of the counters of servers that are gone.
    past: Vec<Family>,
}

impl Source {
    /// Returns the counters for the connections of an endpoint, or for those without a name.
    pub(super) fn counts(&self, endpoint: Option<&str>) -> Arc<Counts> {
        let mut all = self.0.counts.lock();
        let find = |all: &[(Option<String>, Arc<Counts>)], label: Option<&str>| {
            let found = all.iter().find(|(name, _)| name.as_deref() == label);
            found.map(|(_, counts)| Arc::clone(counts))
        };
        let named = all.iter().filter(|(name, _)| name.is_some()).count();
        let may_add = endpoint.is_none() || find(&all, endpoint).is_some() || named < MAX_ENDPOINTS;
        let label = if may_add { endpoint } else { Some(OTHER) };
        if let Some(counts) = find(&all, label) {
            return counts;
        }
        let counts = Arc::new(Counts::default());
        all.push((label.map(str::to_owned), Arc::clone(&counts)));
        counts
    }

    /// Adds an endpoint, or replaces the one with this name.
    pub(super) fn watch(&self, name: String, endpoint: &Endpoint) {
        let mut endpoints = self.0.endpoints.lock();
        endpoints.retain(|(known, _)| *known != name);
        endpoints.push((name, endpoint.clone()));
    }

    /// Removes the endpoint with this name. Returns false if there is none.
    pub(super) fn unwatch(&self, name: &str) -> bool {
        // The handle is dropped after the lock is released.
        let removed: Vec<_> = {
            let mut endpoints = self.0.endpoints.lock();
            endpoints
                .extract_if(.., |(known, _)| known == name)
                .collect()
        };
        !removed.is_empty()
    }

    /// Returns the counters of requests, which all servers share.
    pub(super) fn http(&self) -> Arc<HttpCounts> {
        Arc::clone(self.0.http.get_or_init(Arc::default))
    }

    /// Adds a server. Its metrics are reported as long as it exists.
    pub(super) fn add_server(&self, server: Weak<dyn Report>) {
        let mut servers = self.0.servers.lock();
        servers.running.retain(|it| it.strong_count() > 0);
        servers.running.push(server);
    }

    /// Keeps the counters of a server that is going away, so that sums do not decrease.
    ///
    /// Series of single addresses are not kept, because a program may serve at any number of them.
    pub(super) fn keep_counters(&self, families: Vec<Family>) {
        let counters = families.into_iter().filter_map(|mut family| {
            family.series.retain(|series| {
                let is_sum = matches!(series.value, Value::Counter(_) | Value::Seconds(_));
                is_sum && series.labels.iter().all(|(name, _)| *name != "address")
            });
            (!family.series.is_empty()).then_some(family)
        });
        let counters = counters.collect();
        merge(&mut self.0.servers.lock().past, counters);
    }

    /// Returns the metrics of all servers. Values of several servers with equal labels are added.
    fn of_servers(&self) -> Vec<Family> {
        let (running, mut families) = {
            let servers = self.0.servers.lock();
            (servers.running.clone(), servers.past.clone())
        };
        for server in running.iter().filter_map(Weak::upgrade) {
            merge(&mut families, server.families());
        }
        families
    }

    pub(super) fn families(&self) -> Vec<Family> {
        let mut families = self.of_quic();
        if let Some(http) = self.0.http.get() {
            families.extend(http.families());
        }
        families.extend(self.of_servers());
        families
    }

    /// Returns the metrics of connections and endpoints.
    fn of_quic(&self) -> Vec<Family> {
        let counts = self.0.counts.lock().clone();
        let mut all = counts.into_iter().map(|(endpoint, counts)| {
            let mut families = counts.families();
            let series = families.iter_mut().flat_map(|family| &mut family.series);
            if let Some(endpoint) = endpoint {
                series.for_each(|it| it.labels.insert(0, ("endpoint", endpoint.clone())));
            }
            families
        });
        let first = all.next();
        // Without any sink, all counters are zero.
        let mut families = first.unwrap_or_else(|| Counts::default().families());
        for more in all {
            // All have the same families in the same order.
            for (family, more) in families.iter_mut().zip(more) {
                debug_assert_eq!(family.name, more.name);
                family.series.extend(more.series);
            }
        }
        let endpoints = self.0.endpoints.lock().clone();
        families.extend(endpoint::families(&endpoints));
        families
    }
}

/// Largest number of endpoints whose connections are counted separately. Those of further endpoints are counted
/// together as [`OTHER`].
const MAX_ENDPOINTS: usize = 64;

const OTHER: &str = "other";

#[cfg(test)]
mod tests {
    use super::super::family::Value;
    use super::*;

    /// Returns the endpoints of a family, and its number of series.
    fn endpoints(source: &Source, name: &str) -> Vec<String> {
        let families = source.families();
        let mut of_name = families.iter().filter(|it| it.name == name);
        let family = of_name.next().expect("the metric exists");
        assert!(of_name.next().is_none(), "{name} is there once");
        let endpoints = family.series.iter().map(|it| {
            let label = it.labels.iter().find(|(name, _)| *name == "endpoint");
            label.map_or_else(String::new, |(_, of)| of.clone())
        });
        let mut endpoints: Vec<_> = endpoints.collect();
        endpoints.dedup();
        endpoints
    }

    #[test]
    fn endpoints_are_counted_separately_up_to_a_limit() {
        let source = Source::default();
        assert_eq!(endpoints(&source, "packets_lost"), [""], "zeros");
        let one = source.counts(Some("one"));
        assert_eq!(endpoints(&source, "packets_lost"), ["one"]);
        assert!(Arc::ptr_eq(&one, &source.counts(Some("one"))));
        source.counts(None);
        for number in 1..MAX_ENDPOINTS {
            source.counts(Some(&number.to_string()));
        }
        assert!(Arc::ptr_eq(&one, &source.counts(Some("one"))));
        let more = source.counts(Some("more"));
        assert!(Arc::ptr_eq(&more, &source.counts(Some("still more"))));
        let all = endpoints(&source, "smoothed_rtt_seconds");
        assert_eq!(all.len(), MAX_ENDPOINTS + 2, "{all:?}");
        assert_eq!(
            (all[1].as_str(), all.last().map(String::as_str)),
            ("", Some(OTHER))
        );
    }

    #[test]
    fn series_of_two_endpoints_differ() {
        let source = Source::default();
        for (name, count) in [("one", 1), ("two", 2)] {
            let of = source.counts(Some(name));
            (0..count).for_each(|_| of.on_spurious_loss());
        }
        let families = source.families();
        let late = families
            .iter()
            .find(|it| it.name == "packets_spuriously_lost");
        let series = late.expect("the metric exists").series.iter();
        let seen: Vec<_> = series
            .map(|it| match it.value {
                Value::Counter(count) => (it.labels[0].1.as_str(), count),
                _ => unreachable!("{it:?}"),
            })
            .collect();
        assert_eq!(seen, [("one", 1), ("two", 2)]);
    }
}
