//! Who sits at the command line, for the log of changes.

use std::os::unix::fs::MetadataExt as _;

use svc_core::accounts::audit::Actor;

/// The user that this process belongs to: by name where the machine knows it, else by number.
pub(crate) fn actor() -> Actor {
    let number = std::fs::metadata("/proc/self").map(|process| process.uid()).ok();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let known = number.and_then(|number| name_of(number, &users));
    let from_environment = || std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok();
    let name = known.or_else(from_environment).or_else(|| number.map(|number| number.to_string()));
    Actor::Cli(name.unwrap_or_else(|| "unknown".to_owned()))
}

/// The first field of the line whose third is the number.
fn name_of(number: u32, users: &str) -> Option<String> {
    let number = number.to_string();
    let line = users.lines().find(|line| line.split(':').nth(2) == Some(&number))?;
    line.split(':').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_name() {
        let users = "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(name_of(1000, users).as_deref(), Some("ada"));
        assert_eq!(name_of(100, users), None);
    }
}
