//! Memory and copies.

use super::*;
use crate::clock::{now_ns, wait_until};
use crate::effect::Effect;
use crate::memory::Location;

exports! { acl::memory, code;
    fn aclrtMalloc(memory: *mut *mut c_void, bytes: usize, _policy: aclrtMemMallocPolicy) {
        memory.not_null()?;
        context::here()?;
        memory.put(allocate(bytes, Location::Device)?)
    }

    fn aclrtFree(memory: *mut c_void) {
        runtime().memory.free(memory.address(), Location::Device)
    }

    fn aclrtMallocHost(memory: *mut *mut c_void, bytes: usize) {
        memory.not_null()?;
        memory.put(allocate(bytes, Location::Host)?)
    }

    fn aclrtFreeHost(memory: *mut c_void) {
        runtime().memory.free(memory.address(), Location::Host)
    }

    fn aclrtGetMemInfo(_kind: aclrtMemAttr, free: *mut usize, total: *mut usize) {
        free.not_null()?;
        context::here()?;
        let (free_bytes, total_bytes) = runtime().memory.available();
        total.put(total_bytes)?;
        free.put(free_bytes)
    }
}

exports! { acl::copy, code;
    fn aclrtMemcpy(dst: *mut c_void, dst_bytes: usize, src: *const c_void, count: usize, _kind: aclrtMemcpyKind) {
        apply_now(copy(dst.address(), dst_bytes, src.address(), count)?)
    }

    fn aclrtMemcpyAsync(dst: *mut c_void, dst_bytes: usize, src: *const c_void, count: usize, _kind: aclrtMemcpyKind, stream: aclrtStream) {
        let effect = copy(dst.address(), dst_bytes, src.address(), count)?;
        submit("aclrtMemcpyAsync", effect, stream.0)
    }

    fn aclrtMemset(memory: *mut c_void, memory_bytes: usize, value: i32, count: usize) {
        apply_now(set(memory.address(), memory_bytes, value, count)?)
    }

    fn aclrtMemsetAsync(memory: *mut c_void, memory_bytes: usize, value: i32, count: usize, stream: aclrtStream) {
        let effect = set(memory.address(), memory_bytes, value, count)?;
        submit("aclrtMemsetAsync", effect, stream.0)
    }

    fn aclrtMemcpyBatchAsync(dst: *mut *mut c_void, dst_bytes: *mut usize, src: *mut *mut c_void, sizes: *mut usize, size_count: usize, _attributes: *mut aclrtMemcpyBatchAttr, _attribute_indexes: *mut usize, _attribute_count: usize, _failed: *mut usize, stream: aclrtStream) {
        let batch = Batch { dst, dst_bytes, src, sizes };
        batch.copies(size_count)?.into_iter().try_for_each(|effect| submit("aclrtMemcpyBatchAsync", effect, stream.0))
    }

    fn aclrtMemcpyBatch(dst: *mut *mut c_void, dst_bytes: *mut usize, src: *mut *mut c_void, sizes: *mut usize, size_count: usize, _attributes: *mut aclrtMemcpyBatchAttr, _attribute_indexes: *mut usize, _attribute_count: usize, _failed: *mut usize) {
        let batch = Batch { dst, dst_bytes, src, sizes };
        batch.copies(size_count)?.into_iter().try_for_each(apply_now)
    }

    fn aclrtCmoAsync(src: *mut c_void, count: usize, _kind: aclrtCmoType, stream: aclrtStream) {
        let effect = copy(src.address(), count, src.address(), count)?;
        submit("aclrtCmoAsync", effect, stream.0)
    }

    fn aclrtValueWrite(memory: *mut c_void, value: u64, _flag: u32, stream: aclrtStream) {
        memory.not_null()?;
        submit("aclrtValueWrite", Effect::Write { dst: memory.address(), value }, stream.0)
    }

    // Not supported, like on chips without this feature.
    fn aclrtValueWait(_memory: *mut c_void, _value: u64, _flag: u32, _stream: aclrtStream) {
        Err(ACL_ERROR_RT_FEATURE_NOT_SUPPORT)
    }
}

/// The lists of a batch of copies.
struct Batch {
    dst: Out<*mut c_void>,
    dst_bytes: Out<usize>,
    src: Out<*mut c_void>,
    sizes: Out<usize>,
}

impl Batch {
    /// Returns the copies, or an error if any of them is invalid.
    fn copies(&self, count: usize) -> Outcome<Vec<Effect>> {
        let copy_at = |index| {
            let (to, from) = (self.dst.at(index)?, self.src.at(index)?);
            let (room, bytes) = (self.dst_bytes.at(index)?, self.sizes.at(index)?);
            copy(to.addr(), room, from.addr(), bytes)
        };
        (0..count).map(copy_at).collect()
    }
}

fn allocate(bytes: usize, location: Location) -> Outcome<*mut c_void> {
    let address = runtime().memory.allocate(bytes, location)?;
    Ok(std::ptr::with_exposed_provenance_mut(address))
}

fn set(dst: usize, room: usize, value: i32, bytes: usize) -> Outcome<Effect> {
    fail_if(dst == 0 || bytes > room, ACL_ERROR_RT_PARAM_INVALID)?;
    let [value, ..] = value.to_le_bytes();
    Ok(Effect::Set { dst, value, bytes })
}

fn copy(dst: usize, room: usize, src: usize, bytes: usize) -> Outcome<Effect> {
    if dst == 0 || src == 0 || bytes > room {
        return Err(ACL_ERROR_RT_PARAM_INVALID);
    }
    Ok(Effect::Copy { dst, src, bytes })
}

/// Applies an effect before the call returns, independently of all streams.
fn apply_now(effect: Effect) -> Outcome {
    context::here()?;
    let start_ns = now_ns();
    effect.apply();
    wait_until(start_ns + effect.copy_ns());
    Ok(())
}

fn submit(name: &'static str, effect: Effect, stream: aclrtStream) -> Outcome {
    let context = context::here()?;
    runtime()
        .stream(&context, stream)?
        .submit(Work::Copy { name, effect })
}
