//! Commands that run to their end by themselves.

use super::subject::{Subject, Way, works};
use crate::ground::{Ended, skip};

/// A command, and what it says and records.
struct Case<'a> {
    /// What must be installed; the first one is the command.
    programs: &'a [&'a str],
    /// A file that it reads, by name and text; its path is the last argument.
    file: Option<(&'a str, &'a str)>,
    arguments: &'a [&'a str],
    /// How many of the arguments must work here before a program that does nothing.
    tried: usize,
    code: i32,
    says: fn(&Ended) -> bool,
    /// The least numbers of processes and threads that record.
    recorded: (usize, usize),
}

const CASE: Case<'_> = Case {
    programs: &[],
    file: None,
    arguments: &[],
    tried: 0,
    code: 0,
    says: |_| true,
    recorded: (1, 1),
};

impl Case<'_> {
    /// Runs the command in each way.
    fn check(&self, test: &'static str) {
        let Some(subject) = Subject::new(test, self.programs) else {
            return;
        };
        let program = self.programs[0];
        if self.tried > 0 && !works(program, &self.arguments[..self.tried]) {
            return skip(test, &format!("{program} does not work here"));
        }
        let mut arguments = self.arguments.to_vec();
        let path;
        if let Some((name, text)) = self.file {
            std::fs::write(subject.ground.path(name), text).unwrap();
            path = subject.ground.text(name);
            arguments.push(&path);
        }
        let ended = subject.assert_the_same(&[], program, &arguments);
        assert_eq!(ended.code, self.code, "{ended:?}");
        assert!((self.says)(&ended), "{ended:?}");
        let trace = subject.assert_whole(Way::Recording);
        let recorded = (trace.processes().len(), trace.threads().len());
        let (processes, threads) = self.recorded;
        assert!(
            recorded.0 >= processes && recorded.1 >= threads,
            "{recorded:?}"
        );
    }
}

const POOLS: &str = "
import multiprocessing, os, sys, threading

def work(n):
    return n * n

if __name__ == '__main__':
    for method in ['fork', 'spawn', 'forkserver']:
        context = multiprocessing.get_context(method)
        with context.Pool(3) as pool:  # terminated at the end
            print(method, sum(pool.map(work, range(200))))
        pool = context.Pool(2)
        print(method, pool.apply(work, [7]))
        pool.close()
        pool.join()
        process = context.Process(target=sys.exit, args=[5])
        process.start()
        process.join()
        print(method, process.exitcode)
    thread = threading.Thread(target=lambda: print('thread'))
    thread.start()
    thread.join()
    sys.exit(6)
";

/// Pools that are made in each of the three ways, and ended both ways.
#[test]
fn pools_of_python_processes() {
    Case {
        programs: &["python3"],
        file: Some(("pools.py", POOLS)),
        arguments: &["-S"],
        code: 6,
        says: |ended| ended.stdout.contains("forkserver 2646700\n"),
        recorded: (19, 1),
        ..CASE
    }
    .check("pools_of_python_processes");
}

const WORKERS: &str = "
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
if (isMainThread) {
  const workers = [1, 2, 3, 4].map((n) => new Promise((done) => {
    const worker = new Worker(__filename, { workerData: n });
    let sum;
    worker.on('message', (message) => { sum = message; });
    worker.on('exit', (code) => done(`${n}: ${sum} ${code}`));
  }));
  Promise.all(workers).then((all) => {
    all.forEach((line) => console.log(line));
    const child = require('child_process').spawnSync('sh', ['-c', 'echo child; exit 3']);
    console.log(child.stdout.toString().trim(), child.status);
    const forever = new Worker('setInterval(() => {}, 1)', { eval: true });
    forever.on('online', () => forever.terminate().then((code) => { console.log('terminated', code); process.exit(8); }));
  });
} else {
  let sum = 0;
  const timer = setInterval(() => { sum += workerData; if (sum >= 10 * workerData) { parentPort.postMessage(sum); clearInterval(timer); } }, 1);
}
";

/// Threads that end before the process does, and a child process.
#[test]
fn worker_threads_of_node() {
    Case {
        programs: &["node"],
        file: Some(("workers.js", WORKERS)),
        code: 8,
        says: |ended| ended.stdout == "1: 10 0\n2: 20 0\n3: 30 0\n4: 40 0\nchild 3\nterminated 1\n",
        recorded: (1, 6),
        ..CASE
    }
    .check("worker_threads_of_node");
}

const FORKS: &str = r#"
jobs=()
for n in $(seq 60); do ( [ $((n % 10)) = 0 ] && exit 3; : ) & jobs+=($!); done
failed=0
for job in "${jobs[@]}"; do wait "$job" || failed=$((failed + 1)); done
echo "failed $failed"
echo piped | cat | tr a-z A-Z | rev
for n in 1 2 3 4 5; do /bin/true; /bin/false || echo "false $?"; done
trap 'echo trapped' USR1
kill -USR1 $$
(kill -TERM $BASHPID) 2> /dev/null
echo "terminated $?"
coproc cat
echo through >&"${COPROC[1]}"
read -r line <&"${COPROC[0]}"
echo "$line" >&2
exec {COPROC[1]}>&-
wait
exit 9"#;

/// A shell forks for nearly everything it does, and waits for its children in a signal handler.
#[test]
fn bash_forks_many_children() {
    Case {
        programs: &["bash"],
        arguments: &["-c", FORKS],
        code: 9,
        says: |ended| {
            ended.stderr.ends_with("through\n") && ended.stdout.contains("failed 6\nDEPIP\n")
        },
        recorded: (75, 1),
        ..CASE
    }
    .check("bash_forks_many_children");
}

/// Go starts threads and handles signals by itself, past the C library.
#[test]
fn a_dynamic_program_in_go() {
    let numbers: Vec<String> = (0..2000).map(|n| format!("{{\"n\":{n}}}")).collect();
    Case {
        programs: &["gron"],
        file: Some(("numbers.json", &format!("[{}]", numbers.join(",")))),
        says: |ended| ended.stdout.lines().count() == 4001,
        ..CASE
    }
    .check("a_dynamic_program_in_go");
}

/// A static program is not preloaded, what it starts is.
#[test]
fn a_static_program_in_go_that_executes_another() {
    let own = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
    let script = "(echo inside; exit 4); echo $?; exit 6";
    Case {
        programs: &["gosu", "sh"],
        arguments: &[&own, "sh", "-c", script],
        code: 6,
        says: |ended| ended.stdout == "inside\n4\n",
        ..CASE
    }
    .check("a_static_program_in_go_that_executes_another");
}

/// bubblewrap makes its child past the C library, in a pid namespace of its own.
#[test]
fn a_sandbox_of_bubblewrap() {
    let script =
        "echo inside $$ >&2; (exit 4); echo $?; for n in 1 2 3; do /bin/true & done; wait; exit 5";
    let sandbox = "--bind / / --dev /dev --proc /proc --unshare-pid --unshare-ipc --unshare-uts --die-with-parent --";
    let sandbox: Vec<&str> = sandbox.split(' ').collect();
    Case {
        programs: &["bwrap", "bash"],
        arguments: &[&sandbox[..], &["bash", "-c", script]].concat(),
        tried: sandbox.len(),
        code: 5,
        says: |ended| ended.stdout == "4\n",
        recorded: (6, 1),
        ..CASE
    }
    .check("a_sandbox_of_bubblewrap");
}

#[test]
fn a_user_namespace_is_entered_as_without_the_preload() {
    let script = "id -u; (exit 4); echo $?; exit 5";
    Case {
        programs: &["unshare", "sh", "id"],
        arguments: &["--user", "--map-root-user", "sh", "-c", script],
        tried: 2,
        code: 5,
        says: |ended| ended.stdout == "0\n4\n",
        ..CASE
    }
    .check("a_user_namespace_is_entered_as_without_the_preload");
}

/// A tracer stops each thread of a program and sees each of its signals.
#[test]
fn below_strace() {
    let script = "for n in 1 2 3 4 5; do (exit $n); echo $?; done; echo done | cat; exit 7";
    Case {
        programs: &["strace", "bash"],
        arguments: &["-f", "-o", "/dev/null", "bash", "-c", script],
        tried: 3,
        code: 7,
        says: |ended| ended.stdout == "1\n2\n3\n4\n5\ndone\n",
        ..CASE
    }
    .check("below_strace");
}
