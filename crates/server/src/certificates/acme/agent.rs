//! The task that obtains a certificate and renews it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use courser_base::Mutex;
use courser_quic::Identity;
use courser_tls::rustls::pki_types::CertificateDer;
use instant_acme::{Account, Error, ExternalAccountKey, Identifier, NewAccount};

use super::answers::Answers;
use super::failure::{Failure, Kind};
use super::order::{Issued, Method, Prover, Request};
use super::pace::Pace;
use super::renewal;
use super::settings::Acme;
use super::store::Store;
use super::transfer::Client;
use crate::certificates::facts::CertificateFacts;
use crate::certificates::resolver::Resolver;
use crate::events::{Event, Events};
use crate::stats::AcmeStats;

/// Obtains a certificate, uses it, and renews it while it is polled.
pub(crate) struct Agent {
    settings: Acme,
    identifiers: Vec<Identifier>,
    client: Client,
    store: Store,
    prover: Prover,
    resolver: Arc<Resolver>,
    account: Option<Account>,
    pace: Pace,
    plan: Plan,
    stats: Arc<Mutex<AcmeStats>>,
    /// Reported when the agent begins to run.
    notices: Vec<String>,
}

/// The next action of the agent and its time, by the wall clock, which may jump.
struct Plan {
    /// From when on a new certificate is wanted.
    due: SystemTime,
    /// The earliest time of the next attempt after a failure.
    retry: SystemTime,
    /// The next question for the suggested time of the renewal, if there is a certificate.
    ask: Option<SystemTime>,
    /// The certificate in use.
    held: Option<Held>,
    /// The certificate in use, if it could not be written.
    unsaved: Option<Issued>,
}

impl Plan {
    /// Returns the time of the next attempt to obtain a certificate.
    fn attempt(&self) -> SystemTime {
        self.due.max(self.retry)
    }

    /// Returns the time of the next step.
    fn next(&self) -> SystemTime {
        self.ask
            .map_or(self.attempt(), |ask| ask.min(self.attempt()))
    }
}

/// The facts about the certificate in use that decide its renewal.
#[derive(Clone)]
struct Held {
    certificate: CertificateDer<'static>,
    not_before: SystemTime,
    not_after: SystemTime,
    names: Vec<String>,
}

impl Held {
    fn event(&self, is_new: bool, renewal: SystemTime) -> Event {
        Event::CertificateObtained {
            names: self.names.clone(),
            not_after: self.not_after,
            renewal,
            is_new,
        }
    }
}

impl Agent {
    pub(super) fn new(
        settings: Acme,
        client: Client,
        store: Store,
        resolver: Arc<Resolver>,
    ) -> Self {
        let mut agent = Self {
            identifiers: settings.identifiers(),
            prover: Prover {
                method: settings.method.clone(),
                answers: Arc::default(),
            },
            pace: Pace::with_refusals(store.refusals()),
            plan: Plan {
                due: SystemTime::UNIX_EPOCH,
                retry: SystemTime::UNIX_EPOCH,
                ask: None,
                held: None,
                unsaved: None,
            },
            settings,
            client,
            store,
            resolver,
            account: None,
            stats: Arc::default(),
            notices: Vec::new(),
        };
        agent.use_stored();
        agent.plan.retry = agent.pace.first(SystemTime::now());
        agent.show_plan();
        agent
    }

    /// Uses the certificate of an earlier process.
    fn use_stored(&mut self) {
        match self.store.read_certificate() {
            Ok(Some(identity)) => {
                if let Err(reason) = self.hold(&identity) {
                    self.notices.push(reason);
                }
            }
            Ok(None) => {}
            Err(set_aside) => self.notices.push(set_aside.to_string()),
        }
    }

    /// Uses a certificate for new handshakes, and plans its renewal.
    fn hold(&mut self, identity: &Identity) -> Result<(), String> {
        let certificate = identity.certificate();
        let facts = CertificateFacts::of_certificate(&certificate);
        let facts = facts.ok_or("the certificate is malformed")?;
        let used = self.resolver.replace(0, identity);
        used.map_err(|error| error.to_string())?;
        self.plan.due = renewal::by_lifetime(facts.not_before, facts.not_after);
        self.plan.held = Some(Held {
            certificate: certificate.into_owned(),
            not_before: facts.not_before,
            not_after: facts.not_after,
            names: facts.names,
        });
        self.plan.ask = Some(SystemTime::now());
        Ok(())
    }

    fn show_plan(&self) {
        self.stats.lock().next_attempt = Some(self.plan.attempt());
    }

    /// Returns the answers to challenges.
    pub(crate) fn answers(&self) -> Arc<Answers> {
        self.prover.answers.clone()
    }

    /// Returns true if names are validated over plain HTTP.
    pub(crate) fn needs_plain_http(&self) -> bool {
        matches!(self.prover.method, Method::Http01)
    }

    /// Returns true if names are validated on the TCP port of the server.
    pub(crate) fn needs_tls(&self) -> bool {
        matches!(self.prover.method, Method::TlsAlpn01)
    }

    /// Returns the counters, which change while the agent runs.
    pub(crate) fn stats(&self) -> Arc<Mutex<AcmeStats>> {
        self.stats.clone()
    }

    /// Obtains and renews the certificate. Never completes.
    pub(crate) async fn run(&mut self, events: Events) {
        if let Some(held) = &self.plan.held {
            events.report(held.event(false, self.plan.attempt()));
        }
        loop {
            for notice in self.notices.drain(..) {
                events.report(Event::AcmeNotice(notice));
            }
            let now = SystemTime::now();
            if self.plan.attempt() <= now {
                self.attempt(&events).await;
            } else if self.plan.ask.is_some_and(|at| at <= now) {
                self.ask_for_renewal().await;
            } else {
                let wait = self.plan.next().duration_since(now).unwrap_or_default();
                // The clock may be set meanwhile, for example after the machine was suspended.
                tokio::time::sleep(wait.min(MAX_SLEEP)).await;
                self.save_again();
            }
            self.show_plan();
        }
    }

    /// Makes one attempt to obtain a certificate, and plans the next one.
    async fn attempt(&mut self, events: &Events) {
        self.stats.lock().attempts += 1;
        let mut notices = Vec::new();
        let result = self.order(&mut notices).await;
        self.notices.append(&mut notices);
        let accepted = result.and_then(|issued| {
            let unusable = |reason| Failure::new(Kind::Refused, reason);
            self.accept(issued).map_err(unusable)
        });
        match (accepted, &self.plan.held) {
            (Err(failure), _) => self.on_failure(&failure, events),
            (Ok(()), Some(held)) => events.report(held.event(true, self.plan.attempt())),
            (Ok(()), None) => {}
        }
    }

    async fn order(&mut self, notices: &mut Vec<String>) -> Result<Issued, Failure> {
        let account = self.account(notices).await?;
        let held = self.plan.held.as_ref();
        let request = Request {
            identifiers: &self.identifiers,
            profile: self.settings.profile.as_deref(),
            // A server without renewal information does not know the field.
            replaces: held
                .filter(|_| self.plan.ask.is_some())
                .and_then(|held| renewal::id(&held.certificate)),
        };
        self.prover.obtain(&account, request, notices).await
    }

    /// Returns the account: that of this process, the stored one, or a new one.
    async fn account(&mut self, notices: &mut Vec<String>) -> Result<Account, Failure> {
        if let Some(account) = &self.account {
            return Ok(account.clone());
        }
        let builder = || Account::builder_with_http(Box::new(self.client.clone()));
        let stored = self.store.read_account().unwrap_or_else(|set_aside| {
            notices.push(set_aside.to_string());
            None
        });
        let account = match stored {
            Some(credentials) => builder().from_credentials(credentials).await?,
            None => {
                let contacts: Vec<&str> = self.settings.contacts.iter().map(|it| &**it).collect();
                let new = NewAccount {
                    contact: &contacts,
                    terms_of_service_agreed: true,
                    only_return_existing: false,
                };
                let external = self.settings.external_account.as_ref();
                let external = external.map(|it| ExternalAccountKey::new(it.id.clone(), &it.key));
                let directory = self.settings.directory.clone();
                let (account, credentials) =
                    builder().create(&new, directory, external.as_ref()).await?;
                if let Err(error) = self.store.write_account(&credentials) {
                    notices.push(format!(
                        "cannot store the ACME account: {error}: after a restart another one is created"
                    ));
                }
                account
            }
        };
        self.account = Some(account.clone());
        Ok(account)
    }

    /// Uses and stores a new certificate.
    fn accept(&mut self, issued: Issued) -> Result<(), String> {
        let identity = Identity::from_pem(issued.chain.as_bytes(), issued.key.as_bytes());
        let identity = identity.map_err(|error| error.to_string())?;
        self.hold(&identity)?;
        self.pace.on_success();
        self.plan.retry = SystemTime::UNIX_EPOCH;
        {
            let mut stats = self.stats.lock();
            stats.issued += 1;
            stats.last_failure = None;
        }
        // A file that remains delays attempts of the next process at most.
        let _ = self.store.write_refusals(std::iter::empty());
        if let Err(error) = self.store.write_certificate(&issued) {
            let path = self.store.certificate().display();
            self.notices.push(format!(
                "cannot store the certificate in {path}: {error}: it is in use, and a restart before it is stored \
                 costs another order"
            ));
            self.plan.unsaved = Some(issued);
        }
        Ok(())
    }

    /// Stores the certificate in use if that has failed so far.
    fn save_again(&mut self) {
        let Some(issued) = &self.plan.unsaved else {
            return;
        };
        if self.store.write_certificate(issued).is_ok() {
            let path = self.store.certificate().display();
            self.notices
                .push(format!("the certificate is stored in {path} now"));
            self.plan.unsaved = None;
        }
    }

    fn on_failure(&mut self, failure: &Failure, events: &Events) {
        if failure.kind == Kind::UnknownAccount {
            self.account = None;
            let set_aside = self.store.drop_account("the ACME server does not know it");
            self.notices.push(set_aside.to_string());
        }
        let now = SystemTime::now();
        let asked = self.client.take_retry_after();
        let next = self.pace.on_failure(failure.kind, asked, now, random());
        self.plan.retry = next;
        // Without it, a restart makes the next attempt sooner.
        let _ = self.store.write_refusals(self.pace.refusals());
        let reason = failure.to_string();
        {
            let mut stats = self.stats.lock();
            stats.failures += 1;
            stats.last_failure = Some(reason.clone());
        }
        let held = self.plan.held.as_ref();
        events.report(Event::CertificateNotObtained {
            names: self.settings.names.clone(),
            reason,
            next_attempt: next,
            not_after: held.map(|held| held.not_after),
        });
    }

    /// Asks the ACME server when to renew the certificate (RFC 9773 §4.1). A server without this extension is
    /// asked again after a restart only.
    async fn ask_for_renewal(&mut self) {
        let Some(held) = self.plan.held.clone() else {
            self.plan.ask = None;
            return;
        };
        let mut notices = Vec::new();
        let account = self.account(&mut notices).await;
        self.notices.append(&mut notices);
        let id = renewal::id(&held.certificate);
        let (Ok(account), Some(id)) = (account, id) else {
            self.plan.ask = Some(SystemTime::now() + renewal::ASK_AGAIN);
            return;
        };
        let pause = match account.renewal_info(&id).await {
            Ok((info, pause)) => {
                let otherwise = renewal::by_lifetime(held.not_before, held.not_after);
                self.plan.due = renewal::suggested(&info, held.not_after, otherwise, random());
                Some(renewal::pause(pause))
            }
            Err(Error::Unsupported(_)) => None,
            Err(_) => Some(renewal::ASK_AGAIN),
        };
        self.plan.ask = pause.map(|pause| SystemTime::now() + pause);
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Returns a random number below 1.
fn random() -> f64 {
    let mut bytes = [0; 4];
    // Without randomness the pauses are the shortest ones.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}

/// The longest sleep before the wall clock is read again.
const MAX_SLEEP: Duration = Duration::from_secs(60);
