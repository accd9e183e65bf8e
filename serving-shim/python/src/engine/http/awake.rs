//! Measures for how long the event loop's thread may have been awake. Data that arrived earlier would have been read at once.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::mem::{ManuallyDrop, zeroed};
use std::os::unix::fs::{FileExt, MetadataExt};

use sa_recorder::host;

use super::clock::{Clocks, Kernel, read_ns};

/// Result if nothing is known about the time before.
pub(crate) const ALWAYS_NS: i64 = 1 << 62;
/// Maximum time that may be missing from a thread's CPU time before the kernel is asked how long the thread waited for a core.
const BRIEF_NS: i64 = 50_000;
/// File that begins with two times of the thread: on a core as of the last tick, and waiting for one.
const COUNTS: &str = "/proc/thread-self/schedstat";

/// Counts that the kernel has for the calling thread.
pub(crate) trait Thread {
    /// Returns the thread's id in the Linux kernel.
    fn id(&self) -> u32;
    /// Returns how often the thread has waited for something other than a core, since it started.
    fn sleeps(&self) -> Result<i64>;
    /// Returns the thread's CPU time since it started, in ns.
    fn used_ns(&self) -> i64;
    /// Returns for how many ns the thread has waited for a core, since it started.
    fn delayed_ns(&self) -> Result<i64>;
    /// Returns the current time in ns of the monotonic clock.
    fn now_ns(&self) -> i64;
}

/// The period for which one thread has not slept.
pub(crate) struct Awake<T> {
    thread: T,
    last: Option<Reading>,
    max_awake_ns: i64,
}

/// The counts of a thread at one time.
struct Reading {
    id: u32,
    sleeps: i64,
    used_ns: i64,
    /// Time for which the thread ran or waited for a core.
    active_ns: i64,
    now_ns: i64,
}

impl<T: Thread> Awake<T> {
    pub(crate) fn new(thread: T) -> Awake<T> {
        Awake {
            thread,
            last: None,
            max_awake_ns: 0,
        }
    }

    /// Returns the longest time, in ns, for which the calling thread may have been awake (running or waiting for a core), or [`ALWAYS_NS`] if that is unknown.
    /// The period may have begun at any time since the previous call, so frequent calls give smaller results.
    pub(crate) fn max_awake_ns(&mut self) -> i64 {
        let Ok(sleeps) = self.thread.sleeps() else {
            return self.reset();
        };
        if self.has_not_slept(sleeps) && self.extend() {
            return self.max_awake_ns;
        }
        match self.read(sleeps) {
            Ok(reading) => self.update(reading),
            Err(_) => self.reset(),
        }
    }

    /// Starts a new awake period if the thread has slept since its counts were last read. This costs less than `max_awake_ns`. If the thread has not slept, it
    /// reads no further counts, so that the next reading still covers the whole period.
    pub(crate) fn check_for_sleep(&mut self) {
        match self.thread.sleeps() {
            Ok(sleeps) if self.has_not_slept(sleeps) => {}
            _ => {
                self.max_awake_ns();
            }
        }
    }

    /// Returns true if the thread has not slept since its counts were last read. `sleeps` is its current number of sleeps.
    fn has_not_slept(&self, sleeps: i64) -> bool {
        let last = self.last.as_ref();
        last.is_some_and(|last| last.sleeps == sleeps && last.id == self.thread.id())
    }

    /// Extends the awake period by the time since the thread's counts were last read, if the thread had a core for nearly all of that time. Returns false if
    /// it did not.
    fn extend(&mut self) -> bool {
        let (used_ns, now_ns) = (self.thread.used_ns(), self.thread.now_ns());
        let Some(last) = &mut self.last else {
            return false;
        };
        let since_ns = now_ns - last.now_ns;
        if since_ns - (used_ns - last.used_ns) > BRIEF_NS {
            return false;
        }
        last.active_ns += used_ns - last.used_ns;
        (last.used_ns, last.now_ns) = (used_ns, now_ns);
        self.max_awake_ns = ALWAYS_NS.min(self.max_awake_ns + since_ns);
        true
    }

    fn read(&self, sleeps: i64) -> Result<Reading> {
        let used_ns = self.thread.used_ns();
        Ok(Reading {
            id: self.thread.id(),
            sleeps,
            used_ns,
            active_ns: used_ns + self.thread.delayed_ns()?,
            now_ns: self.thread.now_ns(),
        })
    }

    fn update(&mut self, reading: Reading) -> i64 {
        self.max_awake_ns = match &self.last {
            Some(last) if last.id == reading.id => {
                let since_ns = reading.active_ns - last.active_ns;
                let has_slept = last.sleeps != reading.sleeps;
                // If it slept, the new period began after the last reading.
                let before_ns = if has_slept { 0 } else { self.max_awake_ns };
                ALWAYS_NS.min(before_ns + since_ns)
            }
            _ => ALWAYS_NS,
        };
        self.last = Some(reading);
        self.max_awake_ns
    }

    fn reset(&mut self) -> i64 {
        self.last = None;
        self.max_awake_ns = ALWAYS_NS;
        ALWAYS_NS
    }
}

thread_local! {
    /// The open file. Opening it takes ten times as long as reading it.
    static COUNTS_FILE: RefCell<Option<CountsFile>> = const { RefCell::new(None) };
}

/// The kernel's counts for one thread, as an open file. The host may close its descriptor and reuse the number for its own file.
struct CountsFile {
    tid: u32,
    /// Device and inode.
    identity: (u64, u64),
    file: ManuallyDrop<File>,
}

impl CountsFile {
    fn open() -> Result<CountsFile> {
        let file = File::open(COUNTS)?;
        Ok(CountsFile {
            tid: host::tid(),
            identity: identity(&file)?,
            file: ManuallyDrop::new(file),
        })
    }

    /// Returns true if the file descriptor still refers to the file that was opened. The host may have closed the descriptor and reused its number.
    fn is_ours(&self) -> bool {
        identity(&self.file).is_ok_and(|identity| identity == self.identity)
    }

    /// Returns true if the open file contains the counts of the calling thread. In the child of a fork, the file still belongs to the parent's thread.
    fn is_current(&self) -> bool {
        self.tid == host::tid() && self.is_ours()
    }
}

impl Drop for CountsFile {
    fn drop(&mut self) {
        if self.is_ours() {
            // SAFETY: the file is dropped only here and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

fn identity(file: &File) -> Result<(u64, u64)> {
    let found = file.metadata()?;
    Ok((found.dev(), found.ino()))
}

/// The calling thread of this process.
pub(crate) struct ThisThread;

impl Thread for ThisThread {
    fn id(&self) -> u32 {
        host::tid()
    }

    fn sleeps(&self) -> Result<i64> {
        // SAFETY: the structure consists of integers, for which zeros are valid.
        let mut usage: libc::rusage = unsafe { zeroed() };
        // SAFETY: the kernel writes one `rusage`, for which there is room.
        let done = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
        match done {
            0 => Ok(usage.ru_nvcsw),
            _ => Err(Error::last_os_error()),
        }
    }

    fn used_ns(&self) -> i64 {
        read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
    }

    fn delayed_ns(&self) -> Result<i64> {
        let mut text = [0; 100];
        let read = COUNTS_FILE.try_with(|file| -> Result<usize> {
            let mut file = file.borrow_mut();
            if !file.as_ref().is_some_and(CountsFile::is_current) {
                *file = None; // close this file before opening another one
            }
            let counts = match &mut *file {
                Some(counts) => counts,
                None => file.insert(CountsFile::open()?),
            };
            counts.file.read_at(&mut text, 0)
        });
        let len = read.map_err(Error::other)??; // a thread that is ending can no longer store the file
        let text = str::from_utf8(&text[..len]).unwrap_or_default();
        let delayed = text.split_ascii_whitespace().nth(1);
        let delayed = delayed.and_then(|number| number.parse().ok());
        delayed.ok_or_else(|| Error::from(ErrorKind::InvalidData))
    }

    fn now_ns(&self) -> i64 {
        Kernel.now_ns()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs::{read_dir, read_link};
    use std::os::fd::AsRawFd;
    use std::thread;

    use super::*;

    /// A fake kernel's counts for a thread.
    #[derive(Default)]
    struct Counts {
        id: Cell<u32>,
        used_ns: Cell<i64>,
        delayed_ns: Cell<i64>,
        sleeps: Cell<i64>,
        /// Number of times that the expensive count was read.
        reads: Cell<i64>,
        is_unknown: Cell<bool>,
    }

    fn add(count: &Cell<i64>, by: i64) {
        count.set(count.get() + by);
    }

    impl Counts {
        fn advance(&self, used_ns: i64, delayed_ns: i64, sleeps: i64) {
            add(&self.used_ns, used_ns);
            add(&self.delayed_ns, delayed_ns);
            add(&self.sleeps, sleeps);
        }
    }

    impl Thread for &Counts {
        fn id(&self) -> u32 {
            self.id.get()
        }

        fn sleeps(&self) -> Result<i64> {
            Ok(self.sleeps.get())
        }

        fn used_ns(&self) -> i64 {
            self.used_ns.get()
        }

        fn delayed_ns(&self) -> Result<i64> {
            add(&self.reads, 1);
            match self.is_unknown.get() {
                true => Err(Error::other("too many open files")),
                false => Ok(self.delayed_ns.get()),
            }
        }

        /// Each sleep takes a second.
        fn now_ns(&self) -> i64 {
            self.used_ns.get() + self.delayed_ns.get() + self.sleeps.get() * 1_000_000_000
        }
    }

    /// Additions to a thread's counts, and the longest time for which it may have been awake afterwards.
    type Step = ((i64, i64, i64), i64);

    #[test]
    fn a_period_continues_until_the_thread_sleeps() {
        let long_ns = BRIEF_NS + 1;
        let begin: Step = ((0, 0, 0), ALWAYS_NS); // nothing is known about the time before
        let cases: [(&str, i64, &[Step]); 3] = [
            (
                "a reading is not a sleep: unread data has been there as long as before",
                3,
                &[
                    begin,
                    ((5, 0, 1), 5),
                    ((2, 7, 0), 14),
                    ((0, 0, 0), 14),
                    ((3, 0, 2), 3 + 7),
                ],
            ),
            (
                "a long wait for a core is not part of the next period",
                4,
                &[
                    begin,
                    ((5, 0, 1), 5),
                    ((2, long_ns, 0), 7 + long_ns),
                    ((3, 0, 1), 3),
                ],
            ),
            (
                "the connection of an answer may have a new request at once, whatever was done for this one without a sleep",
                2,
                &[begin, ((30, 0, 0), ALWAYS_NS), ((1, 0, 1), 1)],
            ),
        ];
        for (name, reads, steps) in cases {
            let counts = Counts::default();
            let mut awake = Awake::new(&counts);
            for ((used_ns, delayed_ns, sleeps), expected_ns) in steps {
                counts.advance(*used_ns, *delayed_ns, *sleeps);
                assert_eq!(awake.max_awake_ns(), *expected_ns, "{name}");
            }
            assert_eq!(counts.reads.get(), reads, "{name}");
        }
    }

    #[test]
    fn a_period_without_counts_or_of_another_thread_is_unknown() {
        let counts = Counts::default();
        let mut awake = Awake::new(&counts);
        awake.check_for_sleep();
        counts.advance(5, 0, 1);
        counts.is_unknown.set(true);
        assert_eq!(awake.max_awake_ns(), ALWAYS_NS);
        counts.is_unknown.set(false);
        counts.delayed_ns.set(900);
        assert_eq!(awake.max_awake_ns(), ALWAYS_NS); // it is not known when the period began
        counts.advance(4, 0, 1);
        assert_eq!(awake.max_awake_ns(), 4);
        for id in [1, 0] {
            counts.id.set(id);
            assert_eq!(awake.max_awake_ns(), ALWAYS_NS);
        }
    }

    fn descriptors() -> Vec<i32> {
        let names = read_dir("/proc/self/fd")
            .unwrap()
            .map(|entry| entry.unwrap());
        let numbers = names
            .filter(|entry| read_link(entry.path()).is_ok_and(|path| path.ends_with("schedstat")));
        let numbers = numbers.map(|entry| entry.file_name().into_string().unwrap());
        numbers.map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn measuring_keeps_one_open_file_per_live_thread() {
        let measure = || Awake::new(ThisThread).max_awake_ns();
        measure();
        let before = descriptors().len();
        for _ in 0..20 {
            thread::spawn(measure).join().unwrap();
            measure();
        }
        assert_eq!(descriptors().len(), before);
    }

    /// The host closes a descriptor that it does not know, and gets the same number for its own file.
    #[test]
    fn a_descriptor_that_the_host_reuses_is_neither_read_nor_closed() {
        let Ok(first_ns) = ThisThread.delayed_ns() else {
            println!("SKIPPED a descriptor that the host reuses: this machine has no schedstat");
            return;
        };
        let [number] = descriptors()[..] else {
            panic!("expected one descriptor, found {:?}", descriptors());
        };
        let path = std::env::temp_dir().join(format!("sa-own-{}", std::process::id()));
        std::fs::write(&path, "1 99999999999999 3\n").unwrap();
        let own = File::open(&path).unwrap();
        // SAFETY: both descriptors are open.
        assert_eq!(unsafe { libc::dup2(own.as_raw_fd(), number) }, number);
        let second_ns = ThisThread.delayed_ns().unwrap();
        assert!((first_ns..99_999_999_999_999).contains(&second_ns));
        assert!(descriptors().iter().all(|other| *other != number));
        // SAFETY: the child reads one file and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let status = i32::from(ThisThread.delayed_ns().is_err());
            // SAFETY: the child must not run the parent's exit handlers.
            unsafe { libc::_exit(status) };
        }
        let mut status = 1;
        // SAFETY: the kernel writes one status, for which there is room.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        let link = read_link(format!("/proc/self/fd/{number}")).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(link, path, "it is still the host's");
        assert!(ThisThread.delayed_ns().unwrap() >= second_ns);
    }
}
