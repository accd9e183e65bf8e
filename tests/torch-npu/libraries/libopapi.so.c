/* The operators: each launches one kernel of its name, as an aclnn function does, and computes nothing. Adding a scalar in place to integers does: it adds one.
 *
 * An operator has two functions. The first takes the operator's arguments and gives an executor, the second launches. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef void *Handle;
typedef struct { void *data; uint64_t count; } Tensor;
typedef struct { const char *kernel; Tensor tensor; } Executor;

int aclrtBinaryLoadFromData(const void *data, size_t bytes, const void *options, Handle *binary);
int aclrtBinaryGetFunction(Handle binary, const char *name, Handle *func);
int aclrtLaunchKernelWithHostArgs(Handle func, uint32_t blocks, Handle stream, void *cfg, void *args, size_t bytes, void *holders, size_t count);

static Handle binary(void) {
    static Handle loaded;
    if (!loaded)
        aclrtBinaryLoadFromData("kernels", 7, NULL, &loaded);
    return loaded;
}

static int prepare(const char *kernel, const Tensor *tensor, uint64_t *workspace, void **executor) {
    Executor *made = malloc(sizeof *made);
    *made = (Executor){kernel, tensor ? *tensor : (Tensor){0}};
    *workspace = 0;
    *executor = made;
    return 0;
}

static int launch(Executor *executor, Handle stream, Handle *func) {
    if (!*func)
        aclrtBinaryGetFunction(binary(), executor->kernel, func);
    int code = aclrtLaunchKernelWithHostArgs(*func, 8, stream, NULL, &executor->tensor, sizeof executor->tensor, NULL, 0);
    free(executor);
    return code;
}

#define OPERATOR(name, kernel, tensor, ...) \
    int aclnn##name##GetWorkspaceSize(__VA_ARGS__, uint64_t *workspace, void **executor) { return prepare(kernel, tensor, workspace, executor); } \
    int aclnn##name(void *workspace, uint64_t bytes, Executor *executor, Handle stream) { static Handle func; return launch(executor, stream, &func); }
#define PLAIN(name, ...) OPERATOR(name, #name, NULL, __VA_ARGS__)

typedef const void *Arg;
PLAIN(Add, Arg self, Arg other, Arg alpha, Arg out)
PLAIN(Adds, Arg self, Arg other, Arg alpha, Arg out)
PLAIN(InplaceAdd, Arg self, Arg other, Arg alpha)
OPERATOR(InplaceAdds, "sim_add_one", self, const Tensor *self, Arg other, Arg alpha)
PLAIN(InplaceCopy, Arg self, Arg from)
PLAIN(InplaceFillScalar, Arg self, Arg value)
PLAIN(InplaceOne, Arg self)
PLAIN(InplaceZero, Arg self)
PLAIN(Matmul, Arg self, Arg other, Arg out, int8_t math)
PLAIN(Mm, Arg self, Arg other, Arg out, int8_t math)
PLAIN(Mul, Arg self, Arg other, Arg out)
PLAIN(Muls, Arg self, Arg other, Arg out)
PLAIN(Relu, Arg self, Arg out)
PLAIN(Silu, Arg self, Arg out)
PLAIN(Softmax, Arg self, int64_t dimension, Arg out)

Tensor *aclCreateTensor(const int64_t *dims, uint64_t dim_count, int type, const int64_t *strides, int64_t offset, int format, const int64_t *storage, uint64_t storage_count, void *data) {
    Tensor *tensor = malloc(sizeof *tensor);
    *tensor = (Tensor){data, 1};
    for (uint64_t at = 0; at < dim_count; at++)
        tensor->count *= (uint64_t)dims[at];
    return tensor;
}

void *aclCreateScalar(void *value, int type) { return malloc(1); }
int aclDestroyTensor(void *tensor) { free(tensor); return 0; }
int aclDestroyScalar(void *scalar) { free(scalar); return 0; }
