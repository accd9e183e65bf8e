/* The operators: each launches one kernel with its name, as an aclnn function does, and computes nothing. One exception: adding a scalar in place to integers adds one.
 * The integers that an engine turns into tokens are set to 0: the output of ArgMax, and its copy as another type.
 *
 * An operator has two functions, some have a third. The first (or GetMaxWorkspaceSize) takes the operator's arguments and returns an executor, the last one launches it. The names come from the wheels
 * (operators.h, which stubs.py writes). The arguments of an operator are not known here. The last two are pointers to the size of the workspace and the
 * executor, two variables of the caller that are still zero. So the first such pair among the passed words is used. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef __x86_64__
#error "this file knows how arguments are passed only on x86-64"
#endif

typedef void *Handle;
typedef struct { void *data; uint64_t count; int type; uint64_t rank; int64_t dims[]; } Tensor;
typedef struct { const char *kernel; struct { void *data; uint64_t count; } integers; void *zeroed; size_t zeroed_bytes; } Executor;

enum { OK = 0, ACL_ERROR_INVALID_PARAM = 100000, INT32 = 3, INT64 = 9, IN_REGISTERS = 6, ON_STACK = 58 };

int aclrtMemsetAsync(void *memory, size_t room, int32_t value, size_t count, Handle stream);
int aclrtBinaryLoadFromData(const void *data, size_t bytes, const void *options, Handle *binary);
int aclrtBinaryGetFunction(Handle binary, const char *name, Handle *func);
int aclrtLaunchKernelWithHostArgs(Handle func, uint32_t blocks, Handle stream, void *cfg, void *args, size_t bytes, void *holders, size_t count);

static Handle binary(void) {
    static Handle loaded;
    if (!loaded)
        aclrtBinaryLoadFromData("kernels", 7, NULL, &loaded);
    return loaded;
}

/* Returns the end of the thread's stack. */
static uintptr_t stack_end(void) {
    static __thread uintptr_t end;
    pthread_attr_t attributes;
    void *lowest;
    size_t bytes;
    if (!end && pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &lowest, &bytes);
        pthread_attr_destroy(&attributes);
        end = (uintptr_t)lowest + bytes;
    }
    return end;
}

/* Returns true if a word is the address of a zero variable of the caller or one of its callers. */
static int is_unset(uintptr_t word, uintptr_t frame) {
    return word > frame && word - frame < 1 << 16 && word < stack_end() && word % 8 == 0 && *(const uint64_t *)word == 0;
}

static int prepare(const char *name, const uintptr_t *registers, const uintptr_t *stack) {
    uintptr_t words[IN_REGISTERS + ON_STACK];
    memcpy(words, registers, IN_REGISTERS * sizeof *words);
    size_t left = (stack_end() - (uintptr_t)stack) / sizeof *words;
    int count = IN_REGISTERS + (int)(left < ON_STACK ? left : ON_STACK);
    memcpy(words + IN_REGISTERS, stack, (count - IN_REGISTERS) * sizeof *words);
    for (int at = 0; at + 1 < count; at++) {
        if (words[at] == words[at + 1] || !is_unset(words[at], (uintptr_t)stack) || !is_unset(words[at + 1], (uintptr_t)stack))
            continue;
        Executor *made = malloc(sizeof *made);
        *made = (Executor){name + strlen("aclnn")};
        const Tensor *self = (const Tensor *)words[0];
        if (!strcmp(name, "aclnnInplaceAdds") && self->type == INT32)
            *made = (Executor){"sim_add_one", {self->data, self->count}};
        const Tensor *written = !strcmp(name, "aclnnArgMax") ? (const Tensor *)words[3] : !strcmp(name, "aclnnInplaceCopy") ? self : NULL;
        if (written && (written->type == INT32 || written->type == INT64)) {
            made->zeroed = written->data;
            made->zeroed_bytes = written->count * (written->type == INT32 ? 4 : 8);
        }
        *(Executor **)words[at + 1] = made;
        return OK;
    }
    fprintf(stderr, "libopapi: %s: no place for its executor among its arguments\n", name);
    return ACL_ERROR_INVALID_PARAM;
}

static int launch(Executor *executor, Handle stream, Handle *func) {
    if (!*func)
        aclrtBinaryGetFunction(binary(), executor->kernel, func);
    int code = executor->zeroed_bytes ? aclrtMemsetAsync(executor->zeroed, executor->zeroed_bytes, 0, executor->zeroed_bytes, stream) : OK;
    if (code == OK)
        code = aclrtLaunchKernelWithHostArgs(*func, 8, stream, NULL, &executor->integers, sizeof executor->integers, NULL, 0);
    free(executor);
    return code;
}

/* The words on the stack begin after the frame's address and the return address. */
#define FIRST(name, size) \
    int name##size(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f) { \
        uintptr_t registers[] = {a, b, c, d, e, f}; \
        return prepare(#name, registers, (const uintptr_t *)__builtin_frame_address(0) + 2); \
    }
#define OPERATOR(name) \
    FIRST(name, GetWorkspaceSize) \
    FIRST(name, GetMaxWorkspaceSize) \
    int name(void *workspace, uint64_t bytes, Executor *executor, Handle stream) { static Handle func; return launch(executor, stream, &func); }
#include "operators.h"

Tensor *aclCreateTensor(const int64_t *dims, uint64_t rank, int type, const int64_t *strides, int64_t offset, int format, const int64_t *storage, uint64_t storage_rank, void *data) {
    Tensor *tensor = malloc(sizeof *tensor + rank * sizeof *dims);
    *tensor = (Tensor){data, 1, type, rank};
    for (uint64_t at = 0; at < rank; at++)
        tensor->count *= (uint64_t)(tensor->dims[at] = dims[at]);
    return tensor;
}

int aclGetViewShape(const Tensor *tensor, int64_t **dims, uint64_t *rank) {
    *rank = tensor->rank;
    *dims = malloc((tensor->rank + 1) * sizeof **dims);
    memcpy(*dims, tensor->dims, tensor->rank * sizeof **dims);
    return OK;
}

/* Other kinds of arguments, which no operator reads. */
#define OPAQUE(kind, ...) \
    void *aclCreate##kind(__VA_ARGS__) { return malloc(1); } \
    int aclDestroy##kind(void *made) { free(made); return OK; }
OPAQUE(Scalar, void *value, int type)
OPAQUE(ScalarList, void *scalars, uint64_t count)
OPAQUE(IntArray, const int64_t *values, uint64_t count)
OPAQUE(FloatArray, const float *values, uint64_t count)
OPAQUE(BoolArray, const void *values, uint64_t count)

int aclDestroyTensor(void *tensor) { free(tensor); return OK; }

/* A list owns its tensors. */
typedef struct { uint64_t count; Tensor *tensors[]; } List;
List *aclCreateTensorList(Tensor *const *tensors, uint64_t count) {
    List *list = malloc(sizeof *list + count * sizeof *tensors);
    list->count = count;
    memcpy(list->tensors, tensors, count * sizeof *tensors);
    return list;
}
int aclDestroyTensorList(List *list) {
    for (uint64_t at = 0; at < list->count; at++)
        free(list->tensors[at]);
    free(list);
    return OK;
}
