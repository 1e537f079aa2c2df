//! The user who runs the program, for the audit log.

use std::os::unix::fs::MetadataExt as _;

use svc_core::accounts::actor::Actor;

/// Returns the owner of this process: the user name if the machine knows it, otherwise the user id.
pub(crate) fn actor() -> Actor {
    let uid = std::fs::metadata("/proc/self").map(|process| process.uid()).ok();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let known = uid.and_then(|uid| user_name(uid, &passwd));
    let from_environment = || std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok();
    let name = known.or_else(from_environment).or_else(|| uid.map(|uid| uid.to_string()));
    Actor::Cli(name.unwrap_or_else(|| "unknown".to_owned()))
}

/// Returns the user name for a user id from the text of `/etc/passwd`.
fn user_name(uid: u32, passwd: &str) -> Option<String> {
    let uid = uid.to_string();
    let line = passwd.lines().find(|line| line.split(':').nth(2) == Some(&uid))?;
    line.split(':').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_id_is_mapped_to_its_name() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(user_name(1000, passwd).as_deref(), Some("ada"));
        assert_eq!(user_name(100, passwd), None);
    }
}
