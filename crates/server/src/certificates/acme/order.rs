//! An order of a certificate, from its names to its chain (RFC 8555 §7.4).

use std::sync::Arc;
use std::time::Duration;

use instant_acme::{
    Account, AuthorizationHandle, AuthorizationStatus, CertificateIdentifier, ChallengeHandle,
    ChallengeStatus, ChallengeType, Error, Identifier, NewOrder, Order, OrderStatus, Problem,
    RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};

use super::answers::{Answer, Answers};
use super::failure::{Failure, Kind};
use super::hook::{DnsChange, DnsHook, DnsRecord};

/// The method by which control of the names is proven (RFC 8555 §8).
#[derive(Clone, Debug)]
pub(super) enum Method {
    TlsAlpn01,
    Http01,
    Dns01(DnsHook),
}

impl Method {
    const fn kind(&self) -> ChallengeType {
        match self {
            Self::TlsAlpn01 => ChallengeType::TlsAlpn01,
            Self::Http01 => ChallengeType::Http01,
            Self::Dns01(_) => ChallengeType::Dns01,
        }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::Http01 => "http-01",
            Self::Dns01(_) => "dns-01",
        }
    }
}

/// The contents of an order.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) identifiers: &'a [Identifier],
    pub(super) profile: Option<&'a str>,
    /// The certificate that the new one replaces (RFC 9773 §5).
    pub(super) replaces: Option<CertificateIdentifier<'a>>,
}

impl<'a> Request<'a> {
    fn as_order(&self) -> NewOrder<'a> {
        let mut order = NewOrder::new(self.identifiers);
        if let Some(profile) = self.profile {
            order = order.profile(profile);
        }
        if let Some(replaces) = &self.replaces {
            order = order.replaces(replaces.clone());
        }
        order
    }
}

fn is_rate_limit(problem: &Problem) -> bool {
    let name = problem.r#type.as_deref();
    name.is_some_and(|name| name.ends_with(":rateLimited"))
}

/// An issued certificate with its key, in PEM.
#[derive(Debug)]
pub(super) struct Issued {
    pub(super) chain: String,
    pub(super) key: String,
}

/// Proves control of names.
#[derive(Debug)]
pub(super) struct Prover {
    pub(super) method: Method,
    pub(super) answers: Arc<Answers>,
}

/// The answers to the challenges of an order.
#[derive(Default)]
struct Placed {
    /// Removed when this is dropped.
    answers: Vec<Answer>,
    records: Vec<DnsRecord>,
}

impl Prover {
    /// Obtains a certificate. DNS records are removed again, also after a failure. `notices` receives failures that do not
    /// affect the order.
    pub(super) async fn obtain(
        &self,
        account: &Account,
        request: Request<'_>,
        notices: &mut Vec<String>,
    ) -> Result<Issued, Failure> {
        let mut order = match account.new_order(&request.as_order()).await {
            // The server may have lost or replaced the old certificate (RFC 9773 §5).
            Err(Error::Api(problem)) if request.replaces.is_some() && !is_rate_limit(&problem) => {
                let plain = Request {
                    replaces: None,
                    ..request
                };
                account.new_order(&plain.as_order()).await?
            }
            result => result?,
        };
        let mut placed = Placed::default();
        let proven = self.prove(&mut order, &mut placed).await;
        self.remove(placed, notices).await;
        proven?;
        issue(&mut order, request.identifiers).await
    }

    /// Answers the challenges of all names, and waits until the ACME server has validated them.
    async fn prove(&self, order: &mut Order, placed: &mut Placed) -> Result<(), Failure> {
        if order.state().status == OrderStatus::Ready {
            // All names were validated for an earlier order.
            return Ok(());
        }
        // Everything is placed before the first validation, because DNS needs time.
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if let Some(challenge) = self.challenge(&mut authorization)? {
                self.place(&challenge, placed).await?;
            }
        }
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if let Some(mut challenge) = self.challenge(&mut authorization)? {
                challenge.set_ready().await?;
            }
        }
        match in_time(order.poll_ready(&POLLS)).await {
            Ok(OrderStatus::Ready) => Ok(()),
            Ok(_) => Err(refusal(order).await.unwrap_or_else(|| {
                Failure::new(
                    Kind::Refused,
                    "the ACME server refused the order without a reason",
                )
            })),
            // The order names the error of one authorization only.
            Err(error) => Err(refusal(order).await.unwrap_or_else(|| error.into())),
        }
    }

    /// Returns the challenge to answer; none if the name was validated before.
    fn challenge<'a>(
        &self,
        authorization: &'a mut AuthorizationHandle<'a>,
    ) -> Result<Option<ChallengeHandle<'a>>, Failure> {
        let name = authorization.identifier().to_string();
        match authorization.status {
            AuthorizationStatus::Pending => {}
            AuthorizationStatus::Valid => return Ok(None),
            other => {
                return Err(Failure::new(
                    Kind::Refused,
                    format!("the authorization for {name} is {other:?} already"),
                ));
            }
        }
        let offered = authorization.challenges.iter();
        let offered: Vec<_> = offered.map(|it| format!("{:?}", it.r#type)).collect();
        match authorization.challenge(self.method.kind()) {
            Some(challenge) => Ok(Some(challenge)),
            None => Err(Failure::new(
                Kind::Refused,
                format!(
                    "the ACME server does not offer {} for {name}, only {}",
                    self.method.name(),
                    offered.join(", ")
                ),
            )),
        }
    }

    /// Makes the answer to a challenge available to the ACME server.
    async fn place(
        &self,
        challenge: &ChallengeHandle<'_>,
        placed: &mut Placed,
    ) -> Result<(), Failure> {
        let proof = challenge.key_authorization();
        let identifier = challenge.identifier().identifier;
        match &self.method {
            Method::TlsAlpn01 => {
                let answer = self.answers.over_tls(identifier, &proof);
                placed.answers.push(answer.map_err(Failure::local)?);
            }
            Method::Http01 => {
                let answer = self.answers.over_http(&challenge.token, &proof);
                placed.answers.push(answer);
            }
            Method::Dns01(hook) => {
                let Identifier::Dns(name) = identifier else {
                    return Err(Failure::local("only DNS names have DNS records"));
                };
                let record = DnsRecord {
                    name: format!("_acme-challenge.{name}."),
                    value: proof.dns_value(),
                };
                // Removed even if adding it fails half-way.
                placed.records.push(record.clone());
                let added = hook.change(DnsChange::Add(record)).await;
                added.map_err(|reason| {
                    Failure::local(format!("the DNS record for {name} was not added: {reason}"))
                })?;
            }
        }
        Ok(())
    }

    async fn remove(&self, placed: Placed, notices: &mut Vec<String>) {
        let Method::Dns01(hook) = &self.method else {
            return;
        };
        for record in placed.records {
            let name = record.name.clone();
            if let Err(reason) = hook.change(DnsChange::Remove(record)).await {
                notices.push(format!("the DNS record {name} was not removed: {reason}"));
            }
        }
    }
}

/// Requests the certificate of an order whose names are validated.
async fn issue(order: &mut Order, identifiers: &[Identifier]) -> Result<Issued, Failure> {
    let names: Vec<String> = identifiers.iter().map(text).collect();
    let mut params = CertificateParams::new(names).map_err(Failure::local)?;
    params.distinguished_name = DistinguishedName::new();
    let key = KeyPair::generate().map_err(Failure::local)?;
    let request = params.serialize_request(&key).map_err(Failure::local)?;
    order.finalize_csr(request.der()).await?;
    let chain = in_time(order.poll_certificate(&POLLS)).await?;
    Ok(Issued {
        chain,
        key: key.serialize_pem(),
    })
}

/// Waits for a state of an order, at most for [`ORDER_TIMEOUT`]. The library checks the time only between its
/// questions, one of which may take long.
async fn in_time<T>(polls: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let limited = tokio::time::timeout(ORDER_TIMEOUT, polls);
    limited.await.unwrap_or(Err(Error::Timeout(None)))
}

/// Returns the reason for which a name could not be validated.
async fn refusal(order: &mut Order) -> Option<Failure> {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        authorization.refresh().await.ok()?;
        let name = authorization.identifier().to_string();
        let failed = authorization
            .challenges
            .iter()
            .filter(|it| it.status == ChallengeStatus::Invalid);
        if let Some(problem) = failed.filter_map(|it| it.error.as_ref()).next() {
            return Some(Failure::of_problem(problem, Some(&name)));
        }
    }
    None
}

fn text(identifier: &Identifier) -> String {
    match identifier {
        Identifier::Dns(name) => name.clone(),
        Identifier::Ip(address) => address.to_string(),
        other => format!("{other:?}"),
    }
}

/// The pauses between two questions for the state of an order, and the time limit for all of them (limit K406).
/// A Retry-After field of the answer replaces a pause.
const POLLS: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(500))
    .backoff(1.5)
    .timeout(ORDER_TIMEOUT);
const ORDER_TIMEOUT: Duration = Duration::from_secs(180);

#[cfg(test)]
mod tests {
    use super::*;

    /// Limit K406.
    #[tokio::test(start_paused = true)]
    async fn orders_fail_when_their_time_is_over() {
        let state = |seconds| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(OrderStatus::Ready)
        };
        let begun = tokio::time::Instant::now();
        let ready = in_time(state(179)).await;
        assert!(matches!(ready, Ok(OrderStatus::Ready)), "{ready:?}");
        let late = in_time(state(181)).await;
        assert!(matches!(late, Err(Error::Timeout(None))), "{late:?}");
        assert_eq!(begun.elapsed(), Duration::from_secs(179) + ORDER_TIMEOUT);
    }
}
