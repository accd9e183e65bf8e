//! A host's part of each table.

/// The folder of a host in the folder of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition(pub(super) String);

impl Partition {
    /// That of a host.
    pub(crate) fn of(host: &str) -> Partition {
        let mut name = String::from("host=");
        for byte in host.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
                    name.push(char::from(byte));
                }
                byte => name.push_str(&format!("%{byte:02X}")),
            }
        }
        Partition(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_name_is_one_of_a_folder() {
        assert_eq!(Partition::of("node-1.rack").0, "host=node-1.rack");
        assert_eq!(Partition::of("a/b=é").0, "host=a%2Fb%3D%C3%A9");
    }
}
