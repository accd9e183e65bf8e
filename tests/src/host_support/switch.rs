//! Writes the control file of a run directory, and reads the switches that the processes recorded.

use super::ground::segments;
use format_oracle::reader;
use sa_format::Level;
use sa_format::control::{CONTROL_FILE, CONTROL_VERSION, Control, Switch, SwitchCause};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time that a process may take to obey on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// Creates a control for the live run of `dir` that takes effect after `ahead`.
pub fn control(dir: &Path, cause: SwitchCause, levels: &[Level], ahead: Duration) -> Control {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let run = fs::read(dir.join("run")).expect("a run file");
    let run: Value = serde_json::from_slice(&run).expect("JSON");
    Control {
        version: CONTROL_VERSION,
        id: format!("{number:016x}"),
        run: run["run"].as_str().expect("a run id").to_owned(),
        cause,
        levels: Some(levels.to_vec()),
        from_realtime_ns: now_ns() + u64::try_from(ahead.as_nanos()).expect("a short time"),
        until_realtime_ns: None,
        events: None,
        steps: None,
    }
}

fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(now.expect("a clock after 1970").as_nanos()).expect("before 2554")
}

/// Stores a control in one step by renaming it, like the command line does.
pub fn store(dir: &Path, control: &Control) {
    let aside = dir.join("control.aside");
    fs::write(&aside, control.to_json_line()).expect("own directory");
    fs::rename(aside, dir.join(CONTROL_FILE)).expect("own directory");
}

/// The fields of an event that these tests need.
#[derive(Debug, Deserialize)]
pub struct Event {
    /// Phase.
    pub ph: String,
    /// Name.
    pub name: String,
    /// Process.
    pub pid: u64,
    /// Thread.
    pub tid: u64,
    /// Time in µs, exactly as written.
    #[serde(default)]
    pub ts: Value,
    #[serde(default)]
    s: String,
    args: Option<Box<RawValue>>,
}

/// A switch that a process recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedSwitch {
    /// Process.
    pub pid: u64,
    /// Time of the switch, in ns of the monotonic clock.
    pub at_ns: u64,
    /// New state.
    pub switch: Switch,
    args: String,
}

/// Returns all switches recorded in `dir`, sorted by time.
pub fn switches(dir: &Path) -> Vec<RecordedSwitch> {
    let events = reader::read_dir_as::<Event>(dir).events.into_iter();
    let mut switches: Vec<RecordedSwitch> = events
        .filter(|event| event.name == Switch::NAME)
        .map(|event| {
            assert_eq!((event.ph.as_str(), event.s.as_str()), ("i", "p"));
            let args = event.args.as_ref().expect("args").get();
            RecordedSwitch {
                pid: event.pid,
                at_ns: ns(&event.ts),
                switch: serde_json::from_str(args).expect("a switch"),
                args: args.to_owned(),
            }
        })
        .collect();
    switches.sort_by_key(|switch| switch.at_ns);
    switches
}

/// Converts the time of an event to ns.
pub fn ns(us: &Value) -> u64 {
    let text = us.to_string();
    let (us, ns) = text.split_once('.').unwrap_or((&text, "0"));
    let number = |text: &str| text.parse::<u64>().expect("decimal digits");
    number(us) * 1000 + number(&format!("{ns:0<3}"))
}

/// Waits until the fragments contain `count` switches with this cause.
pub fn wait_for(dir: &Path, cause: SwitchCause, count: usize) -> Vec<RecordedSwitch> {
    let cause = serde_json::to_string(&cause).expect("the word of a cause");
    wait_for_text(dir, &format!(r#""cause":{cause}"#), count)
}

/// Stores a control and waits until `count` processes have recorded that they obeyed it.
pub fn switch(dir: &Path, control: &Control, count: usize) -> Vec<RecordedSwitch> {
    store(dir, control);
    wait_for_text(dir, &format!(r#""control":"{}""#, control.id), count)
}

/// Waits until the args of `count` switches contain a text. Fragments are only parsed once they contain the text that often.
fn wait_for_text(dir: &Path, text: &str, count: usize) -> Vec<RecordedSwitch> {
    let start = Instant::now();
    let times = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).matches(text).count()
    };
    while segments(dir).iter().map(times).sum::<usize>() < count {
        assert!(start.elapsed() < DEADLINE, "{text}: {:?}", switches(dir));
        thread::sleep(Duration::from_millis(20));
    }
    let mut matching = switches(dir);
    matching.retain(|switch| switch.args.contains(text));
    assert!(matching.len() >= count, "{matching:?}");
    matching
}

/// Returns the monotonic time and the wall time, in ns.
pub fn anchor() -> (u64, u64) {
    (sa_recorder::now_ns(), now_ns())
}
