//! Converts arrays of tagged values to the recorder's args.

use std::borrow::Cow;
use std::ffi::c_char;

use sa_recorder::{Args, Value};

use crate::cache;
use crate::text;

/// The kind of an arg's value. A value of an unknown kind becomes `null`.
pub type ArgKind = u32;

/// `value.integer`.
pub const SA_PROFILE_ARG_INT: ArgKind = 1;
/// `value.unsigned_integer`.
pub const SA_PROFILE_ARG_UINT: ArgKind = 2;
/// `value.number`; NaN and infinities become `null`.
pub const SA_PROFILE_ARG_DOUBLE: ArgKind = 3;
/// `value.unsigned_integer`: 0 is false, everything else is true.
pub const SA_PROFILE_ARG_BOOL: ArgKind = 4;
/// `value.string`, which ends with a NUL byte.
pub const SA_PROFILE_ARG_STRING: ArgKind = 5;
/// `value.string`, `length` bytes long, NUL bytes included.
pub const SA_PROFILE_ARG_STRING_N: ArgKind = 6;
/// `value.integers`: a list of `length` integers.
pub const SA_PROFILE_ARG_INTS: ArgKind = 7;
/// `value.numbers`: a list of `length` numbers.
pub const SA_PROFILE_ARG_DOUBLES: ArgKind = 8;
/// `value.strings`: a list of `length` strings, each ending with a NUL byte.
pub const SA_PROFILE_ARG_STRINGS: ArgKind = 9;

/// The value of an arg.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ArgValue {
    /// For `SA_PROFILE_ARG_INT`.
    pub integer: i64,
    /// For `SA_PROFILE_ARG_UINT` and `SA_PROFILE_ARG_BOOL`.
    pub unsigned_integer: u64,
    /// For `SA_PROFILE_ARG_DOUBLE`.
    pub number: f64,
    /// For `SA_PROFILE_ARG_STRING` and `SA_PROFILE_ARG_STRING_N`.
    pub string: *const c_char,
    /// For `SA_PROFILE_ARG_INTS`.
    pub integers: *const i64,
    /// For `SA_PROFILE_ARG_DOUBLES`.
    pub numbers: *const f64,
    /// For `SA_PROFILE_ARG_STRINGS`.
    pub strings: *const *const c_char,
}

/// One argument of an event. Created by `sa_profile_arg_int` and similar functions, or by `SA_PROFILE_ARG`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Arg {
    /// The arg's name.
    pub key: *const c_char,
    /// The arg's value.
    pub value: ArgValue,
    /// Number of bytes of a string or of elements of a list.
    pub length: usize,
    /// The member of `value` that is set.
    pub kind: ArgKind,
}

impl std::fmt::Debug for Arg {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Arg")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// Converts an array of `count` args from C to the recorder's args. A null array has no args.
///
/// # Safety
///
/// The same as for [`each`].
pub(crate) unsafe fn args(first: *const Arg, count: usize) -> Args {
    let mut args = Args::new();
    // SAFETY: guaranteed by the caller.
    for arg in unsafe { text::array(first, count) }.unwrap_or_default() {
        // SAFETY: guaranteed by the caller.
        let key = unsafe { cache::key_json(arg.key) };
        let mut add = |value: &dyn Value| match key {
            Some(key) => args.push_with_encoded_key(key, value),
            // SAFETY: guaranteed by the caller.
            None => args.push(&unsafe { cache::insert_key(arg.key) }, value),
        };
        // SAFETY: guaranteed by the caller.
        unsafe { with_value(arg, &mut add) };
    }
    args
}

/// Calls `add` with the key and the value of each arg in a C array of `count` args. A null array has no args.
///
/// # Safety
///
/// `first` is null, or `count` args are readable there. Each of their pointers is null or readable as the arg's kind requires.
pub(crate) unsafe fn each(first: *const Arg, count: usize, mut add: impl FnMut(&str, &dyn Value)) {
    // SAFETY: guaranteed by the caller.
    let args = unsafe { text::array(first, count) }.unwrap_or_default();
    for arg in args {
        // SAFETY: guaranteed by the caller.
        let key = unsafe { text::name(arg.key) };
        let mut add_value = |value: &dyn Value| add(&key, value);
        // SAFETY: guaranteed by the caller.
        unsafe { with_value(arg, &mut add_value) };
    }
}

/// Calls `add` with the value of an arg from C, which its kind selects.
///
/// # Safety
///
/// The same as for [`each`].
unsafe fn with_value(arg: &Arg, add: &mut dyn FnMut(&dyn Value)) {
    let value = arg.value;
    // SAFETY: every member has 64 bits, and every bit pattern is valid for it. The pointers are only read below, if the kind says so.
    let bits = unsafe { value.unsigned_integer };
    // SAFETY: as above.
    let string = unsafe { value.string };
    match arg.kind {
        SA_PROFILE_ARG_INT => add(&bits.cast_signed()),
        SA_PROFILE_ARG_UINT => add(&bits),
        SA_PROFILE_ARG_DOUBLE => add(&f64::from_bits(bits)),
        SA_PROFILE_ARG_BOOL => add(&(bits != 0)),
        // SAFETY: guaranteed by the caller.
        SA_PROFILE_ARG_STRING => add(&unsafe { text::optional(string) }.as_deref()),
        // SAFETY: guaranteed by the caller.
        SA_PROFILE_ARG_STRING_N => add(&unsafe { text::counted(string, arg.length) }.as_deref()),
        // SAFETY: guaranteed by the caller.
        _ => unsafe { with_list(arg, string, add) },
    }
}

/// Calls `add` with the value of an arg from C that is a list, whose elements are at `first`. The value is `null` if the pointer is null or the kind is
/// unknown.
///
/// # Safety
///
/// The same as for [`each`].
unsafe fn with_list(arg: &Arg, first: *const c_char, add: &mut dyn FnMut(&dyn Value)) {
    match arg.kind {
        // SAFETY: guaranteed by the caller.
        SA_PROFILE_ARG_INTS => add(&unsafe { text::array(first.cast::<i64>(), arg.length) }),
        // SAFETY: guaranteed by the caller.
        SA_PROFILE_ARG_DOUBLES => add(&unsafe { text::array(first.cast::<f64>(), arg.length) }),
        SA_PROFILE_ARG_STRINGS => {
            // SAFETY: guaranteed by the caller.
            let list = unsafe { text::array(first.cast::<*const c_char>(), arg.length) };
            let texts = list.map(|list| {
                // SAFETY: guaranteed by the caller.
                let texts = list.iter().map(|text| unsafe { text::optional(*text) });
                texts.collect::<Vec<Option<Cow<'_, str>>>>()
            });
            let texts = texts.as_ref();
            add(&texts.map(|all| all.iter().map(Option::as_deref).collect::<Vec<_>>()));
        }
        _ => add(&None::<u64>),
    }
}
