//! nginx: a master that makes workers, who give up root's rights, and others when it is told to read its configuration again.

use super::subject::{Subject, Way};
use crate::ground::{Running, signal, skip};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// What the workers go on as; Debian's group of that user has another name elsewhere.
const NOBODY: u32 = 65534;

fn configure(work: &Path) {
    fs::create_dir_all(work.join("www")).unwrap();
    fs::write(work.join("www/page"), "a page\n".repeat(5000)).unwrap();
    let configuration = "daemon off; worker_processes 2; user nobody nogroup; pid nginx.pid; error_log error.log notice;
events { worker_connections 64; }
http {
  access_log off; sendfile on;
  client_body_temp_path tmp/a; proxy_temp_path tmp/b; fastcgi_temp_path tmp/c; uwsgi_temp_path tmp/d; scgi_temp_path tmp/e;
  server {
    listen unix:socket;
    location = /hello { return 200 'hello'; }
    location / { root www; }
  }
}";
    let here = work.display().to_string();
    let absolute = configuration
        .replace("unix:", &format!("unix:{here}/"))
        .replace("root www", &format!("root {here}/www"));
    fs::write(work.join("nginx.conf"), absolute).unwrap();
}

/// The answer to a request, without what depends on the time.
fn get(work: &Path, path: &str) -> Option<String> {
    let mut connection = UnixStream::connect(work.join("socket")).ok()?;
    write!(connection, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    let of_time = |line: &&str| {
        let is = |name| line.starts_with(name);
        !(is("Date: ") || is("Last-Modified: ") || is("ETag: "))
    };
    Some(
        answer
            .lines()
            .filter(of_time)
            .collect::<Vec<_>>()
            .join("\n"),
    )
}

fn answers(work: &Path) -> Option<Vec<String>> {
    let paths = ["/hello", "/page", "/nothing"];
    paths.iter().map(|path| get(work, path)).collect()
}

/// The lines of the error log that say this.
fn logged(work: &Path, what: &str) -> usize {
    let log = fs::read_to_string(work.join("error.log")).unwrap_or_default();
    log.lines().filter(|line| line.contains(what)).count()
}

/// Waits until the server has answered, makes it read its configuration again and waits for the first workers' end.
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
    let mut server = Running::of(command.envs(environment.iter().copied()));
    let (before, after) = serve(&mut server, &work);
    let ended = server.end();
    assert_eq!(
        (ended.code, after),
        (0, before.clone()),
        "{way:?}: {ended:?}"
    );
    assert_eq!(
        logged(&work, "exited with code 0"),
        4,
        "{way:?}: each worker"
    );
    for bad in ["[alert]", "[crit]", "[emerg]", "exited on signal"] {
        assert_eq!(logged(&work, bad), 0, "{way:?}: {bad}");
    }
    before
}

fn subject(test: &'static str) -> Option<Subject> {
    let subject = Subject::new(test, &["nginx"])?;
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        skip(test, "needs root");
        return None;
    }
    Some(subject)
}

#[test]
fn nginx_serves_reloads_and_ends() {
    let Some(subject) = subject("nginx_serves_reloads_and_ends") else {
        return;
    };
    let mut expected = None;
    for way in subject.all_ways() {
        let answers = assert_served(&subject, way, &[]);
        assert!(answers[0].ends_with("\nhello"), "{answers:?}");
        assert_eq!(&answers, expected.get_or_insert(answers.clone()));
        assert_eq!(logged(&subject.work(way), "sa-profile"), 0, "{way:?}");
        subject.assert_unnoticed(way);
    }
    let processes = subject.assert_whole(Way::Recording).processes().len();
    assert_eq!(processes, 5, "the master and four workers");
}

#[test]
fn workers_of_nginx_record_where_their_group_may_write() {
    let test = "workers_of_nginx_record_where_their_group_may_write";
    let (plain, way, late) = (Way::Plain, Way::Recording, ("SA_TEST_LATE", "1"));
    // Those who are another user by the time they first launch may not write there, and go on all the same.
    let Some(refused) = subject(test) else { return };
    let expected = assert_served(&refused, plain, &[]);
    assert_eq!(assert_served(&refused, way, &[late]), expected);
    let told = logged(&refused.work(way), "sa-profile: ");
    assert!(told <= 4, "{told} lines of four workers");
    refused.assert_no_process_left(way);
    assert_eq!(refused.trace(way).processes().len(), 1, "the master");

    let Some(allowed) = subject(test) else { return };
    let run = allowed.run(way);
    fs::create_dir(&run).unwrap();
    chown(&run, None, Some(NOBODY)).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o2770)).unwrap();
    assert_served(&allowed, plain, &[]);
    let answers = assert_served(&allowed, way, &[late, ("SA_PROFILE_MODE", "0660")]);
    assert_eq!(answers, expected);
    assert_eq!(logged(&allowed.work(way), "sa-profile"), 0);
    allowed.assert_unnoticed(way);
    let processes = allowed.assert_whole(way).processes().len();
    assert_eq!(processes, 5, "the master and four workers");
}
