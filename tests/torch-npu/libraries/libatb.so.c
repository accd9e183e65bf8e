/* ATB: an operation launches one kernel of its name on the context's stream, and computes nothing. The interface is C++; an object is represented by the address of its
 * table of virtual functions, whose first two entries are destructors. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef void *Handle;
typedef void (*Virtual)(void);
typedef struct { const Virtual *table; Handle stream; } Context;
typedef struct { const Virtual *table; const char *kernel; } Operation;

int aclrtBinaryLoadFromData(const void *data, size_t bytes, const void *options, Handle *binary);
int aclrtBinaryGetFunction(Handle binary, const char *name, Handle *func);
int aclrtLaunchKernelWithHostArgs(Handle func, uint32_t blocks, Handle stream, void *cfg, void *args, size_t bytes, void *holders, size_t count);

static void unset(void) { abort(); }

static int set_stream(Context *self, Handle stream) { self->stream = stream; return 0; }
static Handle stream_of(const Context *self) { return self->stream; }
static int accept(void) { return 0; }

static int set_up(Operation *self, const void *tensors, uint64_t *workspace, Context *context) { *workspace = 0; return 0; }
static int execute(Operation *self, const void *tensors, void *workspace, uint64_t bytes, Context *context) {
    static Handle binary;
    Handle func;
    uint64_t none = 0;
    int code = binary ? 0 : aclrtBinaryLoadFromData("kernels", 7, NULL, &binary);
    if (code == 0)
        code = aclrtBinaryGetFunction(binary, self->kernel, &func);
    return code ? code : aclrtLaunchKernelWithHostArgs(func, 8, context->stream, NULL, &none, sizeof none, NULL, 0);
}

#define V(function) ((Virtual)(function))
static const Virtual CONTEXT[] = {unset, unset, V(set_stream), V(stream_of), V(accept), V(accept), unset, unset, unset, unset, unset, unset};
/* Name, shapes, number of inputs and of outputs, which no caller reads. */
static const Virtual OPERATION[] = {unset, unset, unset, unset, unset, unset, V(set_up), V(execute)};

int _ZN3atb13CreateContextEPPNS_7ContextE(Context **made) { *made = malloc(sizeof **made); **made = (Context){CONTEXT, NULL}; return 0; }
int _ZN3atb14DestroyContextEPNS_7ContextE(Context *context) { free(context); return 0; }
int _ZN3atb16DestroyOperationEPNS_9OperationE(Operation *operation) { free(operation); return 0; }

static int create(const char *kernel, Operation **made) { *made = malloc(sizeof **made); **made = (Operation){OPERATION, kernel}; return 0; }
int _ZN3atb15CreateOperationINS_5infer11LinearParamEEEiRKT_PPNS_9OperationE(const void *parameters, Operation **made) { return create("Linear", made); }
int _ZN3atb15CreateOperationINS_5infer12ElewiseParamEEEiRKT_PPNS_9OperationE(const void *parameters, Operation **made) { return create("Elewise", made); }
int _ZN3atb15CreateOperationINS_5infer12RmsNormParamEEEiRKT_PPNS_9OperationE(const void *parameters, Operation **made) { return create("RmsNorm", made); }
int _ZN3atb15CreateOperationINS_5infer14GroupTopkParamEEEiRKT_PPNS_9OperationE(const void *parameters, Operation **made) { return create("GroupTopk", made); }
int _ZN3atb15CreateOperationINS_5infer18SelfAttentionParamEEEiRKT_PPNS_9OperationE(const void *parameters, Operation **made) { return create("SelfAttention", made); }
int _ZN3atb15CreateOperationINS_5infer19PagedAttentionParamEEEiRKT_PPNS_9OperationE(const void *parameters, Operation **made) { return create("PagedAttention", made); }
int _ZN3atb15CreateOperationINS_5infer20ReshapeAndCacheParamEEEiRKT_PPNS_9OperationE(const void *parameters, Operation **made) { return create("ReshapeAndCache", made); }
int _ZN3atb15CreateOperationINS_5infer9RopeParamEEEiRKT_PPNS_9OperationE(const void *parameters, Operation **made) { return create("Rope", made); }
