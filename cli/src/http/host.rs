//! The names of this machine in a `Host` header.

/// Returns true if a `Host` header names this machine itself.
pub(super) fn is_this_machine(host: &str) -> bool {
    let (name, port) = match host.strip_prefix("[::1]") {
        Some(rest) => (
            "localhost",
            rest.strip_prefix(':').or(rest.is_empty().then_some("0")),
        ),
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, Some("0")),
        },
    };
    let is_port = port.is_some_and(|port| port.parse::<u16>().is_ok());
    is_port && (name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_are_other_machines() {
        for host in "127.0.0.1 127.0.0.1:9002 LocalHost:1 [::1] [::1]:9002".split(' ') {
            assert!(is_this_machine(host), "{host}");
        }
        let others = " evil.example:9002 127.0.0.1.evil.example 127.0.0.1:evil localhost:1:2 [::1]x [::1]: [::2]";
        for host in others.split(' ') {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
