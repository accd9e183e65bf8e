//! Programs from Debian under the preload: output and exit status are the same with and without it, nothing of ours is left over, and their recordings are complete.
//!
//! They do not use an NPU, so with only the preload they record nothing. `inside.c` makes them record: each of their processes launches when it starts, forks and waits.

mod nginx;
mod subject;

use subject::{MODE, Subject, works};

/// bash forks for nearly everything it does, and waits for its children in a signal handler.
const FORKS: &str = r#"
jobs=()
for n in $(seq 60); do ( [ $((n % 10)) = 0 ] && exit 3; : ) & jobs+=($!); done
failed=0
for job in "${jobs[@]}"; do wait "$job" || failed=$((failed + 1)); done
echo "failed $failed"
echo piped | cat | tr a-z A-Z | rev
trap 'echo trapped' USR1
kill -USR1 $$
(kill -TERM $BASHPID) 2> /dev/null
echo "terminated $?"
exit 9"#;

/// Python's process pools, with all three start methods and both ways of ending.
const POOLS: &str = "
import multiprocessing, sys

def work(n):
    return n * n

if __name__ == '__main__':
    for method in ['fork', 'spawn', 'forkserver']:
        context = multiprocessing.get_context(method)
        with context.Pool(3) as pool:  # terminated at the end
            print(sum(pool.map(work, range(200))))
        pool = context.Pool(2)
        print(pool.apply(work, [7]))
        pool.close()
        pool.join()
    sys.exit(6)
";

/// Worker threads of node that end before the process does, and a child process.
const WORKERS: &str = "
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
if (isMainThread) {
  const workers = [1, 2, 3, 4].map((n) => new Promise((done) => {
    const worker = new Worker(__filename, { workerData: n });
    let sum;
    worker.on('message', (message) => { sum = message; });
    worker.on('exit', (code) => done(`${sum} ${code}`));
  }));
  Promise.all(workers).then((all) => {
    all.forEach((line) => console.log(line));
    console.log(require('child_process').spawnSync('sh', ['-c', 'exit 3']).status);
    const forever = new Worker('setInterval(() => {}, 1)', { eval: true });
    forever.on('online', () => forever.terminate().then((code) => { console.log('terminated', code); process.exit(8); }));
  });
} else {
  let sum = 0;
  const timer = setInterval(() => { sum += workerData; if (sum >= 10 * workerData) { parentPort.postMessage(sum); clearInterval(timer); } }, 1);
}
";

/// The script that other programs start, and its exit code and output.
const CHILDREN: &str = "for n in 1 2 3; do (exit $n); echo $?; done; echo done | cat; exit 7";
const SAID: (i32, &str) = (7, "1\n2\n3\ndone\n");
const SANDBOX: &str = "bwrap --bind / / --dev /dev --proc /proc --unshare-pid --unshare-ipc --unshare-uts --die-with-parent --";
const WITHOUT_RIGHTS: &str = "setpriv --no-new-privs --bounding-set -all --inh-caps -all --reuid 65534 --regid 65534 --clear-groups";

/// Runs a program with a script in every way. `below` is a command that starts the program and may not work on every machine. Asserts exit code, output, and
/// the minimum numbers of recording processes and threads.
fn check(
    test: &str,
    [below, program, script]: [&str; 3],
    expected: (i32, &str),
    least: (usize, usize),
) {
    let gives_up_rights = below.starts_with("setpriv");
    let [mut command, program]: [Vec<&str>; 2] =
        [below, program].map(|words| words.split_whitespace().collect());
    let Some(subject) = Subject::new(test, program[0]) else {
        return;
    };
    if !command.is_empty() && !works(&command) {
        return c_programs::skip(test, &format!("{} does not work here", command[0]));
    }
    let file = subject.ground.text("script");
    std::fs::write(&file, script).unwrap();
    command.extend(program);
    command.push(&file);
    if gives_up_rights {
        subject.let_a_group_write();
    }
    let mode: &[_] = if gives_up_rights { &[MODE] } else { &[] };
    let ended = subject.assert_the_same(mode, command[0], &command[1..]);
    assert_eq!((ended.code, &*ended.stdout), expected, "{ended:?}");
    let trace = subject.assert_whole();
    let found = (trace.processes().len(), trace.threads().len());
    assert!(found.0 >= least.0 && found.1 >= least.1, "{found:?}");
}

c_programs::cases! {
    check;
    bash_forks_many_children: (["", "bash", FORKS], (9, "failed 6\nDEPIP\ntrapped\nterminated 143\n"), (65, 65));
    pools_of_python_processes: (["", "python3 -S", POOLS], (6, "2646700\n49\n2646700\n49\n2646700\n49\n"), (16, 16));
    worker_threads_of_node: (["", "node", WORKERS], (8, "10 0\n20 0\n30 0\n40 0\n3\nterminated 1\n"), (2, 6));
    /// It starts threads and handles signals without the C library.
    a_dynamic_program_in_go: (["", "gron", "[1,2]"], (0, "json = [];\njson[0] = 1;\njson[1] = 2;\n"), (1, 1));
    /// It is not preloaded, but its child is.
    a_static_program_in_go_that_executes_another: (["gosu root", "sh", CHILDREN], SAID, (6, 6));
    /// It creates its child without the C library, in a new pid namespace.
    a_sandbox_of_bubblewrap: ([SANDBOX, "sh", CHILDREN], SAID, (6, 6));
    a_user_namespace_is_entered: (["unshare --user --map-root-user", "sh", CHILDREN], SAID, (6, 6));
    rights_are_given_up: ([WITHOUT_RIGHTS, "sh", CHILDREN], SAID, (6, 6));
    /// It stops each thread and sees each signal.
    below_strace: (["strace -f -o /dev/null", "sh", CHILDREN], SAID, (6, 6));
}
