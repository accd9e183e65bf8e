//! Args: arrays of tagged values → the recorder's args.

use std::borrow::Cow;
use std::ffi::c_char;

use sa_recorder::Args;

use crate::text;

/// The kind of an arg's value. A value of an unknown kind becomes `null`.
pub type ArgKind = u32;

/// `value.integer`.
pub const SA_PROFILE_ARG_INT: ArgKind = 1;
/// `value.unsigned_integer`.
pub const SA_PROFILE_ARG_UINT: ArgKind = 2;
/// `value.number`; NaN and infinities become `null`.
pub const SA_PROFILE_ARG_DOUBLE: ArgKind = 3;
/// `value.unsigned_integer`: 0 is false, all else true.
pub const SA_PROFILE_ARG_BOOL: ArgKind = 4;
/// `value.string`, which ends with a NUL byte.
pub const SA_PROFILE_ARG_STRING: ArgKind = 5;
/// `value.string`, `length` bytes long, NUL bytes included.
pub const SA_PROFILE_ARG_STRING_N: ArgKind = 6;
/// `value.integers`: a list of `length` integers.
pub const SA_PROFILE_ARG_INTS: ArgKind = 7;
/// `value.numbers`: a list of `length` numbers.
pub const SA_PROFILE_ARG_DOUBLES: ArgKind = 8;
/// `value.strings`: a list of `length` strings, each of which ends with a NUL byte.
pub const SA_PROFILE_ARG_STRINGS: ArgKind = 9;

/// The value of an arg.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ArgValue {
    /// Of `SA_PROFILE_ARG_INT`.
    pub integer: i64,
    /// Of `SA_PROFILE_ARG_UINT` and `SA_PROFILE_ARG_BOOL`.
    pub unsigned_integer: u64,
    /// Of `SA_PROFILE_ARG_DOUBLE`.
    pub number: f64,
    /// Of `SA_PROFILE_ARG_STRING` and `SA_PROFILE_ARG_STRING_N`.
    pub string: *const c_char,
    /// Of `SA_PROFILE_ARG_INTS`.
    pub integers: *const i64,
    /// Of `SA_PROFILE_ARG_DOUBLES`.
    pub numbers: *const f64,
    /// Of `SA_PROFILE_ARG_STRINGS`.
    pub strings: *const *const c_char,
}

/// One argument of an event. Made by `sa_profile_arg_int` and its like, or by `SA_PROFILE_ARG`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Arg {
    /// Its name.
    pub key: *const c_char,
    /// Its value.
    pub value: ArgValue,
    /// Bytes of a string, elements of a list.
    pub length: usize,
    /// Which member of `value` holds.
    pub kind: ArgKind,
}

impl std::fmt::Debug for Arg {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Arg")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// The args in an array; none if it is null.
///
/// # Safety
///
/// `first` is null, or `count` args are readable there, whose pointers are null or readable as their kinds say.
pub(crate) unsafe fn args(first: *const Arg, count: usize) -> Args {
    // SAFETY: the caller's.
    let all = unsafe { text::array(first, count) }.unwrap_or_default();
    let mut args = Args::new();
    for arg in all {
        // SAFETY: the caller's.
        unsafe { push(&mut args, arg) };
    }
    args
}

/// Adds one arg.
///
/// # Safety
///
/// As [`args`].
unsafe fn push(args: &mut Args, arg: &Arg) {
    // SAFETY: the caller's.
    let key = unsafe { text::name(arg.key) };
    let value = arg.value;
    // SAFETY: each member is a word of which every bit pattern is a value; whether it may be followed is the caller's.
    let word = unsafe { value.unsigned_integer };
    // SAFETY: as above.
    let string = unsafe { value.string };
    match arg.kind {
        SA_PROFILE_ARG_INT => args.push(&key, &word.cast_signed()),
        SA_PROFILE_ARG_UINT => args.push(&key, &word),
        SA_PROFILE_ARG_DOUBLE => args.push(&key, &f64::from_bits(word)),
        SA_PROFILE_ARG_BOOL => args.push(&key, &(word != 0)),
        // SAFETY: the caller's.
        SA_PROFILE_ARG_STRING => args.push(&key, &unsafe { text::optional(string) }.as_deref()),
        SA_PROFILE_ARG_STRING_N => {
            // SAFETY: the caller's.
            args.push(
                &key,
                &unsafe { text::counted(string, arg.length) }.as_deref(),
            );
        }
        // SAFETY: the caller's.
        _ => unsafe { push_list(args, &key, arg) },
    }
}

/// Adds a list; `null` for one that is null or of no known kind.
///
/// # Safety
///
/// As [`args`].
unsafe fn push_list(args: &mut Args, key: &str, arg: &Arg) {
    // SAFETY: each member is a word of which every bit pattern is a value.
    let first = unsafe { arg.value.string };
    match arg.kind {
        SA_PROFILE_ARG_INTS => {
            // SAFETY: the caller's.
            args.push(key, &unsafe {
                text::array(first.cast::<i64>(), arg.length)
            });
        }
        SA_PROFILE_ARG_DOUBLES => {
            // SAFETY: the caller's.
            args.push(key, &unsafe {
                text::array(first.cast::<f64>(), arg.length)
            });
        }
        SA_PROFILE_ARG_STRINGS => {
            // SAFETY: the caller's.
            let list = unsafe { text::array(first.cast::<*const c_char>(), arg.length) };
            let strings = list.map(|list| {
                // SAFETY: the caller's.
                let all = list.iter().map(|string| unsafe { text::optional(*string) });
                all.collect::<Vec<Option<Cow<'_, str>>>>()
            });
            let strings: Option<Vec<Option<&str>>> = strings
                .as_ref()
                .map(|all| all.iter().map(Option::as_deref).collect());
            args.push(key, &strings);
        }
        _ => args.push(key, &None::<u64>),
    }
}
