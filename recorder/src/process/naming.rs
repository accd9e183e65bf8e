//! Names of the process and its lanes, and other records, as the program requests them.

use std::borrow::Cow;
use std::fmt::Arguments;
use std::io::Write;

use crate::process::state::Process;
use crate::ring::lanes::LaneName;
use crate::run::membership::ProcessName;
use crate::segment::names::lane_name_line;
use crate::sys::clock::now_ns;
use crate::sys::memory::{check_room, count_out_of_memory, try_to_owned};
use crate::sys::wait;
use crate::text::name::cut_name;
use crate::text::record::{Growing, process_name_line};
use crate::text::value::Args;
use sa_format::{ENGINE_SETTINGS, OWN_CATEGORY, try_visible};

/// Maximum length in bytes of a record that the program writes. Longer ones are left out, because
/// the process's own slot must have room for names and losses.
const MAX_METADATA_BYTES: usize = 16 << 10;
/// Room in bytes for recording a name.
const NAME_BYTES: usize = 8 << 10;

impl Process {
    /// Names the process and records the name in the trace. A later name replaces it.
    pub(crate) fn set_name(&self, name: &str) {
        let name = cut_name(name);
        let Ok(stored) = check_room(NAME_BYTES).and_then(|()| try_to_owned(name)) else {
            return count_out_of_memory();
        };
        if let Some(mut name) = wait::lock(&self.names.process) {
            *name = stored;
        }
        self.append_own(&process_name_line(self.pid, name));
    }

    /// Returns the name that the program gave the process, and the name of the process that forked
    /// it.
    pub(crate) fn name(&self) -> ProcessName {
        ProcessName {
            own: wait::lock(&self.names.process).map_or_else(String::new, |name| name.clone()),
            forked_from: self.names.forked_from.clone(),
        }
    }

    /// Returns the names that a child forked from this process starts with. Runs in the child,
    /// which waits for no lock: if another thread of the parent was changing the name, the lock
    /// stays taken.
    pub(crate) fn name_of_fork(&self) -> ProcessName {
        let own = wait::try_lock(&self.names.process)
            .and_then(|name| try_visible(&name).map(Cow::into_owned))
            .filter(|name| !name.is_empty());
        let parent = own.or_else(|| self.names.forked_from.clone());
        ProcessName {
            own: String::new(),
            forked_from: Some(parent.unwrap_or_default()),
        }
    }

    /// Names a lane (a virtual thread, on which async spans are shown), and records the name in the
    /// trace. A later name replaces it.
    pub(crate) fn name_lane(&self, lane: u32, name: &LaneName) {
        if check_room(NAME_BYTES).is_err() {
            return count_out_of_memory();
        }
        self.names.lanes.set(lane, name);
        self.append_own(&lane_name_line(self.pid, lane, name));
    }

    /// Records the settings of the inference engine that the program reports. Later settings
    /// replace them.
    pub(crate) fn set_engine_settings(&self, settings: &Args) {
        let Some(line) = self.metadata_line(ENGINE_SETTINGS, None, settings) else {
            return;
        };
        if check_room(line.len()).is_err() {
            return count_out_of_memory();
        }
        if let Some(mut stored) = wait::lock(&self.names.engine_settings) {
            stored.clone_from(&line);
        }
        self.append_own(&line);
    }

    /// Records a metadata event that the program requests, for the thread `tid` or for the process.
    /// Leaves out a record that is too long for a block.
    pub(crate) fn record_metadata(&self, name: &str, tid: Option<u64>, args: &Args) {
        let line = self.metadata_line(name, tid, args);
        line.iter().for_each(|line| self.append_own(line));
    }

    fn metadata_line(&self, name: &str, tid: Option<u64>, args: &Args) -> Option<Vec<u8>> {
        let pid = self.pid;
        let tid = tid.unwrap_or_else(|| u64::from(pid));
        let front = format_args!(r#"{{"ph":"M","pid":{pid},"tid":{tid}"#);
        record_line(front, name, "", args)
    }

    /// Records an instant that belongs to the process as a whole, at the current time and in the
    /// category of the recorder's own records.
    pub(crate) fn record_instant(&self, name: &str, args: &Args) {
        let (pid, now) = (self.pid, now_ns());
        let (us, ns) = (now / 1000, now % 1000);
        let front = format_args!(r#"{{"ph":"i","pid":{pid},"tid":{pid},"ts":{us}.{ns:03},"s":"p""#);
        let line = record_line(front, name, OWN_CATEGORY, args);
        line.iter().for_each(|line| self.append_own(line));
    }
}

/// Builds the line of a record. `front` is its beginning, up to the timestamp. Returns `None` if
/// the record is too long, or if there is not enough memory, which is counted.
fn record_line(front: Arguments<'_>, name: &str, category: &str, args: &Args) -> Option<Vec<u8>> {
    if check_room(NAME_BYTES + 2 * (name.len() + args.text().len())).is_err() {
        count_out_of_memory();
        return None;
    }
    let mut line = Growing::default();
    let _ = write!(line, r#"{front},"name":"#); // writing to it cannot fail
    let _ = serde_json::to_writer(&mut line, name);
    if !category.is_empty() {
        let _ = write!(line, r#","cat":"{category}""#);
    }
    line.add(br#","args":{"#);
    line.add(args.text());
    line.add(b"}}\n");
    Some(line.into_line()).filter(|line| line.len() <= MAX_METADATA_BYTES)
}
