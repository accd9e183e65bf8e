//! The partition of a host in each table.

/// Name of the folder of a host in the folder of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition(pub(super) String);

impl Partition {
    /// Creates the name from the name of the host. Special characters are escaped.
    pub(crate) fn new(host: &str) -> Partition {
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
