//! The TOML form of a scenario.

use std::ops::Range;
use std::time::Duration;

use courser_base::Time;
use courser_transport::TransportConfig;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::bounds::BoundsTable;
use super::flow::{FlowTable, Mistake};
use super::units::{RateValue, SizeValue, TimeValue};
use super::{Action, ActionKind, Flow, Scenario, ScenarioError, matrix};
use crate::host::ETHERNET_PAYLOAD;
use crate::link::{Blackhole, Change, DuplexSpec, LinkSpec, NatSpec, Step};

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct File {
    name: Spanned<String>,
    #[serde(default)]
    about: String,
    duration: Spanned<TimeValue>,
    measure_from: Option<Spanned<TimeValue>>,
    link: DuplexSpec,
    #[serde(default)]
    transport: Option<Spanned<TransportTable>>,
    flow: Vec<Spanned<FlowTable>>,
    #[serde(default)]
    event: Vec<Spanned<EventTable>>,
    #[serde(default)]
    bounds: BoundsTable,
    /// Parsed by [`matrix::expand`].
    #[serde(rename = "matrix", default)]
    _matrix: Option<IgnoredAny>,
}

/// Settings of connections. Absent ones keep their defaults.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct TransportTable {
    mtu: Option<u16>,
    mtu_discovery: Option<bool>,
    mtu_max: Option<u16>,
    ecn: Option<bool>,
    initial_rtt: Option<TimeValue>,
    max_ack_delay: Option<TimeValue>,
    max_idle_timeout: Option<TimeValue>,
    keep_alive_interval: Option<TimeValue>,
    handshake_timeout: Option<TimeValue>,
    stream_receive_window: Option<SizeValue>,
    stream_receive_window_max: Option<SizeValue>,
    receive_window: Option<SizeValue>,
    receive_window_max: Option<SizeValue>,
    send_buffer_max: Option<SizeValue>,
    unsent_limit: Option<SizeValue>,
    key_update_after: Option<u64>,
}

/// One `[[event]]` of a scenario file.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct EventTable {
    at: TimeValue,
    rate: Option<RateValue>,
    delay: Option<TimeValue>,
    blackhole: Option<TimeValue>,
    rebind: Option<RebindName>,
    key_update: Option<Spanned<String>>,
    close: Option<Spanned<String>>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
enum RebindName {
    Port,
    Address,
}

/// The maximum duration: a day, so that a mistyped unit is refused instead of running for a year.
const MAX_DURATION: Duration = Duration::from_secs(24 * 3600);

/// The largest number of connections in one scenario.
const MAX_FLOWS: usize = 1000;

impl Scenario {
    /// Parses a scenario file.
    ///
    /// # Errors
    /// [`ScenarioError`] with the place, the value and the allowed values.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let mut all = parse(text)?;
        let count = all.len();
        match all.pop() {
            Some(only) if count == 1 => Ok(only),
            _ => {
                let message = format!("the matrix makes {count} scenarios, here it has to be one");
                Err(ScenarioError::at(text, &(0..0), message))
            }
        }
    }

    /// Parses a file that may describe several scenarios. Returns those of its matrix in order.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse), with the values of the variables if only some are wrong.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, ScenarioError> {
        parse(text)
    }
}

fn parse(text: &str) -> Result<Vec<Scenario>, ScenarioError> {
    let mut all: Vec<Scenario> = Vec::new();
    for variant in matrix::expand(text)? {
        let in_variant = |mut error: ScenarioError| {
            if !variant.values.is_empty() {
                error.message = format!("{} (with {})", error.message, variant.values);
            }
            error
        };
        let (scenario, name) = parse_one(&variant.text).map_err(in_variant)?;
        if all.iter().any(|other| other.name == scenario.name) {
            let message = format!(
                "two scenarios of the matrix are named '{}': \
                 put every variable into the name, as in {{controller}}",
                scenario.name
            );
            return Err(in_variant(ScenarioError::at(&variant.text, &name, message)));
        }
        all.push(scenario);
    }
    Ok(all)
}

/// A scenario with the place of its name.
fn parse_one(text: &str) -> Result<(Scenario, Range<usize>), ScenarioError> {
    let file: File =
        toml::from_str(text).map_err(|error| ScenarioError::from_toml(text, &error))?;
    let name = file.name.span();
    match file.scenario() {
        Ok(scenario) => Ok((scenario, name)),
        Err((span, message)) => Err(ScenarioError::at(text, &span, message)),
    }
}

impl File {
    fn scenario(self) -> Result<Scenario, Mistake> {
        let name = self.name.get_ref().clone();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(is_plain) {
            let message =
                format!("'{name}' is not a valid name: use letters, digits, '-', '_' and '.'");
            return Err((self.name.span(), message));
        }
        let duration = self.duration.get_ref().0;
        if duration.is_zero() || duration > MAX_DURATION {
            let message = format!("duration is {duration:?}, allowed is more than 0 to 24h");
            return Err((self.duration.span(), message));
        }
        let measured_from = match &self.measure_from {
            Some(from) if from.get_ref().0 >= duration => {
                let message = format!("measure_from is not before the end, {duration:?}");
                return Err((from.span(), message));
            }
            Some(from) => Time::ZERO + from.get_ref().0,
            None => Time::ZERO,
        };
        let transport = transport(self.transport)?;
        let flows = flows(self.flow, &self.name.span())?;
        let mut link = self.link;
        let mut actions = Vec::new();
        for event in self.event {
            let span = event.span();
            apply(event.into_inner(), &span, &flows, &mut link, &mut actions)?;
        }
        actions.sort_by_key(|action| action.at);
        Ok(Scenario {
            name,
            about: self.about,
            duration,
            measured_from,
            link,
            transport,
            flows,
            actions,
            bounds: self.bounds.0,
        })
    }
}

fn transport(table: Option<Spanned<TransportTable>>) -> Result<TransportConfig, Mistake> {
    // Hosts have the MTU of Ethernet. Otherwise links without one would carry the largest
    // datagrams.
    let mut config = TransportConfig {
        mtu_max: ETHERNET_PAYLOAD,
        ..TransportConfig::default()
    };
    let Some(table) = table else {
        return Ok(config);
    };
    let span = table.span();
    let table = table.into_inner();
    let set = |field: &mut Duration, value: Option<TimeValue>| {
        if let Some(value) = value {
            *field = value.0;
        }
    };
    set(&mut config.initial_rtt, table.initial_rtt);
    set(&mut config.max_ack_delay, table.max_ack_delay);
    set(&mut config.handshake_timeout, table.handshake_timeout);
    if let Some(timeout) = table.max_idle_timeout {
        config.max_idle_timeout = Some(timeout.0).filter(|timeout| !timeout.is_zero());
    }
    config.keep_alive_interval = table.keep_alive_interval.map(|interval| interval.0);
    let set = |field: &mut u64, value: Option<SizeValue>| {
        if let Some(value) = value {
            *field = value.0;
        }
    };
    set(
        &mut config.stream_receive_window,
        table.stream_receive_window,
    );
    let max = table.stream_receive_window_max;
    set(&mut config.stream_receive_window_max, max);
    set(&mut config.receive_window, table.receive_window);
    set(&mut config.receive_window_max, table.receive_window_max);
    set(&mut config.send_buffer_max, table.send_buffer_max);
    set(&mut config.unsent_limit, table.unsent_limit);
    config.mtu = table.mtu.unwrap_or(config.mtu);
    config.mtu_max = table.mtu_max.unwrap_or(config.mtu_max.max(config.mtu));
    config.mtu_discovery = table.mtu_discovery.unwrap_or(config.mtu_discovery);
    config.ecn = table.ecn.unwrap_or(config.ecn);
    config.key_update_after = table.key_update_after.unwrap_or(config.key_update_after);
    match config.validate() {
        Ok(()) => Ok(config),
        Err(error) => Err((span, error.to_string())),
    }
}

fn flows(tables: Vec<Spanned<FlowTable>>, nowhere: &Range<usize>) -> Result<Vec<Flow>, Mistake> {
    let mut flows: Vec<Flow> = Vec::new();
    for table in tables {
        let span = table.span();
        for flow in table.into_inner().flows(&span)? {
            if let Some(other) = flows.iter().find(|other| other.name == flow.name) {
                let message = format!(
                    "a flow '{}' exists already: give this one a name",
                    other.name
                );
                return Err((span, message));
            }
            flows.push(flow);
        }
        if flows.len() > MAX_FLOWS {
            let message = format!("more than {MAX_FLOWS} flows");
            return Err((span, message));
        }
    }
    if flows.is_empty() {
        return Err((nowhere.clone(), "there is no [[flow]]".to_owned()));
    }
    Ok(flows)
}

fn apply(
    event: EventTable,
    span: &Range<usize>,
    flows: &[Flow],
    link: &mut DuplexSpec,
    actions: &mut Vec<Action>,
) -> Result<(), Mistake> {
    let at = event.at.0;
    let before = actions.len();
    let mut has_link_change = false;
    for change in [
        event.rate.map(|rate| Change::Rate(rate.0)),
        event.delay.map(|delay| Change::Delay(delay.0)),
    ]
    .into_iter()
    .flatten()
    {
        has_link_change = true;
        for spec in [&mut link.forward, &mut link.back] {
            spec.steps.push(Step { at, change });
            spec.steps.sort_by_key(|step| step.at);
        }
    }
    if let Some(lasts) = event.blackhole {
        has_link_change = true;
        for spec in [&mut link.forward, &mut link.back] {
            blackhole(spec, at, lasts.0).map_err(|message| (span.clone(), message))?;
        }
    }
    if let Some(what) = event.rebind {
        has_link_change = true;
        if link.nat.is_some() {
            let message = "the NAT of the link rebinds already: only one schedule is possible";
            return Err((span.clone(), message.to_owned()));
        }
        link.nat = Some(NatSpec {
            first: at,
            every: None,
            address: what == RebindName::Address,
            idle: None,
        });
    }
    let named = [
        (event.key_update, ActionKind::KeyUpdate),
        (event.close, ActionKind::Close),
    ];
    for (flow, what) in named {
        let Some(flow) = flow else { continue };
        actions.push(Action {
            at: Time::ZERO + at,
            flow: known_flow(&flow, flows)?,
            what,
        });
    }
    if has_link_change || actions.len() > before {
        return Ok(());
    }
    let message =
        "the event changes nothing: give rate, delay, blackhole, rebind, key_update or close";
    Err((span.clone(), message.to_owned()))
}

fn blackhole(spec: &mut LinkSpec, from: Duration, lasts: Duration) -> Result<(), String> {
    if spec.blackhole.is_some() {
        return Err("the link has a blackhole already: only one schedule is possible".to_owned());
    }
    if lasts.is_zero() {
        return Err("blackhole is 0, allowed is more".to_owned());
    }
    spec.blackhole = Some(Blackhole {
        from,
        lasts,
        every: None,
    });
    Ok(())
}

fn known_flow(name: &Spanned<String>, flows: &[Flow]) -> Result<String, Mistake> {
    let flow_name = name.get_ref();
    let is_known = |flow: &Flow| flow.name == *flow_name || flow.group == *flow_name;
    if flows.iter().any(is_known) {
        return Ok(flow_name.clone());
    }
    let mut names: Vec<&str> = flows.iter().map(|flow| flow.group.as_str()).collect();
    names.dedup();
    let message = format!(
        "there is no flow '{flow_name}', there are {}",
        names.join(", ")
    );
    Err((name.span(), message))
}
