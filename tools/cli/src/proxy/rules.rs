//! `--allow` and `--deny` in the order of the command line.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use courser::masque::{Policy, Prefix};
use courser_services::forward::Rule;

use super::prefixes::parse_nat64;

/// The rules of the command line.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleArguments {
    /// Rules with their verdicts. The first one that matches decides.
    rules: Vec<(Rule, bool)>,
    /// The prefixes of translators.
    nat64: Vec<Prefix>,
}

impl RuleArguments {
    /// Returns the policy of the rules. Without a match, public addresses are allowed.
    pub(super) fn policy(&self) -> Policy {
        let begin = self
            .nat64
            .iter()
            .fold(Policy::public_only(), |policy, prefix| {
                let added = policy.clone().nat64(*prefix);
                // The parser has refused others.
                added.unwrap_or(policy)
            });
        let rules = self.rules.iter();
        rules.fold(begin, |policy, (rule, allows)| rule.add_to(policy, *allows))
    }

    /// Returns the rules as text, such as `allow 10.0.0.0/8, deny all`.
    pub(super) fn text(&self) -> String {
        let rules = self.rules.iter().map(|(rule, allows)| {
            let verdict = if *allows { "allow" } else { "deny" };
            format!("{verdict} {rule}")
        });
        rules.collect::<Vec<_>>().join(", ")
    }

    /// Returns true if what no rule names is allowed if it is public.
    pub(super) fn allows_others(&self) -> bool {
        let mut rules = self.rules.iter();
        !rules.any(|(rule, allows)| !allows && rule.is_for_all())
    }

    /// Returns warnings about rules that do not do what their author may expect.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut found: Vec<_> = self.without_effect().into_iter().collect();
        for (index, (rule, allows)) in self.rules.iter().enumerate() {
            let verdict = if *allows { "allow" } else { "deny" };
            let mut before = self.rules[..index].iter();
            if let Some((first, first_allows)) = before.find(|(first, _)| first.hides(rule)) {
                let first_verdict = if *first_allows { "allow" } else { "deny" };
                found.push(format!(
                    "--{verdict} {rule} never decides, because the first rule that matches does, and --{first_verdict} \
                     {first} stands before it: put the more precise one first"
                ));
            } else if *allows && rule.is_localhost() {
                found.push(format!(
                    "--allow {rule} allows nothing, because a rule for a name allows public addresses only: use --allow \
                     127.0.0.1 and --allow ::1"
                ));
            }
        }
        found
    }

    /// Returns a warning if rules allow only what is allowed anyway.
    fn without_effect(&self) -> Option<String> {
        let allowed = || self.rules.iter().filter(|(_, allows)| *allows);
        let changes_nothing = self.rules.iter().all(|(_, allows)| *allows)
            && allowed().next().is_some()
            && allowed().all(|(rule, _)| rule.is_public_only());
        changes_nothing.then(|| {
            "--allow changes nothing, because public addresses are allowed anyway: add --deny all behind it to allow \
             nothing else"
                .to_owned()
        })
    }
}

impl Args for RuleArguments {
    fn augment_args(command: Command) -> Command {
        let rule = |id: &'static str, help: &'static str, long_help: &'static str| {
            Arg::new(id)
                .long(id)
                .value_name("RULE")
                .value_parser(|text: &str| text.parse::<Rule>())
                .action(ArgAction::Append)
                .help(help)
                .long_help(long_help)
                .help_heading("Targets")
        };
        command
            .arg(rule(
                "allow",
                "Allow these targets: a host or prefix, with ports as in 10.0.0.0/8:443; repeatable",
                "Allow these targets; repeatable\n\nA rule is a host name (example.org, or *.example.org for the names \
                 below), an address, a prefix (10.0.0.0/8, [2001:db8::]/32) or 'all', and ports behind a colon \
                 (:443, :80,8000-8999) if not for all ports. The first of all --allow and --deny that matches decides. \
                 Without a match, targets with public addresses are allowed, and private addresses and those of this \
                 machine are not. Rules judge the addresses after names are resolved: private addresses need a rule \
                 for their prefix, since whoever controls a name chooses its addresses.",
            ))
            .arg(rule(
                "deny",
                "Deny these targets; repeatable",
                "Deny these targets, in the form of --allow; repeatable\n\n'--deny all' behind other rules denies what \
                 they do not allow.",
            ))
            .arg(
                Arg::new("nat64")
                    .long("nat64")
                    .value_name("PREFIX")
                    .value_parser(parse_nat64)
                    .action(ArgAction::Append)
                    .help("Judge the IPv4 addresses behind this prefix of a translator (NAT64); repeatable")
                    .long_help(
                        "Judge the IPv4 addresses inside of IPv6 addresses with this prefix; repeatable\n\nFor a network \
                         with a translator (NAT64) that has a prefix of its own, of 32, 40, 48, 56, 64 or 96 bits \
                         (RFC 6052): otherwise clients reach private IPv4 addresses through it. 64:ff9b::/96 is known.",
                    )
                    .help_heading("Targets"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for RuleArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut rules = Vec::new();
        for (id, allows) in [("allow", true), ("deny", false)] {
            let places = matches.indices_of(id).into_iter().flatten();
            let values = matches.get_many::<Rule>(id).into_iter().flatten();
            rules.extend(
                places
                    .zip(values)
                    .map(|(at, rule)| (at, rule.clone(), allows)),
            );
        }
        rules.sort_by_key(|(at, ..)| *at);
        let rules = rules.into_iter().map(|(_, rule, allows)| (rule, allows));
        let nat64 = matches.get_many::<Prefix>("nat64");
        Ok(Self {
            rules: rules.collect(),
            nat64: nat64.into_iter().flatten().copied().collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(words: &[&str]) -> RuleArguments {
        let command = RuleArguments::augment_args(Command::new("proxy"));
        let words = std::iter::once(&"proxy").chain(words);
        let matches = command.try_get_matches_from(words).expect("rules");
        RuleArguments::from_arg_matches(&matches).expect("rules")
    }

    #[test]
    fn rules_keep_the_order_of_the_command_line() {
        let words = [
            "--deny",
            "10.1.0.0/16",
            "--allow=10.0.0.0/8:443",
            "--deny",
            "all",
        ];
        let all = rules(&words);
        assert_eq!(
            all.text(),
            "deny 10.1.0.0/16, allow 10.0.0.0/8:443, deny all"
        );
        assert!(!all.allows_others());
        let policy = all.policy();
        for (target, expected) in [
            ("10.1.0.1:443", false),
            ("10.2.0.1:443", true),
            ("10.2.0.1:80", false),
            ("8.8.8.8:443", false),
        ] {
            let judged = policy.judge(target.parse().expect("an address"));
            assert_eq!(judged.is_ok(), expected, "{target}");
        }
    }

    #[test]
    fn addresses_of_translators_are_judged() {
        let target = "[2001:470:64:a00:0:100::]:443".parse().expect("an address");
        assert!(rules(&[]).policy().judge(target).is_ok());
        let all = rules(&["--nat64", "2001:470:64::/48"]);
        assert!(all.policy().judge(target).is_err());
        let command = RuleArguments::augment_args(Command::new("proxy"));
        let error = command
            .try_get_matches_from(["proxy", "--nat64", "2001:470:64::/47"])
            .expect_err("no length of a translator");
        assert!(error.to_string().contains("32, 40, 48"), "{error}");
    }

    #[test]
    fn rules_that_change_nothing_are_reported() {
        for (words, has_warning) in [
            (&[][..], false),
            (&["--allow", "example.org"], true),
            (&["--allow", "example.org", "--deny", "all"], false),
            (&["--allow", "10.0.0.0/8"], false),
            (&["--deny", "example.org"], false),
        ] {
            let warnings = rules(words).warnings();
            assert_eq!(!warnings.is_empty(), has_warning, "{words:?}");
        }
    }

    #[test]
    fn rules_that_never_decide_are_reported() {
        let all = rules(&["--deny", "all", "--allow", "10.0.0.0/8:443"]).warnings();
        assert_eq!(all.len(), 1);
        let parts = [
            "--allow 10.0.0.0/8:443 never decides",
            "--deny all stands before it",
        ];
        assert!(parts.iter().all(|it| all[0].contains(it)), "{all:?}");
        let all = rules(&["--allow", "localhost:80", "--deny", "all"]).warnings();
        assert!(all[0].contains("use --allow 127.0.0.1"), "{all:?}");
        assert!(
            rules(&["--allow", "10.0.0.0/8", "--deny", "all"])
                .warnings()
                .is_empty()
        );
    }
}
