//! The settings of a server that apply only to QUIC.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "metrics")]
use courser_quic::telemetry::Tee;
use courser_quic::{
    ConnectionIdGenerator, EarlyDataOptions, QuicVersion, ReplyLimits, RetryPolicy, ServerConfig,
    TransportConfig,
};
use courser_tls::rustls;

use super::path_settings::PathSettings;
use super::sinks::MakeSinks;
use super::socket::QuicSockets;
use crate::certificates::Resolver;
use crate::error::Error;
use crate::limits::Limits;
use crate::tls::Tls;

/// The QUIC settings of a [`Server`](crate::Server).
pub(crate) struct QuicSettings {
    pub(crate) transport: Option<TransportConfig>,
    pub(crate) sinks: Option<MakeSinks>,
    /// The policy for Retry. If `None`, it depends on the certificates.
    pub(crate) retry: Option<RetryPolicy>,
    pub(crate) versions: Option<Vec<QuicVersion>>,
    pub(crate) offloads_tls: bool,
    pub(crate) connection_ids: Option<Arc<dyn ConnectionIdGenerator>>,
    pub(crate) path_settings: PathSettings,
    pub(crate) early_data: Option<EarlyDataOptions>,
    pub(crate) shards: usize,
    pub(crate) memory_budget: Option<u64>,
    pub(crate) reply_limits: Option<ReplyLimits>,
    pub(crate) reset_limits: Option<ReplyLimits>,
}

impl Default for QuicSettings {
    fn default() -> Self {
        Self {
            transport: None,
            sinks: None,
            retry: None,
            versions: None,
            offloads_tls: false,
            connection_ids: None,
            path_settings: PathSettings::DEFAULT,
            early_data: None,
            shards: 1,
            memory_budget: None,
            reply_limits: None,
            reset_limits: None,
        }
    }
}

impl QuicSettings {
    /// Counts connections in `metrics` too, with their address as the name of the endpoint.
    #[cfg(feature = "metrics")]
    pub(crate) fn count_in(&mut self, metrics: &courser_observe::Metrics) {
        let others = match self.sinks.take() {
            Some(sinks) => Some(sinks),
            None => {
                let sinks = self.transport.as_ref().and_then(|it| it.sinks.clone());
                sinks.map(|sinks| MakeSinks(Arc::new(move |_| sinks.clone())))
            }
        };
        let metrics = metrics.clone();
        self.sinks = Some(MakeSinks(Arc::new(move |address| {
            let counts = metrics.sinks_named(&address.to_string());
            match &others {
                Some(others) => Arc::new(Tee(others.0(address), counts)),
                None => counts,
            }
        })));
    }

    /// Returns the policy for Retry. If an async function chooses the certificates and no policy is set, clients
    /// validate their address before the function is called (attack A205).
    pub(crate) fn retry_policy(&self, resolver: &Resolver) -> RetryPolicy {
        let default = match resolver.choice() {
            Some(_) => RetryPolicy::Always,
            None => RetryPolicy::default(),
        };
        self.retry.unwrap_or(default)
    }

    /// Returns the time limit for the choice of a certificate, which is useless after the handshake timeout.
    pub(crate) fn choice_limit(&self, limits: &Limits) -> Duration {
        let transport = self.transport.as_ref();
        let handshake = transport.map_or_else(
            || default_transport().handshake_timeout,
            |it| it.handshake_timeout,
        );
        limits.handshake_timeout.min(handshake)
    }

    /// Builds the configuration of the sockets.
    ///
    /// # Errors
    /// Returns an error if TLS cannot be configured for QUIC.
    pub(crate) fn build(
        self,
        tls: &Tls,
        resolver: &Resolver,
        limits: &Limits,
        http3: &courser_http3_tokio::Config,
    ) -> Result<QuicSockets, Error> {
        let retry = self.retry_policy(resolver);
        let transport = self.transport.unwrap_or_else(default_transport);
        let config = limited(tls.quic()?, limits).offload_tls(self.offloads_tls);
        let config = with_connection_ids(config, self.connection_ids);
        let config = with_versions(config, self.versions).transport_config(transport);
        let config = with_early_data(config, self.early_data, http3);
        let config = with_budgets(
            config,
            self.memory_budget,
            self.reply_limits,
            self.reset_limits,
        );
        let config = with_choice(config, resolver);
        Ok(QuicSockets {
            config: config.retry(retry),
            shards: self.shards,
            path_settings: self.path_settings,
            sinks: self.sinks,
        })
    }
}

/// Returns the defaults for browsers, which open many requests at once and three unidirectional streams.
fn default_transport() -> TransportConfig {
    TransportConfig {
        max_bidi_streams: 256,
        ..TransportConfig::default()
    }
}

/// Sets the versions of QUIC, if given.
fn with_versions(config: ServerConfig, versions: Option<Vec<QuicVersion>>) -> ServerConfig {
    match versions {
        Some(versions) => config.versions(versions),
        None => config,
    }
}

/// Sets the generator of connection IDs, if given.
fn with_connection_ids(
    config: ServerConfig,
    generator: Option<Arc<dyn ConnectionIdGenerator>>,
) -> ServerConfig {
    match generator {
        Some(generator) => config.connection_ids(generator),
        None => config,
    }
}

/// Runs TLS on threads that may block if an async function chooses the certificates.
fn with_choice(config: ServerConfig, resolver: &Resolver) -> ServerConfig {
    match resolver.choice() {
        Some(_) => config.offload_tls(true),
        None => config,
    }
}

/// Builds a configuration with the limits that the endpoint applies.
fn limited(tls: Arc<rustls::ServerConfig>, limits: &crate::Limits) -> ServerConfig {
    ServerConfig::with_rustls(tls)
        .connection_rate(limits.connection_rate)
        .loaded_connection_rate(limits.loaded_connection_rate)
}

/// Accepts early data if options are given. Clients rely on the HTTP/3 settings in it.
fn with_early_data(
    config: ServerConfig,
    options: Option<EarlyDataOptions>,
    http3: &courser_http3_tokio::Config,
) -> ServerConfig {
    match options {
        Some(options) => config.early_data(EarlyDataOptions {
            application: settings_for_early_data(http3),
            ..options
        }),
        None => config,
    }
}

/// Encodes the HTTP/3 settings for comparison with those of the connection that a client resumes. Early data is
/// rejected if they differ (RFC 9114 §7.2.4.2, RFC 9204 §3.2.3, RFC 9297 §2.1.1).
fn settings_for_early_data(http3: &courser_http3_tokio::Config) -> Vec<u8> {
    format!("{http3:?}").into_bytes()
}

/// Sets the budgets that are given. The others keep their defaults.
fn with_budgets(
    mut config: ServerConfig,
    memory: Option<u64>,
    replies: Option<ReplyLimits>,
    resets: Option<ReplyLimits>,
) -> ServerConfig {
    if let Some(bytes) = memory {
        config = config.memory_budget(bytes);
    }
    if let Some(limits) = replies {
        config = config.reply_limits(limits);
    }
    if let Some(limits) = resets {
        config = config.reset_limits(limits);
    }
    config
}

#[cfg(test)]
mod tests {
    use courser_http3_tokio::Config;
    use courser_quic::Side;

    use super::*;
    use crate::Certificates;

    /// Attack A205.
    #[test]
    fn async_choices_require_a_validated_address_unless_a_policy_is_set() {
        let choosing = Certificates::asynchronous(|_| async { None }).resolver;
        let identity = courser_quic::Identity::dev().expect("random numbers");
        let held = Certificates::try_from(identity).expect("valid").resolver;
        let mut settings = QuicSettings::default();
        assert_eq!(settings.retry_policy(&choosing), RetryPolicy::Always);
        assert_eq!(settings.retry_policy(&held), RetryPolicy::Auto);
        for policy in [RetryPolicy::Auto, RetryPolicy::Never] {
            settings.retry = Some(policy);
            assert_eq!(settings.retry_policy(&choosing), policy);
            assert_eq!(settings.retry_policy(&held), policy);
        }
    }

    #[test]
    fn choice_ends_with_the_shorter_time_limit_of_handshakes() {
        let seconds = Duration::from_secs;
        for (limit, handshake, expected) in [
            (20, None, 10),
            (3, None, 3),
            (20, Some(15), 15),
            (3, Some(15), 3),
        ] {
            let limits = Limits {
                handshake_timeout: seconds(limit),
                ..Limits::default()
            };
            let settings = QuicSettings {
                transport: handshake.map(|handshake| TransportConfig {
                    handshake_timeout: seconds(handshake),
                    ..TransportConfig::default()
                }),
                ..QuicSettings::default()
            };
            assert_eq!(settings.choice_limit(&limits), seconds(expected));
        }
    }

    /// RFC 9204 §3.2.3, RFC 9297 §2.1.1: early data is accepted only with the same settings.
    #[test]
    fn early_data_depends_on_each_setting_that_clients_remember() {
        let changes: [fn(&mut Config); 5] = [
            |config| config.decoder.max_table_capacity = 0,
            |config| config.decoder.max_blocked_streams = 0,
            |config| config.datagrams = true,
            |config| config.extended_connect = true,
            |config| config.limits.size /= 2,
        ];
        let default = Config::new(Side::Server);
        assert_eq!(
            settings_for_early_data(&default),
            settings_for_early_data(&default.clone())
        );
        for (index, change) in changes.into_iter().enumerate() {
            let mut other = default.clone();
            change(&mut other);
            assert_ne!(
                settings_for_early_data(&default),
                settings_for_early_data(&other),
                "change {index}"
            );
        }
    }
}
