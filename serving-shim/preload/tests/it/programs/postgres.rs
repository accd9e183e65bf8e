//! PostgreSQL: a process for each connection, others for what goes on behind, and shared memory.

use super::subject::{Subject, Way, find};
use crate::ground::{Running, end, signal};
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;

const QUESTIONS: &str = "select count(*), sum(n) from generate_series(1, 20000) n;
create temporary table words (word text); insert into words values ('a'), ('b'); select string_agg(word, ',') from words;
set force_parallel_mode = on; set max_parallel_workers_per_gather = 2; select count(*) > 100 from pg_class;
select 1 / 0;";

/// PostgreSQL refuses to run as root; the user and group whom Debian makes for it, where we are root.
fn own_user() -> Option<(u32, u32)> {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find(|line| line.starts_with("postgres:"))?;
    let mut numbers = line.split(':').skip(2).map(|id| id.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn as_its_user(command: &mut Command) -> &mut Command {
    match own_user() {
        Some((user, group)) => command.uid(user).gid(group),
        None => command,
    }
}

fn give(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    if let Some((user, group)) = own_user() {
        chown(folder, Some(user), Some(group)).unwrap();
    }
}

/// What a client is told.
fn ask(socket: &Path, questions: &str) -> Option<String> {
    let mut client = Command::new(find("psql").unwrap());
    client.args(["-X", "-A", "-t", "-U", "postgres", "-d", "postgres", "-h"]);
    let answer = client.arg(socket).args(["-c", questions]).output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let refused = answer.status.code() == Some(2);
    (!refused).then(|| text(&answer.stdout) + &text(&answer.stderr))
}

/// The answers of one session, and of several at once.
fn answers(server: &mut Running, socket: &Path) -> Vec<String> {
    server.wait_for(|| ask(socket, "select 1"));
    let sessions: Vec<_> = (0..3)
        .map(|_| {
            let socket = socket.to_owned();
            thread::spawn(move || {
                let each = QUESTIONS.lines().map(|line| ask(&socket, line).unwrap());
                each.collect::<Vec<_>>().concat()
            })
        })
        .collect();
    let said = sessions.into_iter().map(|session| session.join().unwrap());
    said.collect()
}

#[test]
fn postgres_answers_its_clients_and_ends() {
    let test = "postgres_answers_its_clients_and_ends";
    let Some(subject) = Subject::new(test, &["initdb", "postgres", "psql"]) else {
        return;
    };
    let cluster = subject.ground.path("cluster");
    give(&cluster);
    let data = cluster.to_str().unwrap();
    let options = "-U postgres -A trust -E UTF8 --locale=C --no-sync --no-instructions -D";
    let mut initdb = Command::new(find("initdb").unwrap());
    let made = end(as_its_user(
        initdb.args(options.split(' ')).arg(data).current_dir("/"),
    ));
    assert_eq!(made.code, 0, "{made:?}");
    let mut expected = None;
    for way in Subject::WAYS {
        let (work, run) = (subject.work(way), subject.run(way));
        give(&work);
        let socket = work.to_str().unwrap();
        let settings = "-c fsync=off -c shared_buffers=8MB -c listen_addresses= -k";
        let arguments = [
            &["-D", data][..],
            &settings.split(' ').collect::<Vec<_>>(),
            &[socket],
        ];
        let mut command = subject.command(way, "postgres", &arguments.concat());
        if way.records() {
            give(&run);
        }
        let mut server = Running::of(as_its_user(&mut command));
        let answers = answers(&mut server, &work);
        assert!(answers[0].contains("20000|200010000\n"), "{answers:?}");
        assert!(answers[0].contains("division by zero"), "{answers:?}");
        assert_eq!(&answers, expected.get_or_insert(answers.clone()), "{way:?}");
        signal("INT", &server.pid().to_string());
        let ended = server.end();
        assert_eq!(ended.code, 0, "{way:?}: {ended:?}");
        assert!(!ended.stderr.contains("sa-profile"), "{way:?}: {ended:?}");
        assert!(!ended.stderr.contains("terminated by signal"), "{ended:?}");
        subject.assert_unnoticed(way);
    }
    let processes = subject.assert_whole(Way::Recording).processes().len();
    assert!(processes >= 12, "{processes} processes recorded");
}
