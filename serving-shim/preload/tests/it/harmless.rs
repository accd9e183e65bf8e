//! Programs that touch no NPU notice nothing: output, errors and exit code are the same, and no directory is made.

use crate::ground::{Ground, end};
use std::process::Command;

/// The same command plain and preloaded with recording on, in a directory each: no difference and no trace of us.
fn assert_unnoticed(program: &str, arguments: &[&str]) {
    let ground = Ground::new();
    let run = |command: &mut Command| end(command.args(arguments));
    let plain = run(&mut ground.command(program));
    let recorded = run(&mut ground.recorded(program));
    assert_eq!(recorded, plain, "{program}");
    assert!(!ground.run().exists(), "{program} made a run directory");
}

#[test]
fn shells_and_their_children_notice_nothing() {
    let script = "echo out; echo err >&2; (exit 3); echo $?; sh -c 'kill -TERM $$'; echo $?; cat /dev/null | wc -l; exit 5";
    assert_unnoticed("bash", &["-c", script]);
    assert_unnoticed(
        "sh",
        &[
            "-c",
            "env | grep -v '^LD_PRELOAD=\\|^SA_PROFILE' | sort | wc -l",
        ],
    );
}

#[test]
fn a_compiler_notices_nothing() {
    let ground = Ground::new();
    std::fs::write(ground.path("good.c"), "int main(void) { return 0; }").unwrap();
    std::fs::write(ground.path("bad.c"), "int main(void) { return x; }").unwrap();
    let compile = |mut command: Command, name: &str| end(command.args(["-c", name, "-o", "out.o"]));
    for name in ["good.c", "bad.c"] {
        let plain = compile(ground.command("gcc"), name);
        assert_eq!(compile(ground.recorded("gcc"), name), plain);
    }
    assert!(!ground.run().exists());
}

#[test]
fn python_notices_nothing() {
    let script = "import sys, os, threading, subprocess, ctypes, time
thread = threading.Thread(target=lambda: print('thread'))
thread.start(); thread.join()
until = time.monotonic() + 20
while len(os.listdir('/proc/self/task')) > 1 and time.monotonic() < until: time.sleep(.01) # it goes a moment later
print(sorted(name for name in os.environ if name.startswith('PY')))
print(subprocess.run(['true']).returncode, os.listdir('/proc/self/task').__len__())
sys.stdout.flush()
pid = os.fork()
if pid == 0: os._exit(3)
print(os.waitpid(pid, 0)[1] >> 8)
ctypes.CDLL(None)
print('err', file=sys.stderr)
sys.exit(6)";
    assert_unnoticed("python3", &["-S", "-c", script]);
}
