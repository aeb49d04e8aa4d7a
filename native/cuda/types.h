/* The part of CUDA's driver interface that the stub and the front handle themselves, as its ABI. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef uint64_t CUhandle;
typedef struct Context *CUcontext;
typedef struct Stream *CUstream;
typedef struct Event *CUevent;
typedef struct Function *CUfunction;
typedef struct Module *CUmodule;
typedef struct Pool *CUmemoryPool;
typedef struct Array *CUarray;
typedef struct Graph *CUgraph;
typedef struct Exec *CUgraphExec;
typedef struct Node *CUgraphNode;
typedef struct { unsigned char bytes[16]; } CUuuid;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_SHARED_OBJECT_INIT_FAILED = 303,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
};

typedef struct { int type, id; } CUlocation;
typedef struct {
    int type, handles;
    CUlocation location;
    void *win32;
    struct { unsigned char compression, rdma; unsigned short usage; unsigned char reserved[4]; } flags;
} CUmemAllocationProp;
typedef struct {
    int type, handles;
    CUlocation location;
    void *win32;
    size_t most;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;
typedef struct { size_t width, height; int format; unsigned channels; } CUarrayShape;
typedef struct { size_t width, height, depth; int format; unsigned channels, flags; } CUarray3DShape;
typedef struct {
    unsigned grid[3], block[3], shared;
    CUstream stream;
    void *attributes;
    unsigned count;
} CUlaunchConfig;
typedef struct {
    CUfunction function;
    unsigned grid[3], block[3], shared;
    CUstream stream;
    void **parameters;
} CUlaunchOne;
typedef struct {
    CUfunction function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra;
    void *kernel;
    CUcontext context;
} CUkernelNode;
typedef struct {
    CUmemPoolProps pool;
    const void *access;
    size_t accesses, bytes;
    CUdeviceptr pointer;
} CUallocNode;
typedef struct { char bytes[64]; } CUipcMem;
