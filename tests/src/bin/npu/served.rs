//! A serving loop in one process, whose device waits for a known cause each time.

use crate::end;
use crate::session::Session;
use sa_recorder::{AsyncSpan, async_span, counter, span};
use std::time::{Duration, Instant};

/// How long each wait is planned to be; a busy machine makes it longer, and the program prints how long it was.
const WAIT: Duration = Duration::from_millis(50);

const CAUSES: [&str; 11] = [
    "no_request",
    "frontend",
    "not_schedulable",
    "engine",
    "scheduling",
    "output",
    "ipc",
    "gc",
    "preparing",
    "launch_gap",
    "sampling",
];

/// The loop's device and its load.
struct Server {
    session: Session,
    requests: u64,
    launches: u64,
    request: Option<AsyncSpan>,
}

/// Makes the device wait for each cause in turn, and prints for how long.
pub(crate) fn served(rounds: u64) {
    let mut server = Server {
        session: Session::open(1),
        requests: 0,
        launches: 0,
        request: None,
    };
    server.request_comes();
    counter!("requests", running = 1, waiting = 0);
    server.kernel();
    for _ in 0..rounds {
        for cause in CAUSES {
            let waited = server.wait(cause);
            println!("idle {cause} {}", waited.as_nanos());
        }
    }
    server.kernel(); // ends the last wait
    drop(server.request.take());
    end(server.session);
}

/// Sleeps; says for how long.
fn sleep() -> Duration {
    let begin = Instant::now();
    std::thread::sleep(WAIT);
    begin.elapsed()
}

impl Server {
    fn request_comes(&mut self) {
        let id = format!("r{}", self.requests);
        self.requests += 1;
        self.request = Some(async_span!("request", "request", request_id = id.as_str()));
    }

    /// Runs a kernel, and waits for it.
    fn kernel(&mut self) {
        self.session.launch("matmul", 0, self.launches, &[]);
        self.session.synchronize();
        self.launches += 1;
    }

    /// Waits for one cause, and ends that with a kernel.
    fn wait(&mut self, cause: &str) -> Duration {
        let waited = match cause {
            "no_request" => {
                drop(self.request.take());
                let waited = sleep();
                self.request_comes();
                waited
            }
            "frontend" => counted(0, 0),
            "not_schedulable" => counted(0, 3),
            "scheduling" => {
                let _span = span!("scheduler", "scheduler.schedule");
                sleep()
            }
            "output" => {
                let _span = span!("scheduler", "scheduler.update_from_output");
                sleep()
            }
            "ipc" => {
                let _span = span!("executor", "executor.execute_model");
                sleep()
            }
            "gc" => {
                let _span = span!("python", "gc.collect");
                sleep()
            }
            "preparing" | "launch_gap" | "sampling" => return self.step(cause),
            _ => sleep(),
        };
        self.kernel();
        waited
    }

    /// A step that waits before its kernels, between them, or behind them.
    fn step(&mut self, cause: &str) -> Duration {
        let _span = span!("worker", "WorkerProcess.execute_step");
        let mut waited = Duration::ZERO;
        if cause == "preparing" {
            waited = sleep();
        }
        self.kernel();
        if cause != "preparing" {
            waited = sleep();
        }
        if cause == "launch_gap" {
            self.kernel();
        }
        waited
    }
}

/// Sleeps with so many requests in the engine, then there is one again.
fn counted(running: u64, waiting: u64) -> Duration {
    counter!("requests", running = running, waiting = waiting);
    let waited = sleep();
    counter!("requests", running = 1, waiting = 0);
    waited
}
