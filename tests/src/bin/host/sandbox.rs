//! Process limits, and seccomp filters like those of container runtimes.

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const JUMP: u32 = libc::BPF_JMP | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
/// Offset of the call's number in `seccomp_data`.
const NUMBER: u32 = 0;

/// Returns the offset of the lower half of an argument in `seccomp_data`.
fn argument(at: u32) -> u32 {
    16 + at * 8 + if cfg!(target_endian = "big") { 4 } else { 0 }
}

/// Makes a system call fail with this error in all threads. Calls on stdin, stdout and stderr are still allowed, because the host itself writes to them.
pub(crate) fn refuse(number: libc::c_long, error: i32) {
    let last = libc::STDERR_FILENO.cast_unsigned();
    let descriptors = [libc::SYS_write, libc::SYS_writev, libc::SYS_close];
    let allowed_jump = u8::from(descriptors.contains(&number)); // for other calls, both branches lead to the error
    let number = u32::try_from(number).expect("the number of a call");
    install(&mut [
        statement(LOAD, NUMBER, 0, 0),
        statement(JUMP | libc::BPF_JEQ, number, 0, 3),
        statement(LOAD, argument(0), 0, 0),
        statement(JUMP | libc::BPF_JGT, last, 0, allowed_jump),
        error_statement(error),
        statement(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
    ]);
}

fn error_statement(error: i32) -> libc::sock_filter {
    let give = libc::SECCOMP_RET_ERRNO | error.cast_unsigned();
    statement(RETURN, give, 0, 0)
}

/// Installs a filter in all threads of the process.
fn install(filter: &mut [libc::sock_filter]) {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).expect("a short program"),
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: prctl takes integers here.
    let bound = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(bound, 0, "rights can be given up");
    // SAFETY: the program and its statements are valid for the call.
    let set = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const program,
        )
    };
    assert_eq!(set, 0, "a seccomp filter can be set");
}

fn statement(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    let code = u16::try_from(code).expect("a code of two bytes");
    libc::sock_filter { code, jt, jf, k }
}

/// Sets a resource limit of the process.
pub(crate) fn set_limit(what: &str, value: libc::rlim_t) {
    let resource = match what {
        "fsize" => libc::RLIMIT_FSIZE,
        "nofile" => libc::RLIMIT_NOFILE,
        "as" => libc::RLIMIT_AS,
        _ => panic!("host: unknown limit {what}"),
    };
    let limit = libc::rlimit {
        rlim_cur: value,
        rlim_max: value,
    };
    // SAFETY: `limit` is a valid rlimit for the length of the call.
    let status = unsafe { libc::setrlimit(resource, &raw const limit) };
    assert_eq!(status, 0, "limits can be lowered");
}

/// Sets the umask.
pub(crate) fn set_umask(octal: &str) {
    let mask = libc::mode_t::from_str_radix(octal, 8).expect("an octal number");
    // SAFETY: umask only changes this process's mask.
    unsafe { libc::umask(mask) };
}

/// Makes SIGTERM end the process with exit code 8.
pub(crate) fn exit_on_term() {
    extern "C" fn exit(_signal: libc::c_int) {
        // SAFETY: not async-signal-safe. This is what the test is about.
        unsafe { libc::exit(8) };
    }
    // SAFETY: the handler is a function of the right type.
    unsafe { libc::signal(libc::SIGTERM, exit as *const () as libc::sighandler_t) };
}
