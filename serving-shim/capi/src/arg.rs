//! Args: arrays of tagged values → the recorder's args.

use std::borrow::Cow;
use std::ffi::c_char;

use sa_recorder::{Args, Value};

use crate::known;
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
/// As [`each`].
pub(crate) unsafe fn args(first: *const Arg, count: usize) -> Args {
    let mut args = Args::new();
    // SAFETY: the caller's.
    for arg in unsafe { text::array(first, count) }.unwrap_or_default() {
        // SAFETY: the caller's.
        let known = unsafe { known::key(arg.key) };
        let mut take = |value: &dyn Value| match known {
            Some(key) => args.push_known(key, value),
            // SAFETY: the caller's.
            None => args.push(&unsafe { known::name_of_key(arg.key) }, value),
        };
        // SAFETY: the caller's.
        unsafe { hand_on(arg, &mut take) };
    }
    args
}

/// Hands on the key and value of each arg in an array; of none if it is null.
///
/// # Safety
///
/// `first` is null, or `count` args are readable there, whose pointers are null or readable as their kinds say.
pub(crate) unsafe fn each(first: *const Arg, count: usize, mut take: impl FnMut(&str, &dyn Value)) {
    // SAFETY: the caller's.
    let all = unsafe { text::array(first, count) }.unwrap_or_default();
    for arg in all {
        // SAFETY: the caller's.
        let key = unsafe { text::name(arg.key) };
        let mut take = |value: &dyn Value| take(&key, value);
        // SAFETY: the caller's.
        unsafe { hand_on(arg, &mut take) };
    }
}

/// Hands on the value of an arg.
///
/// # Safety
///
/// As [`each`].
unsafe fn hand_on(arg: &Arg, take: &mut dyn FnMut(&dyn Value)) {
    let value = arg.value;
    // SAFETY: each member is a word of which every bit pattern is a value; whether it may be followed is the caller's.
    let word = unsafe { value.unsigned_integer };
    // SAFETY: as above.
    let string = unsafe { value.string };
    match arg.kind {
        SA_PROFILE_ARG_INT => take(&word.cast_signed()),
        SA_PROFILE_ARG_UINT => take(&word),
        SA_PROFILE_ARG_DOUBLE => take(&f64::from_bits(word)),
        SA_PROFILE_ARG_BOOL => take(&(word != 0)),
        // SAFETY: the caller's.
        SA_PROFILE_ARG_STRING => take(&unsafe { text::optional(string) }.as_deref()),
        // SAFETY: the caller's.
        SA_PROFILE_ARG_STRING_N => take(&unsafe { text::counted(string, arg.length) }.as_deref()),
        // SAFETY: the caller's.
        _ => unsafe { hand_on_list(arg, string, take) },
    }
}

/// Hands on the list at `first`; `null` if it is null, or of no known kind.
///
/// # Safety
///
/// As [`each`].
unsafe fn hand_on_list(arg: &Arg, first: *const c_char, take: &mut dyn FnMut(&dyn Value)) {
    match arg.kind {
        // SAFETY: the caller's.
        SA_PROFILE_ARG_INTS => take(&unsafe { text::array(first.cast::<i64>(), arg.length) }),
        // SAFETY: the caller's.
        SA_PROFILE_ARG_DOUBLES => take(&unsafe { text::array(first.cast::<f64>(), arg.length) }),
        SA_PROFILE_ARG_STRINGS => {
            // SAFETY: the caller's.
            let list = unsafe { text::array(first.cast::<*const c_char>(), arg.length) };
            let texts = list.map(|list| {
                // SAFETY: the caller's.
                let texts = list.iter().map(|text| unsafe { text::optional(*text) });
                texts.collect::<Vec<Option<Cow<'_, str>>>>()
            });
            let texts = texts.as_ref();
            take(&texts.map(|all| all.iter().map(Option::as_deref).collect::<Vec<_>>()));
        }
        _ => take(&None::<u64>),
    }
}
