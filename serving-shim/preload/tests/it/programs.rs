//! Real programs below the preload: what they say and how they end is the same with it and without it, nothing of ours stays behind, and what they record is whole.
//!
//! They ask nothing of an NPU, so with the preload alone they record nothing. `inside.c` makes them record: each of their processes launches at its start, at its forks and whenever it waits.

use crate::ground::{Ended, Ground, end, preload};
use crate::trace::Trace;
use std::fs;
use std::process::Command;

/// What `inside.c` calls.
const LAUNCH: &str = "aclrtLaunchKernel";

/// Forks for nearly everything it does, and waits for its children in a signal handler.
const BASH: &str = r#"
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

/// Pools of processes, made in each of the three ways, and ended both ways.
const PYTHON: &str = "
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
    print(os.listdir('.'), sorted(name for name in os.environ if name.startswith('PY')))
    sys.exit(6)
";

/// Runs a program plain, with the preload alone and with each of its processes launching. Returns how it ends in all of them; at least so many processes have
/// recorded.
fn compare(program: &str, script: &str, processes: usize) -> Ended {
    let ground = Ground::new();
    ground.library("libascendcl.so", "quiet_acl.c", &[] as &[&str]);
    ground.library("libinside.so", "inside.c", &["-l:libascendcl.so"]);
    let (work, file, ledger) = (
        ground.path("work"),
        ground.path("script"),
        ground.path("ledger"),
    );
    fs::create_dir(&work).unwrap();
    fs::write(&file, script).unwrap();
    fs::write(&ledger, [0; 16]).unwrap();
    let run = |mut command: Command| end(command.arg(&file).current_dir(&work));
    let plain = run(ground.command(program));
    assert_eq!(run(ground.recorded(program)), plain);
    assert!(!ground.run().exists(), "made a run directory");
    let preloads = format!("{}:{}", preload().display(), ground.text("libinside.so"));
    let mut command = ground.recorded(program);
    // The run's name, as sa-profile run gives it: an exec gives up the lock by which others find the run.
    command
        .env("LD_PRELOAD", preloads)
        .env("SA_PROFILE_RUN", "one");
    command.env("SA_TEST_LEDGER", &ledger);
    assert_eq!(run(command), plain);
    assert_eq!(fs::read_dir(work).unwrap().count(), 0, "left a file");
    // Each launch that returned is in the trace, and viewers lose nothing of it.
    let (trace, lost) = Trace::with_losses(&ground.run());
    let ledger = fs::read(ledger).unwrap();
    let word = |at: usize| u64::from_ne_bytes(ledger[at..at + 8].try_into().unwrap());
    let (begun, returned) = (word(0), word(8));
    let recorded = (trace.count(LAUNCH) + trace.unfinished(LAUNCH).len()) as u64;
    assert!(
        returned > 0 && (returned..=begun).contains(&(recorded + lost)),
        "recorded {recorded}, lost {lost}, launched {returned} to {begun}"
    );
    let recording = trace.processes().len();
    assert!(recording >= processes, "{recording} processes recorded");
    plain
}

#[test]
fn bash_forks_many_children() {
    let ended = compare("bash", BASH, 75);
    assert_eq!(ended.code, 9);
    assert!(ended.stderr.ends_with("through\n"), "{ended:?}");
    assert!(ended.stdout.contains("failed 6\nDEPIP\n"), "{ended:?}");
}

#[test]
fn pools_of_python_processes() {
    let ended = compare("python3", PYTHON, 19);
    assert_eq!(ended.code, 6, "{ended:?}");
    assert!(ended.stdout.contains("forkserver 2646700\n"), "{ended:?}");
}
