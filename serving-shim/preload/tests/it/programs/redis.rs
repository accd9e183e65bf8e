//! Redis: an event loop, threads for input and output, and children that save what is in memory.

use super::subject::{Subject, Way};
use crate::ground::{Running, signal};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;

/// What is said to the server; it answers each line, and the last one by closing.
const WORDS: &str = "PING\r\nSET name value\r\nGET name\r\nINCR count\r\nRPUSH list a b c\r\nLRANGE list 0 -1\r\nEVAL \"return {1,'two',redis.call('GET','name')}\" 0\r\nNO-SUCH\r\nQUIT\r\n";

fn ask(socket: &Path, words: &str) -> Option<String> {
    let mut connection = UnixStream::connect(socket).ok()?;
    connection.write_all(words.as_bytes()).ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// What the server answers to one and to many at once, and after a child has saved it all.
fn answers(server: &mut Running, socket: &Path) -> Vec<String> {
    let first = server.wait_for(|| ask(socket, WORDS));
    let clients: Vec<_> = (0..6)
        .map(|n| {
            let socket = socket.to_owned();
            let set: String = (0..300).map(|m| format!("SET {n}-{m} {m}\r\n")).collect();
            thread::spawn(move || ask(&socket, &format!("{set}DBSIZE\r\nQUIT\r\n")).is_some())
        })
        .collect();
    assert!(clients.into_iter().all(|client| client.join().unwrap()));
    let saving = ask(socket, "BGSAVE\r\nQUIT\r\n").unwrap();
    server.wait_for(|| {
        let state = ask(socket, "INFO persistence\r\nQUIT\r\n")?;
        let saved = "rdb_bgsave_in_progress:0";
        let well = "rdb_last_bgsave_status:ok";
        (state.contains(saved) && state.contains(well)).then_some(())
    });
    vec![first, saving, ask(socket, "DBSIZE\r\nQUIT\r\n").unwrap()]
}

#[test]
fn redis_answers_saves_and_ends() {
    let Some(subject) = Subject::new("redis_answers_saves_and_ends", &["redis-server"]) else {
        return;
    };
    let mut expected = None;
    for way in subject.all_ways() {
        let socket = subject.work(way).join("socket");
        let options =
            "--port 0 --save --appendonly no --io-threads 2 --io-threads-do-reads yes --unixsocket";
        let mut arguments: Vec<&str> = options.split(' ').collect();
        arguments.insert(3, ""); // no saving by itself
        arguments.push(socket.to_str().unwrap());
        arguments.extend(["--pidfile", "pid"]);
        let mut server = subject.start(way, "redis-server", &arguments);
        let answers = answers(&mut server, &socket);
        assert!(answers[0].starts_with("+PONG"), "{answers:?}");
        assert_eq!(answers[2], ":1803\r\n+OK\r\n");
        assert_eq!(&answers, expected.get_or_insert(answers.clone()), "{way:?}");
        signal("TERM", &server.pid().to_string());
        let ended = server.end();
        assert_eq!(ended.code, 0, "{way:?}: {ended:?}");
        assert!(ended.stdout.contains("bye bye"), "{way:?}: {ended:?}");
        assert!(!ended.stdout.contains("CRASHED"), "{way:?}: {ended:?}");
        subject.assert_unnoticed(way);
    }
    let trace = subject.assert_whole(Way::Recording);
    assert_eq!(
        trace.processes().len(),
        2,
        "the server and the child that saved"
    );
}
