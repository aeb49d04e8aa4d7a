/* The driver's calls that the programs for tests use. */
#pragma once
#include "../cuda/types.h"

CUresult cuInit(unsigned), cuDeviceGet(CUdevice *, int), cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult cuCtxSynchronize(void), cuMemGetInfo_v2(size_t *, size_t *);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr), cuMemAllocManaged(CUdeviceptr *, size_t, unsigned);
CUresult cuMemAllocAsync(CUdeviceptr *, size_t, CUstream), cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuMemPoolCreate(CUmemoryPool *, const CUmemPoolProps *);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *, size_t, CUmemoryPool, CUstream);
CUresult cuMemAllocPitch_v2(CUdeviceptr *, size_t *, size_t, size_t, unsigned);
CUresult cuArrayCreate_v2(CUarray *, const CUarrayShape *), cuArrayDestroy(CUarray);
CUresult cuMipmappedArrayCreate(CUarray *, const CUarray3DShape *, unsigned), cuMipmappedArrayDestroy(CUarray);
CUresult cuMemCreate(CUhandle *, size_t, const CUmemAllocationProp *, unsigned long long), cuMemRelease(CUhandle);
CUresult cuMemAddressReserve(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
CUresult cuMemMap(CUdeviceptr, size_t, size_t, CUhandle, unsigned long long), cuMemUnmap(CUdeviceptr, size_t);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuStreamSynchronize(CUstream), cuStreamCreate(CUstream *, unsigned), cuStreamBeginCapture_v2(CUstream, int);
CUresult cuStreamEndCapture(CUstream, CUgraph *), cuGraphLaunch(CUgraphExec, CUstream);
CUresult cuGraphCreate(CUgraph *, unsigned), cuGraphDestroy(CUgraph), cuGraphExecDestroy(CUgraphExec);
CUresult cuGraphAddMemAllocNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUallocNode *);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void *, size_t, CUstream);
CUresult cuCtxGetDevice(CUdevice *);
CUresult cuGetErrorName(CUresult, const char **);
CUresult cuCtxDestroy_v2(CUcontext), cuCtxSetCurrent(CUcontext);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuDevicePrimaryCtxRelease_v2(CUdevice), cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuMemPoolDestroy(CUmemoryPool), cuMemRetainAllocationHandle(CUhandle *, void *);
CUresult cuStreamDestroy_v2(CUstream), cuStreamWaitEvent(CUstream, CUevent, unsigned), cuStreamIsCapturing(CUstream, int *);
CUresult cuStreamBeginCaptureToGraph(CUstream, CUgraph, const void *, const void *, size_t, int);
CUresult cuEventCreate(CUevent *, unsigned), cuEventRecord(CUevent, CUstream), cuEventQuery(CUevent), cuEventSynchronize(CUevent);
CUresult cuGraphClone(CUgraph *, CUgraph), cuGraphGetNodes(CUgraph, CUgraphNode *, size_t *);
CUresult cuGraphAddMemFreeNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUdeviceptr);
CUresult cuGraphAddChildGraphNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUkernelNode *);
CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, size_t, CUstream), cuMemsetD32Async(CUdeviceptr, unsigned, size_t, CUstream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpy2DAsync_v2(const void *, CUstream), cuMemcpy3DAsync_v2(const void *, CUstream);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, void *, size_t *, size_t, CUstream);
