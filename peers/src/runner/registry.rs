//! The stacks there are.

use std::path::PathBuf;

use peers::Failure;

use super::plan::Plan;

/// A stack and the program that speaks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stack {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
}

/// Name and program of each stack, in the order of measurement; programs lie beside this one.
const STACKS: &[(&str, &str)] = &[
    ("courser", "peer-courser"),
    ("quinn", "peer-quinn"),
    (TCP, "peer-tls-tcp"),
];

const TCP: &str = "tls-tcp";

/// The stacks of a plan.
pub(crate) fn select(plan: &Plan) -> Result<Vec<Stack>, Failure> {
    let mut known = Vec::new();
    for (name, program) in STACKS {
        // A link is one of UDP.
        if plan.link.is_some() && *name == TCP {
            continue;
        }
        known.push(Stack {
            name: (*name).to_owned(),
            program: beside(program)?,
        });
    }
    for peer in &plan.peers {
        let stack = Stack {
            name: peer.name.clone(),
            program: peer.program.clone(),
        };
        match known.iter_mut().find(|known| known.name == stack.name) {
            Some(replaced) => *replaced = stack,
            None => known.push(stack),
        }
    }
    if plan.link.is_some() && plan.stacks.iter().any(|name| name == TCP) {
        return Err(format!("--link is one of UDP: leave {TCP} out of --stacks").into());
    }
    let selected = choose(known, &plan.stacks)?;
    for stack in &selected {
        if !stack.program.is_file() {
            return Err(format!(
                "{} has no program at {}",
                stack.name,
                stack.program.display()
            )
            .into());
        }
    }
    Ok(selected)
}

/// A program in the folder of this one.
pub(crate) fn beside(program: &str) -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    Ok(own.with_file_name(format!("{program}{}", std::env::consts::EXE_SUFFIX)))
}

fn choose(known: Vec<Stack>, names: &[String]) -> Result<Vec<Stack>, Failure> {
    if names.is_empty() {
        return Ok(known);
    }
    let find = |name: &String| {
        let found = known.iter().find(|stack| stack.name == *name).cloned();
        found.ok_or_else(|| format!("no stack is called {name}").into())
    };
    names.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(name: &str) -> Stack {
        Stack {
            name: name.to_owned(),
            program: PathBuf::new(),
        }
    }

    #[test]
    fn stacks_come_in_the_order_of_the_command_line() {
        let names = ["b".to_owned(), "a".to_owned()];
        let chosen = choose(vec![stack("a"), stack("b"), stack("c")], &names).unwrap();
        assert_eq!(chosen, [stack("b"), stack("a")]);
    }

    #[test]
    fn an_unknown_stack_is_refused() {
        assert!(choose(vec![stack("a")], &["x".to_owned()]).is_err());
        assert_eq!(choose(vec![stack("a")], &[]).unwrap(), [stack("a")]);
    }
}
