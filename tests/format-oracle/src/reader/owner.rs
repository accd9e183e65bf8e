//! Determines by pid and start time if the process that wrote a fragment is still running. A process in another pid namespace counts as dead.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::Value;

/// Returns true if the process that a header describes is alive. A zombie counts as dead, because it does not write any more.
pub(super) fn is_alive(header: &Value) -> bool {
    let ours = fs::metadata("/proc/self/ns/pid")
        .map(|namespace| namespace.ino())
        .ok();
    if header["pid_ns"].as_u64() != ours {
        return false;
    }
    let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", header["pid"])) else {
        return false;
    };
    // These are the fields after the program's name, which may contain spaces and brackets itself. Field 3 is the state, field 22 the start time.
    let Some((_, rest)) = stat.rsplit_once(')') else {
        return false;
    };
    let fields: Vec<&str> = rest.split_whitespace().collect();
    fields.first() != Some(&"Z")
        && fields.get(19).and_then(|start| start.parse().ok()) == header["start_time"].as_u64()
}
