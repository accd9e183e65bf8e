//! Tests `sa-profile sql`: what the engine gets, that nothing is left behind, and that hostile names and paths do no harm.

use crate::program::{Ended, Ground, Started};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ENGINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/sql/python");
/// Exit code of the script if an engine is not available.
const NOT_HERE: i32 = 3;
/// A name that could reverse the text direction, clear a terminal, and end a string.
const HOSTILE: &str = "it's \u{202e}\u{1b}[2J, \"so\"";
/// The same name after invisible characters were made visible.
const SPELLED: &str = "it's <U+202E><U+001B>[2J, \"so\"";

/// Writes a trace with three spans. One of them has a hostile name.
fn write_trace(path: &Path) {
    let span = |ts: u64, name: &str| json!({"ph": "X", "pid": 7, "tid": 1, "ts": ts, "dur": 5, "name": name, "args": {"request_id": name}});
    let lines = [span(1, "step"), span(10, "step"), span(20, HOSTILE)];
    fs::write(path, json!({ "traceEvents": lines }).to_string()).unwrap();
}

/// Creates a folder with a trace and a folder for temporary files.
fn ground() -> Ground {
    let ground = Ground::new();
    write_trace(&ground.path("trace.json"));
    fs::create_dir(ground.path("scratch")).unwrap();
    ground
}

/// Returns `sa-profile sql` with this `PATH`.
fn sql(ground: &Ground, path: &str, words: &[&str]) -> Command {
    let mut command = ground.command(&[&["sql"], words].concat());
    command.env("PATH", path);
    command.env("TMPDIR", ground.path("scratch"));
    command
}

/// Runs a statement with this `PATH`.
fn run_sql(ground: &Ground, path: &str, words: &[&str]) -> Ended {
    Started::spawn(&mut sql(ground, path, words)).end()
}

#[test]
fn the_engine_gets_statement_and_tables_which_go_afterwards() {
    let ground = ground();
    let path = ground
        .path_with_python("shift 2; echo \"$@\"; for last; do :; done; ls \"$last\"; cat; exit 1");
    let options = [
        "--engine",
        "spark",
        "--master",
        "spark://h:1",
        "--format",
        "csv",
    ];
    fs::write(ground.path("query.sql"), "SELECT 1").unwrap();
    let ended = run_sql(
        &ground,
        &path,
        &[&options[..], &["trace.json", "query.sql"]].concat(),
    );
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), ""));
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let first = "--format csv --engine spark --master spark://h:1 -- ";
    let tables = lines[0].strip_prefix(first).unwrap();
    let scratch = ground.path("scratch/sa-profile-sql-").display().to_string();
    assert!(tables.starts_with(&scratch), "{lines:?}");
    let has = |table| lines.contains(&table);
    assert!(has("slice") && has("metadata"), "{lines:?}");
    assert_eq!(lines.last(), Some(&"SELECT 1"));
    assert_eq!(paths(&ground.path("scratch")), [""; 0]);
}

#[test]
fn what_cannot_be_run_is_said() {
    let ground = ground();
    let run = |run: &str, words: &str| run_sql(&ground, "/none", &[run, words]);
    let unknown = run("trace.json", "nmaes");
    assert_eq!(unknown.code, Some(2));
    unknown.says(&[
        "names, recorded, request_parts, request_summary",
        "found \"nmaes\"",
    ]);
    assert_eq!(run("/no/run", "names").code, Some(2));
    let without = "python3: expected Python 3.10 or newer, found none";
    assert_eq!(run("trace.json", "names"), Ended::refusal(without));
}

/// The Python of the active virtual environment is preferred to the one in `PATH`.
#[test]
fn the_active_environment_is_used() {
    let ground = ground();
    let path = ground.path_with_python("echo other");
    fs::create_dir_all(ground.path("active/bin")).unwrap();
    ground.write_script("active/bin/python3", "echo active");
    let mut sql = sql(&ground, &path, &["trace.json", "SELECT 1"]);
    let ended = Started::spawn(sql.env("VIRTUAL_ENV", ground.path("active"))).end();
    assert_eq!(ended.stdout, "active\n");
}

/// If a signal arrives while tables are written, nothing is left of them, and nothing of an engine's files.
#[test]
fn a_signal_leaves_nothing_behind() {
    let ground = ground();
    let spans = (0..1_000_000)
        .map(|ts| format!(r#"{{"ph":"X","pid":1,"tid":1,"ts":{ts},"dur":1,"name":"n{ts}"}}"#));
    let spans: Vec<String> = spans.collect();
    fs::write(ground.path("long.json"), format!("[{}]", spans.join(","))).unwrap();
    let path = ground.path_with_python("touch \"$TMPDIR/left\"; exec sleep 60");
    let left = || paths(&ground.path("scratch"));
    for (run, has_begun) in [("long.json", "tables/.new-"), ("trace.json", "left")] {
        let started = Started::spawn(&mut sql(&ground, &path, &[run, "SELECT 1"]));
        started.wait_until(|| left().iter().any(|path| path.contains(has_begun)));
        started.signal("TERM");
        assert_ne!(started.end().code, Some(0));
        assert_eq!(left(), [""; 0], "{has_begun}");
    }
}

/// Lists everything in a folder.
fn paths(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        found.push(path.display().to_string());
        found.extend(paths(&path));
    }
    found
}

/// Returns the folder of an engine. Returns `None`, with a message, if it is not available.
fn path_with(engine: &str, test: &str) -> Option<String> {
    let output = Command::new(ENGINES).arg(engine).output().unwrap();
    if output.status.code() == Some(NOT_HERE) {
        eprint!(
            "SKIPPED {test}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        return None;
    }
    assert!(output.status.success());
    let python = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    Some(python.parent().unwrap().display().to_string())
}

#[test]
fn hostile_names_and_paths_are_taken_as_they_are() {
    let Some(path) = path_with("duckdb", "hostile_names_and_paths_are_taken_as_they_are") else {
        return;
    };
    let ground = ground();
    let folder = ground.path("it's [a] {b} *?\n\"c\"");
    fs::create_dir(&folder).unwrap();
    let [trace, tables] = ["trace.json", "tables"].map(|name| folder.join(name));
    let [trace, tables] = [trace.to_str().unwrap(), tables.to_str().unwrap()];
    fs::rename(ground.path("trace.json"), trace).unwrap();
    let made = ground.run(&["tables", "--to", tables, trace]);
    assert_eq!(made.code, Some(0), "{made:?}");
    // Python must not import a module from the working directory.
    fs::write(folder.join("csv.py"), "raise SystemExit(9)").unwrap();
    let run = |run: &str, words: &[&str]| {
        let mut sql = sql(&ground, &path, &[&[run], words].concat());
        Started::spawn(sql.current_dir(&folder)).end()
    };
    let by_name =
        "SELECT name, COUNT(*) AS n, MAX(NULL) AS nothing FROM slice GROUP BY name ORDER BY n DESC";
    for of in [trace, tables] {
        let rows = run(of, &[by_name, "--format", "json"]);
        assert_eq!((rows.code, rows.stderr.as_str()), (Some(0), ""));
        let rows: Value = serde_json::from_str(&rows.stdout).unwrap();
        let expected = json!([{"name": "step", "n": 2, "nothing": null}, {"name": SPELLED, "n": 1, "nothing": null}]);
        assert_eq!(rows, expected);
    }
    let table = run(tables, &[by_name]).stdout;
    let expected = "name                            n  nothing\nstep                            2\nit's <U+202E><U+001B>[2J, \"so\"  1\n";
    assert_eq!(table, expected);
    // Characters that the statement itself creates are made visible, too.
    let made = run(tables, &["SELECT CHR(27) || '[2J' || CHR(8238) AS made"]);
    assert_eq!(made.stdout, "made\n<U+001B>[2J<U+202E>\n");
    let csv = run(tables, &[by_name, "--format", "csv"]).stdout;
    let quoted = SPELLED.replace('"', "\"\"");
    assert_eq!(csv, format!("name,n,nothing\nstep,2,\n\"{quoted}\",1,\n"));
    let refused = run(tables, &["SELECT nmae FROM slice"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    let why = "sa-profile: sql: duckdb: ";
    assert!(refused.stderr.starts_with(why), "{refused:?}");
    // Tables without rows have their columns, too.
    for (table, column) in [("counter", "value"), ("request", "e2e_us")] {
        let count = format!("SELECT COUNT(*) AS n, MAX({column}) AS most FROM {table}");
        let empty = run(tables, &[&count, "--format", "csv"]);
        assert_eq!(empty.stdout, "n,most\n0,\n", "{table}");
    }
    assert_eq!(run(tables, &["losses", "--format", "json"]).stdout, "[]\n");
}

/// Python functions that write tables by hand.
const WRITE: &str = r#"
import duckdb, os, sys
def write(table, host, query):
    os.makedirs(f"{table}/host={host}", exist_ok=True)
    duckdb.execute(f"COPY ({query}) TO '{table}/host={host}/all.parquet' (FORMAT parquet)")
def write_host(number, host, version, base):
    if version:
        write("metadata", host, f"SELECT 'schema_version' AS name, CAST(NULL AS VARCHAR) AS str_value, {version}::BIGINT AS int_value")
    write("clock", host, f"SELECT {number}::BIGINT AS host_id, NULL::VARCHAR AS boot_id, {base}::BIGINT AS base_unix_ns, 0::BIGINT AS offset_ns, 0::BIGINT AS uncertainty_ns")
    # A column of VALUES may be null, and a constant may not.
    of_version_2 = ", last_ns, clock_uncertainty_ns FROM (VALUES (70::BIGINT, 80::BIGINT)) t(last_ns, clock_uncertainty_ns)" if version != 1 else ""
    write("process", host, f"SELECT {(number << 16) + 1}::BIGINT AS upid, 1::BIGINT AS pid, 'p' AS name, NULL::VARCHAR AS boot_id, NULL::VARCHAR AS labels, 0::BIGINT AS is_device{of_version_2}")
    if version == 1:
        return
    process = f"{(number << 16) + 1}::BIGINT AS upid, 'p' AS process"
    write("request", host, f"SELECT 'r' AS request_id, {process}, 11::BIGINT AS arrival_ns, NULL::BIGINT AS finished_ns, 1.5::DOUBLE AS e2e_us")
    write("step", host, f"SELECT {process}, 'worker' AS role, 21::BIGINT AS start_ns, 2.5::DOUBLE AS dur_us")
    write("device", host, f"SELECT {process}, 31::BIGINT AS from_ns, 3.5::DOUBLE AS wall_us, 32::BIGINT AS longest_gap_at_ns, 33::BIGINT AS slices")
    write("idle", host, f"SELECT {process}, 'gc' AS cause, 42::BIGINT AS start_ns, 4.5::DOUBLE AS dur_us, 41::BIGINT AS gap_start_ns")
os.chdir(sys.argv[1])
"#;

/// Script that writes tables of two hosts with their own clocks, and of a third one that is incomplete.
const BY_HAND: &str = r#"
for number, host in [(1, "n%2F1"), (2, "7"), (3, "half")]:
    write_host(number, host, 2 if host != "half" else None, 1000 * number)
    upid = (number << 16) + 1
    write("loss", host, f"SELECT 'busy' AS cause, 1::BIGINT AS events, x AS upid, 5::BIGINT AS ts, 0::BIGINT AS dur FROM (VALUES ({upid}::BIGINT), (NULL)) t(x)")
write("args", "7", """SELECT 1::BIGINT AS arg_set_id, k AS flat_key, k AS key, t AS value_type, i::BIGINT AS int_value, s::VARCHAR AS string_value, r::DOUBLE AS real_value
    FROM (VALUES ('a', 'bool', 1, NULL, NULL), ('b', 'bool', 0, NULL, NULL), ('c', 'int', 1, NULL, NULL), ('d', 'string', NULL, 'x', NULL), ('e', 'real', NULL, NULL, 1.5)) v(k, t, i, s, r)""")
"#;

/// Writes a folder of tables by a script with the Python of DuckDB.
fn write_by_hand(tables: &Path, duckdb: &str, script: &str) {
    fs::create_dir(tables).unwrap();
    let mut python = Command::new(Path::new(duckdb).join("python3"));
    python.args(["-c", &format!("{WRITE}{script}")]).arg(tables);
    let made = python.output().unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// Returns the engines whose views are checked: DuckDB, and all of them with `SA_PROFILE_FULL=1`.
fn checked_engines() -> &'static [&'static str] {
    let is_full = std::env::var_os("SA_PROFILE_FULL").is_some_and(|value| value == "1");
    match is_full {
        true => &["duckdb", "datafusion", "spark"],
        false => &["duckdb"],
    }
}

/// Returns the rows of a statement on the folder `tables` in an engine. Returns `None`, with a message, if the engine is not available.
fn rows_in(engine: &str, ground: &Ground, statement: &str, test: &str) -> Option<Value> {
    // Spark needs Java.
    let path = path_with(engine, test)?;
    let path = format!("{path}:{}", std::env::var("PATH").unwrap_or_default());
    let words = ["tables", statement, "--format", "json", "--engine", engine];
    let ended = run_sql(ground, &path, &words);
    assert_eq!(ended.code, Some(0), "{engine}: {}", ended.stderr);
    Some(serde_json::from_str(&ended.stdout).unwrap())
}

#[test]
fn views_spell_as_perfetto_and_damaged_tables_are_refused() {
    let test = "views_spell_as_perfetto_and_damaged_tables_are_refused";
    let Some(path) = path_with("duckdb", test) else {
        return;
    };
    let ground = ground();
    let tables = ground.path("tables");
    write_by_hand(&tables, &path, BY_HAND);
    let run = |statement: &str| run_sql(&ground, &path, &["tables", statement, "--format", "json"]);
    let rows = |statement: &str| {
        let ended = run(statement);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        serde_json::from_str::<Value>(&ended.stdout).unwrap()
    };
    let spelled = rows("SELECT display_value AS v FROM args ORDER BY key");
    assert_eq!(
        spelled,
        json!([{"v": "true"}, {"v": "false"}, {"v": "1"}, {"v": "x"}, {"v": "1.5"}])
    );
    // JSON has no such numbers, and integers are exact.
    let numbers = rows(
        "SELECT 'nan'::DOUBLE AS a, ['-inf'::DOUBLE, 2] AS b, 9007199254740993::DECIMAL(30, 2) AS c, 0.25::DECIMAL(9, 2) AS d",
    );
    assert_eq!(
        numbers,
        json!([{"a": null, "b": [null, 2.0], "c": 9_007_199_254_740_993_i64, "d": 0.25}])
    );
    // A progress bar would appear after two seconds, on the same output.
    let slow = rows(
        "SELECT COUNT(*) AS n, current_setting('enable_progress_bar') AS shown FROM range(20000) a(x), range(20000) b(y) WHERE (x * y) % 7 = 3",
    );
    assert_eq!(slow[0]["shown"], json!(false));
    // Files that a statement writes are in the user's working directory.
    assert_eq!(run("COPY (SELECT 1) TO 'mine.csv'").code, Some(0));
    assert!(ground.path("mine.csv").exists());

    let refused = |why: &str| {
        let ended = run("SELECT 1");
        assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1));
        assert!(ended.stderr.starts_with(why), "{ended:?}");
    };
    let clocks = ["7", "n%2F1"].map(|host| tables.join(format!("clock/host={host}/all.parquet")));
    fs::copy(&clocks[0], &clocks[1]).unwrap();
    refused("sa-profile: sql: expected one host of each host_id, found ");
    for clock in clocks {
        fs::write(clock, "damaged").unwrap();
    }
    refused(&format!(
        "sa-profile: sql: {}: expected tables that duckdb can read, found: ",
        tables.display()
    ));
    let newer = tables.join("metadata/host=7/all.parquet");
    let change = format!(
        "import duckdb; duckdb.execute(\"COPY (SELECT 'schema_version' AS name, NULL::VARCHAR AS str_value, 3::BIGINT AS int_value) TO '{}' (FORMAT parquet)\")",
        newer.display()
    );
    let python = Path::new(&path).join("python3");
    let changed = Command::new(python).args(["-c", &change]).status().unwrap();
    assert!(changed.success());
    let newer = "sql: expected tables of schema version 2 or older, found 3: a newer sa-profile wrote them, and reads them";
    assert_eq!(run("SELECT 1"), Ended::refusal(newer));
}

/// The views use the complete hosts, and count all times from one origin. With `SA_PROFILE_FULL=1` this is also tested with DataFusion and Spark.
#[test]
fn clocks_of_hosts_are_in_the_views_of_each_engine() {
    let test = "clocks_of_hosts_are_in_the_views_of_each_engine";
    let Some(duckdb) = path_with("duckdb", test) else {
        return;
    };
    let ground = ground();
    write_by_hand(&ground.path("tables"), &duckdb, BY_HAND);
    // Some engines sort null first.
    let losses = "SELECT p.host, l.ts FROM loss l LEFT JOIN process p ON p.upid = l.upid ORDER BY CASE WHEN p.host IS NULL THEN 1 ELSE 0 END, l.ts";
    let lost = [(Some("n/1"), 5), (Some("7"), 1005), (None, 5), (None, 1005)]
        .map(|(host, ts)| json!({"host": host, "ts": ts}));
    let times = "SELECT r.host, r.arrival_ns, r.finished_ns, s.start_ns AS step_ns, d.from_ns, d.longest_gap_at_ns, i.gap_start_ns, i.start_ns, p.last_ns, \
        r.e2e_us, s.dur_us AS step_us, d.wall_us, d.slices, i.dur_us, p.clock_uncertainty_ns \
        FROM request r JOIN step s ON s.upid = r.upid JOIN device d ON d.upid = r.upid JOIN idle i ON i.upid = r.upid JOIN process p ON p.upid = r.upid \
        ORDER BY r.upid";
    let of_host = |host: &str, shift_ns: i64| {
        json!({
            "host": host, "arrival_ns": 11 + shift_ns, "finished_ns": null, "step_ns": 21 + shift_ns, "from_ns": 31 + shift_ns,
            "longest_gap_at_ns": 32 + shift_ns, "gap_start_ns": 41 + shift_ns, "start_ns": 42 + shift_ns, "last_ns": 70 + shift_ns,
            "e2e_us": 1.5, "step_us": 2.5, "wall_us": 3.5, "slices": 33, "dur_us": 4.5, "clock_uncertainty_ns": 80,
        })
    };
    let counted = [of_host("n/1", 0), of_host("7", 1000)];
    for engine in checked_engines() {
        let rows = |statement: &str| rows_in(engine, &ground, statement, test);
        let (Some(losses), Some(times)) = (rows(losses), rows(times)) else {
            continue;
        };
        assert_eq!(losses, json!(lost), "{engine}");
        assert_eq!(times, json!(counted), "{engine}");
    }
}

/// The hosts of one folder may have been written by several versions. Version 1 had fewer columns in `process`, and no tables of the report. The
/// third host is incomplete because its writer was killed, so it does not count.
#[test]
fn tables_of_several_versions_are_read_together() {
    let test = "tables_of_several_versions_are_read_together";
    let Some(duckdb) = path_with("duckdb", test) else {
        return;
    };
    let statement = "SELECT p.pid, p.last_ns, p.clock_uncertainty_ns, r.request_id, r.arrival_ns FROM process p LEFT JOIN request r ON r.upid = p.upid ORDER BY p.upid";
    let of_host = |version: u32, shift_ns: u32| match version {
        1 => {
            json!({"pid": 1, "last_ns": null, "clock_uncertainty_ns": null, "request_id": null, "arrival_ns": null})
        }
        _ => {
            json!({"pid": 1, "last_ns": 70 + shift_ns, "clock_uncertainty_ns": 80, "request_id": "r", "arrival_ns": 11 + shift_ns})
        }
    };
    for [first, last] in [[1, 2], [2, 1]] {
        let script = format!(
            "write_host(1, 'a', {first}, 1000)\nwrite_host(2, 'b', {last}, 2000)\nwrite_host(3, 'c', None, 3000)\n"
        );
        let ground = ground();
        write_by_hand(&ground.path("tables"), &duckdb, &script);
        let expected = json!([of_host(first, 0), of_host(last, 1000)]);
        for engine in checked_engines() {
            if let Some(rows) = rows_in(engine, &ground, statement, test) {
                assert_eq!(rows, expected, "{engine}: {first}, {last}");
            }
        }
    }
}

/// The engine is installed but cannot be imported.
#[test]
fn a_broken_engine_is_reported() {
    let Some(path) = path_with("duckdb", "a_broken_engine_is_reported") else {
        return;
    };
    let ground = ground();
    fs::create_dir(ground.path("modules")).unwrap();
    let module = ground.path("modules/duckdb.py");
    fs::write(module, "raise OSError('no such library')").unwrap();
    let words = ["--engine", "duckdb", "trace.json", "SELECT 1"];
    let mut sql = sql(&ground, &path, &words);
    let ended = Started::spawn(sql.env("PYTHONPATH", ground.path("modules"))).end();
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1));
    assert!(
        ended.stderr.ends_with(", found: no such library\n"),
        "{ended:?}"
    );
}
