//! The times at which this process records which levels: the control files it was given, ordered by
//! time, and the records that report each switch.
//!
//! The first thread that gets to it applies a due switch. This is the helper, which reads the
//! control file four times a second, or a thread that records. Recording threads do this in a
//! process without a helper, and if the helper is late. The helper may wait for the disk for
//! seconds if many threads write as fast as they can, which is just when somebody stops them.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::process::mask;
use crate::process::state::Process;
use crate::run::config::Levels;
use crate::run::control::Watch;
use crate::segment::tally::Tally;
use crate::sys::memory::check_room;
use crate::sys::{self, clock, wait};
use crate::text::record::Growing;
use sa_format::control::{CONTROL_VERSION, Control, Switch, SwitchCause};
use sa_format::{Anchor, InstantPlace, write_instant};

/// Interval in ns at which the control file is checked.
const CHECK_NS: u64 = 250_000_000;
/// Interval in ns at which the count and the control file are checked while events or steps are
/// counted.
const COUNTING_NS: u64 = 50_000_000;
/// Time in ns from the last step to the instant at which all processes stop. They check the file
/// more often while they count.
const STEPS_LEAD_NS: u64 = 100_000_000;

/// Room in bytes for reading a control file and planning its switches.
const CONTROL_BYTES: usize = 96 << 10;

/// The levels in force in this process. The child of a fork continues with them.
#[derive(Debug, Default)]
pub(crate) struct InForce {
    levels: AtomicU32,
    /// Time when recording stops again, in ns of the monotonic clock; 0 for never.
    until_ns: AtomicU64,
}

impl InForce {
    /// Returns the state in which a recording begins, with the levels that the environment
    /// requests.
    pub(crate) fn new(levels: Levels) -> InForce {
        InForce {
            levels: AtomicU32::new(levels.0),
            ..InForce::default()
        }
    }

    /// Returns a copy of the parent process's levels and stop time, with which a forked child
    /// continues.
    pub(crate) fn copy(&self) -> InForce {
        InForce {
            until_ns: AtomicU64::new(self.until_ns.load(Ordering::Relaxed)),
            ..InForce::new(self.levels())
        }
    }

    /// Returns the levels of detail that this process records now, unless recording has ended.
    pub(crate) fn levels(&self) -> Levels {
        Levels(self.levels.load(Ordering::Relaxed))
    }
}

/// A planned switch.
#[derive(Debug)]
struct Due {
    at_ns: u64,
    levels: Levels,
    cause: SwitchCause,
    control: Option<String>,
    until_ns: u64,
    tally: Option<Tally>,
}

impl Due {
    fn stop(at_ns: u64, cause: SwitchCause, control: Option<String>) -> Due {
        Due {
            at_ns,
            levels: Levels::NONE,
            cause,
            control,
            until_ns: 0,
            tally: None,
        }
    }
}

/// The switches of a process.
#[derive(Debug)]
pub(crate) struct Switches {
    schedule: Mutex<Schedule>,
    /// Time in ns when something is due next; `u64::MAX` before the recorder began.
    next_ns: AtomicU64,
    /// True if a control file is or will be in force, or if levels are off. Then events may come
    /// too late to apply switches in time, or not at all.
    need_a_thread: AtomicBool,
}

impl Switches {
    /// Returns the switches of a recorder that has not begun. They follow the control file in
    /// `directory`, as long as it is for a run in `runs` (run ids).
    pub(crate) fn new(directory: &Path, runs: Vec<String>) -> Switches {
        Switches {
            schedule: Mutex::new(Schedule::new(directory, runs)),
            next_ns: AtomicU64::new(u64::MAX),
            need_a_thread: AtomicBool::new(false),
        }
    }

    /// Switches recording on when the recorder begins, with the levels in force or those that a
    /// control file of this run requests.
    pub(crate) fn begin(&self, process: &Process) {
        if let Some(mut schedule) = wait::try_lock(&self.schedule) {
            schedule.begin(process);
            self.update(&schedule, process);
        }
    }

    /// Returns true if a switch or a check of the control file has been due for at least `by_ns`.
    pub(crate) fn is_late(&self, by_ns: u64) -> bool {
        let next_ns = self.next_ns.load(Ordering::Relaxed);
        clock::now_ns() >= next_ns.saturating_add(by_ns)
    }

    /// Checks the control file and applies a planned switch, if either is due. Leaves that to
    /// another thread that is already doing so.
    pub(crate) fn apply_due(&self, process: &Process) {
        if !self.is_late(0) {
            return;
        }
        if let Some(mut schedule) = wait::try_lock(&self.schedule) {
            schedule.apply_due(process);
            self.update(&schedule, process);
        }
    }

    /// Returns true if only a thread of the recorder's own can apply in time the level switches
    /// that a control file requests.
    pub(crate) fn need_a_thread(&self) -> bool {
        self.need_a_thread.load(Ordering::Relaxed)
    }

    /// Returns the time in ns until a switch or a check of the control file is due.
    pub(crate) fn pause_ns(&self) -> u64 {
        let next_ns = self.next_ns.load(Ordering::Relaxed);
        next_ns.saturating_sub(clock::now_ns())
    }

    fn update(&self, schedule: &Schedule, process: &Process) {
        let is_plain = schedule.due.is_empty()
            && schedule.control.is_none()
            && process.in_force.levels() == process.config.levels;
        self.need_a_thread.store(!is_plain, Ordering::Relaxed);
        self.next_ns.store(schedule.next_ns(), Ordering::Relaxed);
    }
}

/// The plan. The thread that holds its lock carries it out.
#[derive(Debug)]
struct Schedule {
    watch: Watch,
    next_check_ns: u64,
    /// Planned switches, ordered by time.
    due: Vec<Due>,
    /// Id of the control file in force.
    control: Option<String>,
    counting: bool,
}

impl Schedule {
    fn new(directory: &Path, runs: Vec<String>) -> Schedule {
        Schedule {
            watch: Watch::new(directory, runs),
            next_check_ns: 0,
            due: Vec::new(),
            control: None,
            counting: false,
        }
    }

    fn begin(&mut self, process: &Process) {
        let until_ns = process.in_force.until_ns.load(Ordering::Relaxed);
        if until_ns > 0 {
            self.due.push(Due::stop(until_ns, SwitchCause::For, None));
        }
        let levels = process.in_force.levels();
        mask::open(process.epoch(), levels);
        if !self.apply_due(process) && levels == Levels::NONE {
            let paused = Due::stop(0, SwitchCause::Paused, None);
            record_switch(process, clock::now_ns(), &paused);
        }
    }

    /// Checks the control file and applies a planned switch, if either is due. Returns true if it
    /// switched.
    fn apply_due(&mut self, process: &Process) -> bool {
        let now_ns = clock::now_ns();
        if now_ns >= self.next_check_ns {
            let check_ns = if self.counting { COUNTING_NS } else { CHECK_NS };
            self.next_check_ns = now_ns + check_ns;
            self.read_control(process);
        }
        if self.counting {
            self.stop_if_counted(process);
        }
        let due = self.due.partition_point(|due| due.at_ns <= now_ns);
        let last = self.due.drain(..due).next_back(); // a late process skips switches that are already over
        last.is_some_and(|due| {
            self.switch(process, due);
            true
        })
    }

    /// Returns the time in ns when the next switch or check of the control file is due.
    fn next_ns(&self) -> u64 {
        let due = self.due.first().map_or(u64::MAX, |due| due.at_ns);
        due.min(self.next_check_ns)
    }

    fn read_control(&mut self, process: &Process) {
        if check_room(CONTROL_BYTES).is_err() {
            return; // the next check finds it
        }
        if let Some(control) = self.watch.poll() {
            self.plan(&control, process.config.levels, clock::anchor());
        }
    }

    /// Returns true if a newer control file than the one in force has planned a switch.
    fn is_superseded(&self) -> bool {
        self.due.iter().any(|due| due.control != self.control)
    }

    /// Plans the switches that a new control file requests. They replace all planned switches from
    /// its start time on. `configured` are the levels if the file names none, and `now` converts
    /// its times to the monotonic clock.
    fn plan(&mut self, control: &Control, configured: Levels, now: Anchor) {
        let at_ns = monotonic_ns(control.from_realtime_ns, now);
        let until_ns = control
            .until_realtime_ns
            .map_or(0, |until| monotonic_ns(until, now));
        self.due.retain(|due| due.at_ns < at_ns);
        let levels = control.levels.as_ref();
        let id = Some(control.id.clone());
        self.due.push(Due {
            at_ns,
            levels: levels.map_or(configured, |levels| Levels::from_list(levels)),
            cause: control.cause,
            control: id.clone(),
            until_ns,
            tally: Tally::from_control(control),
        });
        if until_ns > 0 {
            self.due.push(Due::stop(until_ns, SwitchCause::For, id));
        }
    }

    /// Stops recording if the number of events or steps that the control file requested is reached.
    /// Events stop only this process, steps all processes of the run. Does nothing if another
    /// control file is about to take over.
    fn stop_if_counted(&mut self, process: &Process) {
        let Some(cause) = process.fragment.reached_limit() else {
            return;
        };
        self.read_control(process); // the user may have just stored another control file
        if self.is_superseded() {
            return;
        }
        self.counting = false;
        let now = clock::anchor();
        if cause == SwitchCause::Events {
            self.due = vec![Due::stop(now.monotonic_ns, cause, self.control.clone())];
            return;
        }
        let stop = Control {
            version: CONTROL_VERSION,
            id: format!("{:016x}", sys::random()),
            run: process.run.id.clone(),
            cause,
            levels: Some(Vec::new()),
            from_realtime_ns: now.realtime_ns + STEPS_LEAD_NS,
            ..Control::default()
        };
        // This process stops even if the others do not (a full disk).
        let _ = self.watch.replace(&stop, process.config.mode);
        self.plan(&stop, process.config.levels, now);
    }

    fn switch(&mut self, process: &Process, mut due: Due) {
        self.control.clone_from(&due.control);
        self.counting = due.tally.is_some();
        process.fragment.set_tally(due.tally.take());
        let in_force = &process.in_force;
        in_force.levels.store(due.levels.0, Ordering::Relaxed);
        in_force.until_ns.store(due.until_ns, Ordering::Relaxed);
        let at_ns = mask::set_levels(process.epoch(), due.levels);
        record_switch(process, at_ns, &due);
    }
}

/// Records in the trace that this process switched to other levels of detail, as an instant at
/// `at_ns`, the time from which the switch is in force.
fn record_switch(process: &Process, at_ns: u64, due: &Due) {
    let args = Switch {
        levels: due.levels.list(),
        cause: due.cause,
        control: due.control.clone(),
    };
    let place = InstantPlace {
        pid: process.pid.into(),
        tid: process.pid.into(),
        time_ns: i64::try_from(at_ns).unwrap_or(i64::MAX),
        is_thread_scoped: false,
    };
    let mut line = Growing::default();
    let _ = write_instant(&mut line, place, Switch::NAME, &args); // writing to it cannot fail
    process.append_own(&line.into_line());
}

/// Converts a wall-clock time to the monotonic clock, with the anchor `now`. Times before that
/// clock began become 1.
fn monotonic_ns(realtime_ns: u64, now: Anchor) -> u64 {
    let at_ns =
        i128::from(realtime_ns) - i128::from(now.realtime_ns) + i128::from(now.monotonic_ns);
    u64::try_from(at_ns.max(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Anchor = Anchor {
        monotonic_ns: 1_000,
        realtime_ns: 501_000,
        uncertainty_ns: 1,
    };

    fn control(id: &str, from: u64, until: Option<u64>) -> Control {
        Control {
            id: id.to_owned(),
            cause: SwitchCause::Start,
            from_realtime_ns: from,
            until_realtime_ns: until,
            ..Control::default()
        }
    }

    fn planned(controls: &[Control]) -> Vec<(u64, SwitchCause, String)> {
        let mut schedule = Schedule::new(Path::new("/nowhere"), vec!["r".to_owned()]);
        for control in controls {
            schedule.plan(control, Levels::DEFAULT, NOW);
        }
        let due = schedule.due.into_iter();
        due.map(|due| (due.at_ns, due.cause, due.control.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn wall_time_becomes_monotonic_time() {
        assert_eq!(monotonic_ns(501_007, NOW), 1_007);
        assert_eq!(monotonic_ns(500_500, NOW), 500);
        assert_eq!(monotonic_ns(0, NOW), 1);
        assert_eq!(monotonic_ns(u64::MAX, NOW), u64::MAX - 500_000);
    }

    #[test]
    fn a_later_control_replaces_the_plan_from_its_instant_on() {
        use SwitchCause::{For, Start};
        let named = |at: u64, cause, id: &str| (at, cause, id.to_owned());
        let (begun, over) = (named(2_000, Start, "a"), named(3_000, For, "a"));
        for (next, plan) in [
            (None, vec![begun.clone(), over.clone()]),
            (Some(502_500), vec![begun.clone(), named(2_500, Start, "b")]),
            (Some(503_500), vec![begun, over, named(3_500, Start, "b")]),
        ] {
            let first = control("a", 502_000, Some(503_000));
            let next = next.map(|from| control("b", from, None));
            let controls: Vec<_> = [first].into_iter().chain(next).collect();
            assert_eq!(planned(&controls), plan);
        }
    }
}
