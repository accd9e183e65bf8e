//! Identity of this process: host, boot, namespaces, pid, start time, program. It is read from
//! `/proc`; missing values are 0 or empty.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;

use crate::sys::read;
use sa_format::FragmentHeader;

/// Maximum number of bytes read from a kernel file.
const MAX_BYTES: usize = 1 << 20;

/// Returns a header with the identity of the calling process (host, namespaces, pid, program). The
/// fields that depend on the recording have their defaults.
pub(crate) fn read() -> FragmentHeader {
    let pid = std::process::id();
    let exe = fs::read_link("/proc/self/exe")
        .map(|path| file_name(&path))
        .unwrap_or_default();
    FragmentHeader {
        host: text("/proc/sys/kernel/hostname"),
        boot_id: text("/proc/sys/kernel/random/boot_id"),
        pid_ns: namespace("pid"),
        time_ns: namespace("time"),
        monotonic_offset_ns: time_offset_ns("monotonic"),
        pid,
        start_time: start_time(pid).unwrap_or(0),
        script: script_name(&exe),
        exe,
        ..FragmentHeader::default()
    }
}

fn text(path: &str) -> String {
    let text = read::file(path, MAX_BYTES)
        .ok()
        .and_then(|text| String::from_utf8(text).ok());
    text.map(|text| text.trim().to_owned()).unwrap_or_default()
}

fn namespace(kind: &str) -> u64 {
    let metadata = fs::metadata(format!("/proc/self/ns/{kind}"));
    metadata.map_or(0, |metadata| metadata.ino())
}

/// Returns the offset in ns of the clock `clock` in this process's time namespace; 0 in the initial
/// namespace.
fn time_offset_ns(clock: &str) -> i64 {
    let offsets = text("/proc/self/timens_offsets");
    let line = offsets.lines().find_map(|line| line.strip_prefix(clock));
    let words = line.unwrap_or_default().split_whitespace();
    let mut numbers = words.map(|word| word.parse::<i64>().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    next().saturating_mul(1_000_000_000).saturating_add(next())
}

/// Returns the start time of a process in clock ticks since boot, as seen in the initial time
/// namespace. Returns `None` if there is no such process.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let ticks: i64 = stat_number(pid, 22)?;
    let ticks_per_second = 100; // USER_HZ is part of the kernel's ABI
    let offset = time_offset_ns("boottime") / (1_000_000_000 / ticks_per_second);
    u64::try_from(ticks - offset).ok()
}

/// Returns true if `/proc` shows the processes of this pid namespace, in which the calling process
/// is `own_pid`. It may be missing, or show the namespace outside a container.
pub fn sees_processes(own_pid: u32) -> bool {
    fs::read_link("/proc/self").is_ok_and(|name| name == Path::new(&own_pid.to_string()))
}

/// Returns true if process `ancestor` is `pid` itself or one of its ancestors, as far as this pid
/// namespace shows.
pub fn is_ancestor(ancestor: u32, pid: u32) -> bool {
    let parent = |pid: &u32| stat_number(*pid, 4).filter(|parent| *parent != 0);
    let mut line = std::iter::successors(Some(pid), parent).take(128);
    line.any(|pid| pid == ancestor)
}

fn stat_number<T: FromStr>(pid: u32, field: usize) -> Option<T> {
    let stat = read::file(format!("/proc/{pid}/stat"), MAX_BYTES).ok()?;
    read::stat_field(&stat, field)?.parse().ok()
}

/// Returns the name of the script that this process runs, if `exe` is the name of an interpreter:
/// the first argument that is a file, or the module after `-m`. Returns `None` for other programs.
fn script_name(exe: &str) -> Option<String> {
    const INTERPRETERS: [&str; 7] = ["python", "node", "perl", "ruby", "bash", "sh", "dash"];
    let mut interpreters = INTERPRETERS.iter();
    interpreters.find(|name| exe.starts_with(**name))?;
    let command = read::file("/proc/self/cmdline", MAX_BYTES).ok()?;
    let words = command
        .split(|byte| *byte == 0)
        .skip(1)
        .map(|word| String::from_utf8_lossy(word).into_owned());
    find_script(&words.collect::<Vec<String>>())
}

/// Finds the name of the script in the command-line arguments of an interpreter. Only the name of
/// an existing file or of a module counts, because any other argument may be code that contains a
/// secret.
fn find_script(words: &[String]) -> Option<String> {
    const CODE: [&str; 3] = ["eval", "print", "command"];
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            if CODE.contains(&long.split('=').next().unwrap_or(long)) {
                return None;
            }
        } else if let Some(cluster) = word.strip_prefix('-') {
            if cluster.is_empty() || cluster.contains(['c', 'e', 'p']) {
                return None; // the program is code in this argument, in the next one, or on stdin
            }
            if cluster.ends_with('m') {
                return words.next().filter(|name| is_module(name)).cloned();
            }
        } else if Path::new(word).is_file() {
            return Some(file_name(Path::new(word))); // any other word is the value of an option
        }
    }
    None
}

fn is_module(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte))
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_its_own_ancestor() {
        let identity = read();
        assert_eq!(start_time(identity.pid), Some(identity.start_time));
        assert!(identity.start_time > 0 && identity.pid_ns > 0 && !identity.boot_id.is_empty());
        assert!(is_ancestor(identity.pid, identity.pid) && is_ancestor(1, identity.pid));
        assert!(!is_ancestor(identity.pid, 1));
    }

    #[test]
    fn scripts_of_command_lines() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("serve.py").display().to_string();
        fs::write(&script, "").unwrap();
        let scripts = [
            ("-u SCRIPT --port 1", Some("serve.py")),
            ("-X dev SCRIPT", Some("serve.py")),
            ("--loader x -- SCRIPT", Some("serve.py")),
            ("-m vllm.entrypoints.cli", Some("vllm.entrypoints.cli")),
            ("-um vllm", Some("vllm")),
        ];
        // An argument after one of these options can be a secret, and so can one that names no
        // file.
        let none = "|- SCRIPT|-m sk-123|/gone.py --key secret|-c secret SCRIPT|-uc secret SCRIPT|-lc secret SCRIPT|-csecret SCRIPT|-pe secret SCRIPT|--eval secret SCRIPT|--eval=secret SCRIPT|--print secret SCRIPT|--command secret SCRIPT";
        for (line, expected) in scripts
            .into_iter()
            .chain(none.split('|').map(|line| (line, None)))
        {
            let words = line.split(' ').map(|word| word.replace("SCRIPT", &script));
            let found = find_script(&words.collect::<Vec<_>>());
            assert_eq!(found.as_deref(), expected, "{line}");
        }
    }
}
