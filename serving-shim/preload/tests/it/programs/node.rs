//! Node: worker threads that end before the process does, and a child process.

use super::subject::{Subject, Way};

const SCRIPT: &str = "
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

#[test]
fn worker_threads_of_node() {
    let Some(subject) = Subject::new("worker_threads_of_node", &["node"]) else {
        return;
    };
    let script = subject.ground.path("workers.js");
    std::fs::write(&script, SCRIPT).unwrap();
    let ended = subject.assert_the_same("node", &[script.to_str().unwrap()]);
    let said = "1: 10 0\n2: 20 0\n3: 30 0\n4: 40 0\nchild 3\nterminated 1\n";
    assert_eq!((ended.code, ended.stdout.as_str()), (8, said), "{ended:?}");
    let trace = subject.assert_whole(Way::Recording);
    assert!(trace.threads().len() >= 6, "{:?}", trace.threads());
}
