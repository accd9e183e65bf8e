//! A recipe for documents of every form, good ones and others. The fuzz target `document` takes the same, with a fuzzer's choices.

pub(crate) mod document;
pub(crate) mod event;
