//! Servers of files and proxies that are measured as they are installed: which there are, and what
//! they can do.

use std::path::Path;
use std::process::Command;

use clap::ValueEnum;

use crate::Failure;

/// A server of files that is a reverse proxy too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Software {
    /// `courser serve`.
    Courser,
    /// nginx.
    Nginx,
    /// H2O.
    H2o,
    /// Caddy.
    Caddy,
}

impl Software {
    /// Returns the name of the program, which is also its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Courser => "courser",
            Self::Nginx => "nginx",
            Self::H2o => "h2o",
            Self::Caddy => "caddy",
        }
    }

    /// Asks `program` for its version and what it can do.
    ///
    /// # Errors
    /// When the program cannot be run or prints nothing that looks like a version.
    pub fn ask(self, program: &Path) -> Result<Build, Failure> {
        let option = match self {
            Self::Courser | Self::H2o => "--version",
            // The version and the options that it was built with.
            Self::Nginx => "-V",
            Self::Caddy => "version",
        };
        let output = Command::new(program)
            .arg(option)
            .output()
            .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
        // nginx prints it to standard error.
        let printed = [output.stdout, output.stderr].concat();
        self.build(&String::from_utf8_lossy(&printed))
            .ok_or_else(|| format!("{} {option} prints no version", program.display()).into())
    }

    /// Reads what the program printed. H2O has HTTP/3 since 2.3; nginx has it where it was built in.
    fn build(self, printed: &str) -> Option<Build> {
        let version = version_in(printed)?;
        let has_http3 = match self {
            Self::H2o => numbers(&version) >= (2, 3),
            Self::Nginx => printed.contains("--with-http_v3_module"),
            Self::Courser | Self::Caddy => true,
        };
        Some(Build { version, has_http3 })
    }
}

/// The version and the abilities of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// Its version.
    pub version: String,
    has_http3: bool,
}

impl Build {
    /// Returns true when this build has the protocol.
    pub fn speaks(&self, protocol: Protocol) -> bool {
        protocol != Protocol::H3 || self.has_http3
    }
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// HTTP/1.1.
    H1,
    /// HTTP/2.
    H2,
    /// HTTP/3.
    H3,
}

impl Protocol {
    /// Returns its short name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::H1 => "h1",
            Self::H2 => "h2",
            Self::H3 => "h3",
        }
    }

    /// Returns its name in ALPN.
    pub const fn alpn(self) -> &'static [u8] {
        match self {
            Self::H1 => b"http/1.1",
            Self::H2 => b"h2",
            Self::H3 => b"h3",
        }
    }
}

/// The first word that begins with a digit, behind a slash or a `v` too.
fn version_in(printed: &str) -> Option<String> {
    let words = printed.split(|letter: char| letter.is_whitespace() || letter == '/');
    let mut words = words.map(|word| word.trim_start_matches('v'));
    let found = words.find(|word| word.starts_with(|letter: char| letter.is_ascii_digit()))?;
    Some(found.to_owned())
}

/// Major and minor; 0 for what is not a number.
fn numbers(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        for (printed, version) in [
            ("nginx version: nginx/1.22.1\n", "1.22.1"),
            ("h2o version 2.2.5\nOpenSSL: OpenSSL 3.0.19\n", "2.2.5"),
            (
                "v2.6.2 h1:wKoFIxpmOJLGl3QXoo6PNbYvGW4xLEgo32GPBEjWL8o=\n",
                "2.6.2",
            ),
            ("2.6.2\n", "2.6.2"),
        ] {
            assert_eq!(version_in(printed).as_deref(), Some(version), "{printed}");
        }
        assert_eq!(version_in("no such option\n"), None);
    }

    #[test]
    fn http3_takes_a_new_h2o_or_an_nginx_that_was_built_with_it() {
        let speaks = |software: Software, printed: &str| {
            let build = software.build(printed).expect("a version");
            assert!(build.speaks(Protocol::H1) && build.speaks(Protocol::H2));
            build.speaks(Protocol::H3)
        };
        assert!(!speaks(Software::H2o, "h2o version 2.2.5"));
        assert!(speaks(Software::H2o, "h2o version 2.3.0-DEV@abc"));
        let nginx = "nginx version: nginx/1.31.1\nconfigure arguments: --with-http_ssl_module";
        assert!(!speaks(Software::Nginx, nginx));
        assert!(speaks(
            Software::Nginx,
            &format!("{nginx} --with-http_v3_module")
        ));
        assert!(speaks(Software::Caddy, "v2.6.2 h1:abc="));
    }
}
