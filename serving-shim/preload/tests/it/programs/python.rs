//! Python's pools of processes, made in each of the three ways, and ended both ways.

use super::subject::{Subject, Way};

const SCRIPT: &str = "
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

#[test]
fn pools_of_python_processes() {
    let Some(subject) = Subject::new("pools_of_python_processes", &["python3"]) else {
        return;
    };
    let script = subject.ground.path("pools.py");
    std::fs::write(&script, SCRIPT).unwrap();
    let ended = subject.assert_the_same("python3", &["-S", script.to_str().unwrap()]);
    assert_eq!(ended.code, 6, "{ended:?}");
    assert!(ended.stdout.contains("forkserver 2646700\n"), "{ended:?}");
    let processes = subject.assert_whole(Way::Recording).processes().len();
    assert!(processes >= 19, "{processes} processes recorded");
}
