//! [`Recorder`]: the handle of this process's recorder.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::event::async_span::AsyncSpan;
use crate::event::instant::{self, NamedEvent};
use crate::event::span::SpanGuard;
use crate::event::track::{Track, TrackProcess};
use crate::lifecycle::restart;
use crate::process::reclaim::{self, ProcessRef};
use crate::process::start;
use crate::run::config::{Config, Levels, exported_variables};
use crate::run::membership as run;
use crate::sys::variable;
use crate::sys::wait::PATIENCE_NS;
use crate::text::value::Args;
use crate::thread::thread_state;
use sa_format::Level;

/// The recorder of this process. A handle without contents: every copy, in every thread, is the same recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorder(());

impl Recorder {
    /// Starts the recorder now, if the environment asks for it, and exports `SA_PROFILE_RUN` and `SA_PROFILE_MAIN_PID` so that child
    /// processes join this run even where they cannot see its lock. The run directory is exported as an absolute path, so that they find it from
    /// any working directory: in `SA_PROFILE_OUTPUT` if only that was set, else in `SA_PROFILE_DIR`.
    ///
    /// Call it at the very start of `main`, before there are threads: it changes the environment, which no other thread may read or change
    /// meanwhile. The recorder's own helper thread runs by then, and does neither. Without it recording starts with the first event, and
    /// child processes find the run by the run file's lock.
    pub fn init() -> Recorder {
        let recorder = Recorder(());
        let _ = start::levels(); // the first look starts it
        for (name, value) in recorder.exports() {
            export(name, &value);
        }
        recorder
    }

    /// Ends what this process records, as [`Recorder::finish`] does, and begins anew with the variables that `lookup` gives: other levels, another
    /// directory, or the same one. There the main process begins a new run and puts the earlier one aside in `previous/`. Any other process joins
    /// the run that the main process has begun. If it comes first, it joins the one that is about to begin. The names of the process and of its
    /// threads stay.
    ///
    /// What is open (spans, async spans, tracks) belongs to the old recording, which tells it as unfinished; to end it later does nothing. The new
    /// recording has every event that begins after this returns. What other threads record meanwhile is in either, whole, or in none.
    ///
    /// The environment stays as it is: see [`Recorder::exports`].
    ///
    /// # Errors
    /// When nothing asks for recording or another thread is starting it, what was recorded goes on. When the files cannot be made, recording is off.
    pub fn start_with(
        lookup: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Recorder, restart::StartError> {
        restart::start_with(None, lookup).map(|()| Recorder(()))
    }

    /// [`Recorder::start_with`], with another name of the process.
    ///
    /// # Errors
    /// As [`Recorder::start_with`].
    pub fn start_named(
        name: &str,
        lookup: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Recorder, restart::StartError> {
        restart::start_with(Some(name), lookup).map(|()| Recorder(()))
    }

    /// The variables by which child processes find this run, with their values: what [`Recorder::init`] sets. Empty without a recording.
    pub fn exports(self) -> Vec<(&'static str, OsString)> {
        let Some(process) = reclaim::existing() else {
            return Vec::new();
        };
        let (paths, run) = (&process.config.paths, &process.run);
        exported_variables(variable, paths, &run.id, run.main_pid)
    }

    /// The variables that make child processes members of this process's run, though it has recorded nothing yet: its first event begins that run. Afterwards those of
    /// [`Recorder::exports`]. Empty if nothing asks for recording, if the environment names a run already, or if another process's run is live in the directory,
    /// which this one will join. Writes nothing; it is for the caller to set them.
    pub fn announce(self) -> Vec<(&'static str, OsString)> {
        if reclaim::existing().is_some() {
            return self.exports();
        }
        let config = Config::from_lookup(variable).map(start::absolute);
        config.map_or_else(Vec::new, |config| run::announced::announce(&config))
    }

    /// Returns the handle; recording starts with the first event if it has not yet.
    pub fn get() -> Recorder {
        Recorder(())
    }

    /// Whether anything is recorded: false without the environment variables, while it is switched off, after [`Recorder::finish`], and if
    /// recording could not be set up.
    pub fn is_enabled(self) -> bool {
        start::levels() != 0
    }

    /// The levels that are recorded. Before the first event those that the environment asks for: to ask starts nothing, and writes no file.
    pub fn levels(self) -> Levels {
        start::asked_levels()
    }

    /// Whether events of this level are recorded.
    pub fn includes(self, level: Level) -> bool {
        start::levels() & level.bit() != 0
    }

    /// Whether this is the main process of its run.
    pub fn is_main(self) -> bool {
        running().is_some_and(|process| process.run.main)
    }

    /// The run id.
    pub fn run(self) -> Option<String> {
        running().map(|process| process.run.id.clone())
    }

    /// The run directory, absolute.
    pub fn directory(self) -> Option<PathBuf> {
        running().map(|process| process.config.paths.directory.clone())
    }

    /// Where the merged trace belongs: `trace.json` in the run directory, or the file that `SA_PROFILE_OUTPUT` names.
    pub fn trace(self) -> Option<PathBuf> {
        running().map(|process| process.config.paths.trace.clone())
    }

    /// The path of this process's fragment: of its first segment, which is removed when the disk bound is reached.
    pub fn fragment(self) -> Option<PathBuf> {
        running().map(|process| process.fragment.path.clone())
    }

    /// Names the process in the trace; a later name renames it.
    pub fn set_process_name(self, name: &str) {
        if let Some(process) = start::current() {
            process.set_name(name);
        }
    }

    /// Records the settings of the engine in this process, replacing earlier ones. FORMAT.md lists the names; readers ignore all others. Call it once the
    /// settings are final. They are in the trace even if recording is switched off at that time, or if earlier segments are removed.
    pub fn set_engine_settings(self, settings: &Args) {
        if let Some(process) = start::current() {
            process.set_engine_settings(settings);
        }
    }

    /// Tells a record about the process, or about the thread of this id, such as `process_labels`; `args` is what it says.
    pub fn metadata(self, name: &str, tid: Option<u64>, args: &Args) {
        if let Some(process) = start::current() {
            process.tell_metadata(name, tid, args);
        }
    }

    /// Tells an instant of the process, now, in the category of the records about the recording.
    pub fn own_instant(self, name: &str, args: &Args) {
        if let Some(process) = start::current() {
            process.tell_instant(name, args);
        }
    }

    /// Names the calling thread in the trace.
    pub fn set_thread_name(self, name: &str) {
        thread_state::set_thread_name(name);
    }

    /// Opens a span whose name is not known at the call site; [`span!`](crate::span!) is cheaper where it is.
    pub fn span(self, level: Level, category: &str, name: &str) -> SpanGuard {
        SpanGuard::open_named(level, category, name)
    }

    /// Opens an async span whose name is not known at the call site.
    pub fn async_span(self, level: Level, category: &str, name: &str) -> AsyncSpan {
        AsyncSpan::open_named(level, category, name)
    }

    /// The track `thread` of a group: a row of the trace for what happens on no thread of this process. The same names give the same track.
    /// `None` where nothing can be recorded.
    pub fn track(self, group: &TrackProcess<'_>, thread: &str) -> Option<Track> {
        Track::new(group, thread)
    }

    /// The row of one of this process's threads, by the kernel's id, for what another thread tells of it. `None` where nothing can be recorded.
    pub fn thread_track(self, tid: u32) -> Option<Track> {
        Track::of_thread(tid)
    }

    /// Records an instant whose name is not known at the call site.
    pub fn instant(self, level: Level, category: &str, name: &str, args: &Args) {
        NamedEvent::new(b'i', category, name, args.text()).record(level);
    }

    /// Records a counter whose name is not known at the call site: `series` holds one number for each. Values are kept as by [`counter!`](crate::counter!).
    pub fn counter(self, level: Level, name: &str, series: &Args) {
        instant::counter(level, name, series);
    }

    /// Brings everything recorded so far into the fragment; waits at most a second for a writer that is under way.
    pub fn flush(self) {
        if let Some(process) = reclaim::existing() {
            process.flush_within(PATIENCE_NS);
            if !process.is_finished() {
                process.visit();
            }
        }
    }

    /// Ends recording in this process and removes the ring if nothing is left in it. Also runs at exit; a second call does nothing.
    pub fn finish(self) {
        if let Some(process) = reclaim::existing() {
            process.finish();
        }
    }

    /// Events lost so far in this process.
    pub fn dropped(self) -> u64 {
        reclaim::existing().map_or(0, |process| process.lost.total())
    }
}

fn running() -> Option<ProcessRef> {
    start::current().or_else(reclaim::existing)
}

/// Sets a variable for this process and its children.
#[expect(
    unsafe_code,
    reason = "the contract of `Recorder::init` is that no other thread of the host runs yet"
)]
fn export(name: &str, value: &OsStr) {
    // SAFETY: documented at `Recorder::init`: called before the host has threads; our helper thread never touches the environment.
    unsafe { std::env::set_var(name, value) };
}
