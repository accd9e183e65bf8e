//! nginx: a master that starts workers without root's rights, and new ones when it reloads its configuration.

use super::subject::{MODE, Subject, Way};
use c_programs::{Running, Trace, is_root, signal};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

fn configure(work: &Path) {
    fs::create_dir_all(work.join("www")).unwrap();
    fs::write(work.join("www/page"), "a page\n".repeat(5000)).unwrap();
    let here = work.display();
    let configuration = format!("daemon off; worker_processes 2; user nobody nogroup; pid nginx.pid; error_log error.log notice;
events {{ worker_connections 64; }}
http {{
  access_log off; sendfile on;
  client_body_temp_path tmp/a; proxy_temp_path tmp/b; fastcgi_temp_path tmp/c; uwsgi_temp_path tmp/d; scgi_temp_path tmp/e;
  server {{
    listen unix:{here}/socket;
    location = /hello {{ return 200 'hello'; }}
    location / {{ root {here}/www; }}
  }}
}}");
    fs::write(work.join("nginx.conf"), configuration).unwrap();
}

/// Returns the response to a request without its time-dependent parts.
fn get(work: &Path, path: &str) -> Option<String> {
    let mut connection = UnixStream::connect(work.join("socket")).ok()?;
    write!(connection, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    let of_time = |line: &&str| {
        let is = |name| line.starts_with(name);
        !(is("Date: ") || is("Last-Modified: ") || is("ETag: "))
    };
    Some(answer.lines().filter(of_time).collect())
}

fn answers(work: &Path) -> Option<Vec<String>> {
    let paths = ["/hello", "/page", "/nothing"];
    paths.iter().map(|path| get(work, path)).collect()
}

/// Returns the lines of the error log that contain this text.
fn logged(work: &Path, what: &str) -> usize {
    let log = fs::read_to_string(work.join("error.log")).unwrap_or_default();
    log.lines().filter(|line| line.contains(what)).count()
}

/// Waits for the server's response, makes it reload its configuration, and waits until the first workers have exited.
fn serve(server: &mut Running, work: &Path) -> (Vec<String>, Vec<String>) {
    let before = server.wait_for(|| answers(work));
    for _ in 0..20 {
        assert_eq!(answers(work).unwrap(), before);
    }
    let master = fs::read_to_string(work.join("nginx.pid")).unwrap();
    signal("HUP", master.trim());
    server.wait_for(|| (logged(work, "exited with code 0") >= 2).then_some(()));
    let after = answers(work).unwrap();
    signal("QUIT", master.trim());
    (before, after)
}

fn assert_served(subject: &Subject, way: Way, environment: &[(&str, &str)]) -> Vec<String> {
    let work = subject.work(way);
    configure(&work);
    let prefix = work.display().to_string();
    let arguments = ["-p", &prefix, "-c", "nginx.conf", "-e", "error.log"];
    let mut command = subject.command(way, "nginx", &arguments);
    let mut server = Running::start(command.envs(environment.iter().copied()));
    let (before, after) = serve(&mut server, &work);
    let ended = server.end();
    assert_eq!(ended.code, 0, "{way:?}: {ended:?}");
    assert_eq!(after, before, "{way:?}");
    for (what, times) in [
        ("exited with code 0", 4), // each worker
        ("[alert]", 0),
        ("[crit]", 0),
        ("[emerg]", 0),
        ("exited on signal", 0),
    ] {
        assert_eq!(logged(&work, what), times, "{way:?}: {what}");
    }
    before
}

fn subject(test: &str) -> Option<Subject> {
    Subject::new(test, "nginx").filter(|_| is_root(test))
}

#[test]
fn nginx_serves_reloads_and_ends_and_its_workers_record_where_their_group_may_write() {
    let test = "nginx_serves_reloads_and_ends_and_its_workers_record_where_their_group_may_write";
    let late = ("SA_TEST_LATE", "1");
    let Some(allowed) = subject(test) else { return };
    let mut expected = None;
    for way in Way::ALL {
        if way == Way::Recording {
            allowed.let_a_group_write();
        }
        let answers = assert_served(&allowed, way, &[late, MODE]);
        assert!(answers[0].ends_with("hello"), "{answers:?}");
        assert_eq!(&answers, expected.get_or_insert(answers.clone()));
        assert_eq!(logged(&allowed.work(way), "sa-profile"), 0, "{way:?}");
        allowed.assert_unnoticed(way);
    }
    let processes = allowed.assert_whole().processes().len();
    assert_eq!(processes, 5, "the master and four workers");

    // Workers that launch before they change their user continue to record in a directory of root.
    let Some(early) = subject(test) else { return };
    let answers = assert_served(&early, Way::Recording, &[]);
    assert_eq!(Some(answers), expected);
    assert_eq!(logged(&early.work(Way::Recording), "sa-profile"), 0);
    early.assert_no_process_left();
    assert_eq!(early.assert_whole().processes().len(), 5);

    // Workers that first launch after they have changed their user may not write to that directory. They serve nevertheless.
    let Some(refused) = subject(test) else { return };
    let answers = assert_served(&refused, Way::Recording, &[late]);
    assert_eq!(Some(answers), expected);
    let lines = logged(&refused.work(Way::Recording), "sa-profile: ");
    assert!(lines <= 4, "{lines} lines of four workers");
    refused.assert_no_process_left();
    let trace = Trace::with_losses(&refused.ground.run());
    assert_eq!(trace.processes().len(), 1, "the master");
}
