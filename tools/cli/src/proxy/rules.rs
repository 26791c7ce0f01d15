//! `--allow` and `--deny` in the order of the command line.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use courser::masque::Policy;
use courser_services::forward::Rule;

/// The rules of the command line, with their verdicts. The first one that matches decides.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleArguments(Vec<(Rule, bool)>);

impl RuleArguments {
    /// Returns the policy of the rules. Without a match, public addresses are allowed.
    pub(super) fn policy(&self) -> Policy {
        let rules = self.0.iter();
        rules.fold(Policy::public_only(), |policy, (rule, allows)| {
            rule.add_to(policy, *allows)
        })
    }

    /// Returns the rules as text, such as `allow 10.0.0.0/8, deny all`.
    pub(super) fn text(&self) -> String {
        let rules = self.0.iter().map(|(rule, allows)| {
            let verdict = if *allows { "allow" } else { "deny" };
            format!("{verdict} {rule}")
        });
        rules.collect::<Vec<_>>().join(", ")
    }

    /// Returns true if what no rule names is allowed if it is public.
    pub(super) fn allows_others(&self) -> bool {
        !self
            .0
            .iter()
            .any(|(rule, allows)| !allows && rule.is_for_all())
    }

    /// Returns a warning if rules allow only what is allowed anyway.
    pub(super) fn warning(&self) -> Option<String> {
        let allowed = || self.0.iter().filter(|(_, allows)| *allows);
        let changes_nothing = self.0.iter().all(|(_, allows)| *allows)
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
        Ok(Self(rules.collect()))
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
    fn rules_that_change_nothing_are_reported() {
        for (words, has_warning) in [
            (&[][..], false),
            (&["--allow", "example.org"], true),
            (&["--allow", "example.org", "--deny", "all"], false),
            (&["--allow", "10.0.0.0/8"], false),
            (&["--deny", "example.org"], false),
        ] {
            assert_eq!(rules(words).warning().is_some(), has_warning, "{words:?}");
        }
    }
}
