//! The control file of a run directory, as a test writes it, and the switches that the processes tell of.

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

/// How long a process may take to obey on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// A control of the live run of `dir` that holds from `ahead` of now on.
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

/// Stores a control as the command does: whole, under its name at once.
pub fn store(dir: &Path, control: &Control) {
    let aside = dir.join("control.aside");
    fs::write(&aside, control.text()).expect("own directory");
    fs::rename(aside, dir.join(CONTROL_FILE)).expect("own directory");
}

/// An event of which little is looked at.
#[derive(Debug, Deserialize)]
pub struct Event {
    /// Its phase.
    pub ph: String,
    /// Its name.
    pub name: String,
    /// The process.
    pub pid: u64,
    /// The thread.
    pub tid: u64,
    /// Its time in µs, as it stands there.
    #[serde(default)]
    pub ts: Value,
    #[serde(default)]
    s: String,
    args: Option<Box<RawValue>>,
}

/// A switch that a process told of.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The process.
    pub pid: u64,
    /// When, in ns of the monotonic clock.
    pub at_ns: u64,
    /// To what.
    pub switch: Switch,
    args: String,
}

/// All switches told in `dir`, by time.
pub fn switches(dir: &Path) -> Vec<Told> {
    let events = reader::read_dir_as::<Event>(dir).events.into_iter();
    let mut told: Vec<Told> = events
        .filter(|event| event.name == Switch::NAME)
        .map(|event| {
            assert_eq!((event.ph.as_str(), event.s.as_str()), ("i", "p"));
            let args = event.args.as_ref().expect("args").get();
            Told {
                pid: event.pid,
                at_ns: ns(&event.ts),
                switch: serde_json::from_str(args).expect("a switch"),
                args: args.to_owned(),
            }
        })
        .collect();
    told.sort_by_key(|told| told.at_ns);
    told
}

/// A time of an event in ns.
pub fn ns(us: &Value) -> u64 {
    let text = us.to_string();
    let (us, ns) = text.split_once('.').unwrap_or((&text, "0"));
    let number = |text: &str| text.parse::<u64>().expect("decimal digits");
    number(us) * 1000 + number(&format!("{ns:0<3}"))
}

/// Waits until the fragments contain `count` switches with this cause.
pub fn wait_for(dir: &Path, cause: SwitchCause, count: usize) -> Vec<Told> {
    let cause = serde_json::to_string(&cause).expect("the word of a cause");
    wait_for_text(dir, &format!(r#""cause":{cause}"#), count)
}

/// Stores a control, and waits until `count` processes have recorded that they obeyed it.
pub fn switch(dir: &Path, control: &Control, count: usize) -> Vec<Told> {
    store(dir, control);
    wait_for_text(dir, &format!(r#""control":"{}""#, control.id), count)
}

/// Waits until `count` switches have a text in their args. Fragments are parsed only once they contain the text that often.
fn wait_for_text(dir: &Path, text: &str, count: usize) -> Vec<Told> {
    let start = Instant::now();
    let times = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).matches(text).count()
    };
    while segments(dir).iter().map(times).sum::<usize>() < count {
        assert!(start.elapsed() < DEADLINE, "{text}: {:?}", switches(dir));
        thread::sleep(Duration::from_millis(20));
    }
    let mut told = switches(dir);
    told.retain(|told| told.args.contains(text));
    assert!(told.len() >= count, "{told:?}");
    told
}

/// One reading of the monotonic and the wall clock, in ns.
pub fn anchor() -> (u64, u64) {
    (sa_recorder::now_ns(), now_ns())
}
