//! bash, which forks for nearly everything it does, and waits for its children in a signal handler.

use super::subject::{Subject, Way};

const SCRIPT: &str = r#"
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

#[test]
fn bash_forks_many_children() {
    let Some(subject) = Subject::new("bash_forks_many_children", &["bash"]) else {
        return;
    };
    let ended = subject.assert_the_same("bash", &["-c", SCRIPT]);
    assert_eq!(ended.code, 9);
    assert!(ended.stderr.ends_with("through\n"), "{ended:?}");
    assert!(ended.stdout.contains("failed 6\nDEPIP\n"), "{ended:?}");
    let processes = subject.assert_whole(Way::Recording).processes().len();
    assert!(processes >= 75, "{processes} processes recorded");
}
