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

/// The recorder of this process. It is a handle without contents: every copy, in every thread,
/// refers to the same recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorder(());

impl Recorder {
    /// Starts the recorder now if the environment requests it. Also exports `SA_PROFILE_RUN` and
    /// `SA_PROFILE_MAIN_PID`, so that child processes join this run even if they cannot see its
    /// lock. The run directory is exported as an absolute path, so that children find it from any
    /// working directory: in `SA_PROFILE_OUTPUT` if only that was set, otherwise in
    /// `SA_PROFILE_DIR`.
    ///
    /// Call it at the very start of `main`, before there are other threads: it changes the
    /// environment, which no other thread may read or change meanwhile. The recorder's own helper
    /// thread is already running by then and does neither. Without this call, recording starts with
    /// the first event, and child processes find the run by the lock of its run file.
    pub fn init() -> Recorder {
        let recorder = Recorder(());
        let _ = start::levels(); // the first call starts the recorder
        for (name, value) in recorder.exports() {
            export(name, &value);
        }
        recorder
    }

    /// Ends what this process records, like [`Recorder::finish`], and begins a new recording with
    /// the variables from `lookup`: with other levels, in another directory, or in the same one. In
    /// the same directory, the main process begins a new run and moves the earlier one into
    /// `previous/`. Any other process joins the run that the main process has begun, or is about to
    /// begin if this process comes first. The names of the process and of its threads stay.
    ///
    /// Spans, async spans and tracks that are open belong to the old recording, which reports them
    /// as unfinished. Ending them later does nothing. The new recording has every event that begins
    /// after this returns. An event that another thread records meanwhile is in one of the
    /// recordings, whole, or in neither.
    ///
    /// The environment stays unchanged: see [`Recorder::exports`].
    ///
    /// # Errors
    ///
    /// Returns an error if nothing requests recording or another thread is starting it; then the
    /// previous recording continues. Also returns an error if the files cannot be created; then
    /// recording is off.
    pub fn start_with(
        lookup: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Recorder, restart::StartError> {
        restart::start_with(None, lookup).map(|()| Recorder(()))
    }

    /// Starts a new recording like [`Recorder::start_with`], and gives the process another name.
    ///
    /// # Errors
    ///
    /// Same as [`Recorder::start_with`].
    pub fn start_named(
        name: &str,
        lookup: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Recorder, restart::StartError> {
        restart::start_with(Some(name), lookup).map(|()| Recorder(()))
    }

    /// Returns the names and values of the environment variables by which child processes find this
    /// run. These are the ones that [`Recorder::init`] sets. The result is empty without a
    /// recording.
    pub fn exports(self) -> Vec<(&'static str, OsString)> {
        let Some(process) = reclaim::existing() else {
            return Vec::new();
        };
        let (paths, run) = (&process.config.paths, &process.run);
        exported_variables(variable, paths, &run.id, run.main_pid)
    }

    /// Returns the names and values of the environment variables that make child processes join
    /// this process's run before it has recorded anything: its first event begins that run. After
    /// that event, returns the same as [`Recorder::exports`].
    ///
    /// The result is empty if nothing requests recording, if the environment already names a run,
    /// or if another process's run is live in the directory, because this process will join it.
    /// Writes nothing; the caller must set the variables.
    pub fn announce(self) -> Vec<(&'static str, OsString)> {
        if reclaim::existing().is_some() {
            return self.exports();
        }
        let config = Config::from_lookup(variable).map(start::absolute);
        config.map_or_else(Vec::new, |config| run::announced::announce(&config))
    }

    /// Returns the handle of this process's recorder. Starts nothing: recording starts with the
    /// first event.
    pub fn get() -> Recorder {
        Recorder(())
    }

    /// Returns true if at least one level is recorded now. Returns false without the environment
    /// variables, while recording is switched off, after [`Recorder::finish`], and if recording
    /// could not be set up.
    pub fn is_enabled(self) -> bool {
        start::levels() != 0
    }

    /// Returns the levels of detail whose events are recorded now. Before the first event, these
    /// are the levels that the environment requests. This call starts nothing and writes no file.
    pub fn levels(self) -> Levels {
        start::requested_levels()
    }

    /// Returns true if events of this level are recorded now.
    pub fn includes(self, level: Level) -> bool {
        start::levels() & level.bit() != 0
    }

    /// Returns true if this is the main process of its run: the one that began it. Returns false
    /// without a recording.
    pub fn is_main(self) -> bool {
        running().is_some_and(|process| process.run.main)
    }

    /// Returns the id of the run that this process belongs to, or `None` without a recording.
    pub fn run(self) -> Option<String> {
        running().map(|process| process.run.id.clone())
    }

    /// Returns the absolute path of the run directory, or `None` without a recording.
    pub fn directory(self) -> Option<PathBuf> {
        running().map(|process| process.config.paths.directory.clone())
    }

    /// Returns the path for the merged trace: `trace.json` in the run directory, or the file that
    /// `SA_PROFILE_OUTPUT` names. Returns `None` without a recording.
    pub fn trace(self) -> Option<PathBuf> {
        running().map(|process| process.config.paths.trace.clone())
    }

    /// Returns the path of the first segment of this process's fragment, or `None` without a
    /// recording. That segment is removed when the disk limit is reached.
    pub fn fragment(self) -> Option<PathBuf> {
        running().map(|process| process.fragment.path.clone())
    }

    /// Gives the process a name in the trace. A later name replaces it.
    pub fn set_process_name(self, name: &str) {
        if let Some(process) = start::current() {
            process.set_name(name);
        }
    }

    /// Records the settings of the inference engine in this process, and replaces earlier ones.
    /// FORMAT.md lists their names; readers ignore all others. Call it once the settings are final.
    /// They are in the trace even if recording is switched off at that time, or if earlier segments
    /// are removed.
    pub fn set_engine_settings(self, settings: &Args) {
        if let Some(process) = start::current() {
            process.set_engine_settings(settings);
        }
    }

    /// Records metadata about the process, or about the thread with the id `tid`. `name` says which
    /// kind it is, such as `process_labels`, and `args` is its content.
    pub fn metadata(self, name: &str, tid: Option<u64>, args: &Args) {
        if let Some(process) = start::current() {
            process.record_metadata(name, tid, args);
        }
    }

    /// Records an instant about the whole process, at the current time, in the same category as the
    /// records about the recording itself.
    pub fn own_instant(self, name: &str, args: &Args) {
        if let Some(process) = start::current() {
            process.record_instant(name, args);
        }
    }

    /// Gives the calling thread a name in the trace.
    pub fn set_thread_name(self, name: &str) {
        thread_state::set_thread_name(name);
    }

    /// Opens a span on the calling thread, with a name that is not known at the call site. If the
    /// name is known, [`span!`](crate::span!) is cheaper.
    pub fn span(self, level: Level, category: &str, name: &str) -> SpanGuard {
        SpanGuard::open_named(level, category, name)
    }

    /// Opens an async span whose name is not known at the call site. It may be held across awaits
    /// and sent to other threads.
    pub fn async_span(self, level: Level, category: &str, name: &str) -> AsyncSpan {
        AsyncSpan::open_named(level, category, name)
    }

    /// Returns the track with the name `thread` in a group: a part of the trace that is shown like
    /// a thread, for events that do not belong to a thread of this process. The same names give the
    /// same track. Returns `None` if recording is impossible.
    pub fn track(self, group: &TrackProcess<'_>, thread: &str) -> Option<Track> {
        Track::new(group, thread)
    }

    /// Returns the track of the thread of this process that has the kernel's id `tid`, so that
    /// another thread can record events on it. Returns `None` if recording is impossible.
    pub fn thread_track(self, tid: u32) -> Option<Track> {
        Track::for_thread(tid)
    }

    /// Records an instant now, on the calling thread, with a name that is not known at the call
    /// site.
    pub fn instant(self, level: Level, category: &str, name: &str, args: &Args) {
        NamedEvent::new(b'i', category, name, args.text()).record(level);
    }

    /// Records values of a counter now, with a name that is not known at the call site. `series`
    /// contains one number for each series. Values are kept as by [`counter!`](crate::counter!).
    pub fn counter(self, level: Level, name: &str, series: &Args) {
        instant::counter(level, name, series);
    }

    /// Writes everything recorded so far in this process to its fragment. Waits at most a second
    /// for a write that is in progress.
    pub fn flush(self) {
        if let Some(process) = reclaim::existing() {
            process.flush_within(PATIENCE_NS);
            if !process.is_finished() {
                process.do_upkeep();
            }
        }
    }

    /// Ends recording in this process, and removes its ring file if nothing is left in it. Also
    /// runs at exit. A second call does nothing.
    pub fn finish(self) {
        if let Some(process) = reclaim::existing() {
            process.finish();
        }
    }

    /// Returns the number of events lost so far in this process.
    pub fn dropped(self) -> u64 {
        reclaim::existing().map_or(0, |process| process.lost.total())
    }
}

/// Returns the recorder of this process, including one that has finished. Starts recording first if
/// the environment requests it. Returns `None` without a recording.
fn running() -> Option<ProcessRef> {
    start::current().or_else(reclaim::existing)
}

/// Sets an environment variable for this process and its children.
#[expect(
    unsafe_code,
    reason = "the contract of `Recorder::init` is that no other thread of the host runs yet"
)]
fn export(name: &str, value: &OsStr) {
    // SAFETY: documented at `Recorder::init`: called before the host has other threads. Our helper
    // thread never touches the environment.
    unsafe { std::env::set_var(name, value) };
}
