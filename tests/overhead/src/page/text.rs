//! The words of the page. Each table has its method above it.

use super::Page;
use crate::effort::Effort;
use crate::series::whole;
use crate::subject::Subject;
use crate::table::Table;

const INTRODUCTION: &str = "\
What recording costs a process, next to other recorders. The command below measured every number on this page and wrote the page; nothing is typed in. \
A cell with brackets has the median and, in brackets, p10–p90.

";

/// What `tests/docs/check` wants before a block.
const MARK: &str = "<!-- not run: it measures for a quarter of an hour -->\n";

const BUSY: &str = "\
**Other programs kept the machine busy during this run.** Times are longer than on a quiet one, and p90 far longer. p10 and the CPU time say more than the median.

";

const EVENTS: &str = "\
Method: a loop records one kind of event as fast as it can, in as many threads as the column says. Its wall time is divided by the events of one thread. \
The same threads read the clock twice per turn, directly before and after, and the ratio is taken round by round. Two clock reads are the least that a span with a duration costs. \
Each pass is a fresh process with two warm rounds. The files of earlier rounds are written before the next one begins. A background thread that works during a round weighs on it. \
The last column is the CPU time of all threads of the process, from the loop's begin until everything is written: some recorders leave most of their work for later. \
Eight threads contend for the cores where there are fewer. A thread's wall time then holds the turns of the others, in the loop and in the clock reads alike.

";

const RECORDERS: &str = "\
Method: as above, the cases of all recorders in turn. Others do a quarter of the events per round. How each is set up:

";

const PYTHON: &str = "\
Method: a `with` block per span in a Python loop, less the empty loop, next to two `time.monotonic_ns()` calls less the same loop. One thread, fresh processes in turn. \
`serving-shim/python/bench/span.py` measures sa-recorder's own Python package. Two clock reads of Python: ";

const TAILS: &str = "\
Method: one thread opens and ends 50,000 spans with one argument a second, spinning to each turn. Each span is timed by itself, two clock reads included. \
Shown are medians over the runs, and the max over all of them. Beside fsync: another process writes 64 KiB and calls fsync, over and over, on the same file system.

";

const DISK: &str = "\
Method: the size of the file after a clean end, divided by the events recorded, one thread. Of sa-recorder that is the fragment; the merged trace is about as large. \
The last column counts the spans with one argument in the file.

";

const STARTS: &str = "\
Method: a small process starts the recorder, records one span (which gives the thread its ring) and ends. \
Start to end is the parent's wall time from spawn until the process and its output have ended. The last column is the difference to the process with recording off that was started just before.

";

const FOOTPRINT: &str = "\
Method: a process looks at itself in `/proc` while all threads that recorded still live. Shown is what recording adds to the same process with recording off, the median over the passes. \
The ring is a file that is mapped twice in a row. So resident memory counts its pages twice, and proportional memory (Pss) once. A thread touches its pages as it records. \
Mapped is address space. Most of it is what glibc reserves for the allocations of each new thread, 64 MiB for the recorder's own two. \
Files are those of the run directory. KiB are those allocated on the disk, of which the fragment reserves up to a MiB ahead. After a clean exit the rings and what was reserved are gone. \
The last row is what grows from one thread to eight, by thread.

";

const KILLS: &str = "\
Method: a process records spans with one argument in one thread, and acknowledges each, after its end, in a shared mapping. SIGKILL ends it at a random instant. \
At full speed that is within FAST ms of its first span, at the steady pace within PACED ms. A recorder that reports once a second can have little by then. \
Lost are acknowledged spans that are not in what is left. Of sa-recorder that is the trace that trace-merge makes, of the others their file, torn ends tolerated. \
Doubled are spans that are there twice.

";

const LIMITS: &str = "\
Recorders differ in what they are for. puffin keeps frames for a live view, measureme writes binary records for a compiler's own tools, fastrace collects requests for a tracing back end. \
What they leave out (processes, crash safety, a trace that opens as it is) they need not pay for. \
Spans here are empty. In a program whose caches are full of its own data each costs more. \
A crash of the machine, as opposed to the process, loses what the page cache had not written, with every recorder here.
";

impl Page {
    /// The whole page.
    pub(super) fn text(&self, command: &str, effort: &Effort) -> String {
        let mut text =
            format!("# What recording costs\n\n{INTRODUCTION}{MARK}```sh\n{command}\n```\n\n");
        if !effort.is_full() {
            text.push_str(
                "**A short run, to check the program: these numbers are not to be quoted.**\n\n",
            );
        }
        if self.machine.is_busy() {
            text.push_str(BUSY);
        }
        text.push_str(&self.facts());
        let recorders = format!("{RECORDERS}{}", set_ups());
        let kills = KILLS
            .replace("FAST", &whole(effort.life_ms as f64))
            .replace("PACED", &whole(effort.paced_life_ms as f64));
        let python = format!("{PYTHON}{}.\n\n", self.python.floor());
        let sections = [
            ("One event", EVENTS, self.cost.by_kind()),
            (
                "Next to other recorders",
                &recorders,
                self.cost.by_recorder(),
            ),
            ("Next to Python recorders", &python, self.python.table()),
            ("The slowest spans", TAILS, self.tails.table()),
            ("Disk", DISK, self.cost.disk()),
            ("Start and end of a process", STARTS, self.starts.table()),
            (
                "Memory, threads and files of a process",
                FOOTPRINT,
                self.footprint.table(),
            ),
            (
                "Killed by SIGKILL",
                &kills,
                self.kills.table(self.python.kills()),
            ),
            ("What this page does not say", LIMITS, String::new()),
        ];
        for (title, method, table) in sections {
            text.push_str(&format!("## {title}\n\n{method}{table}"));
        }
        text
    }

    fn facts(&self) -> String {
        let mut table = Table::new(2, ["measured on", ""]);
        for (name, value) in self.machine.facts() {
            table.row([(*name).to_owned(), value.clone()]);
        }
        let floor = format!("{} ns", self.cost.floor());
        table.row(["two clock reads, one thread".to_owned(), floor]);
        table.markdown()
    }
}

fn set_ups() -> String {
    let lines =
        Subject::RECORDERS.map(|subject| format!("- {}: {}\n", subject.label(), subject.set_up()));
    format!("{}\n", lines.concat())
}
