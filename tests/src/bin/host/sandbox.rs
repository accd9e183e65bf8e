//! A sandbox of the host's own: a seccomp filter, as container runtimes set them up.

/// Answers every `mmap` that shares memory with `ENODEV`, as file systems do that cannot be mapped.
pub(crate) fn refuse_shared_maps() {
    // What seccomp_data holds: the call's number, and its fourth argument.
    const NUMBER: u32 = 0;
    const FLAGS: u32 = 16 + 3 * 8 + if cfg!(target_endian = "big") { 4 } else { 0 };
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const SHARED: u32 = libc::MAP_SHARED.cast_unsigned();
    let number = u32::try_from(libc::SYS_mmap).expect("a small number");
    let refused = libc::SECCOMP_RET_ERRNO | libc::ENODEV.cast_unsigned();
    let jump = libc::BPF_JMP | libc::BPF_K;
    let give = libc::BPF_RET | libc::BPF_K;
    let mut filter = [
        statement(LOAD, NUMBER, 0, 0),
        statement(jump | libc::BPF_JEQ, number, 0, 3),
        statement(LOAD, FLAGS, 0, 0),
        statement(jump | libc::BPF_JSET, SHARED, 0, 1),
        statement(give, refused, 0, 0),
        statement(give, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).expect("a short program"),
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: prctl takes integers here.
    let bound = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(bound, 0, "rights can be given up");
    // SAFETY: the program and its statements are valid for the call.
    let set = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    assert_eq!(set, 0, "a seccomp filter can be set");
}

fn statement(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    let code = u16::try_from(code).expect("a code of two bytes");
    libc::sock_filter { code, jt, jf, k }
}
