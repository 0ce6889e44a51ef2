/* SPDX-License-Identifier: MIT */
/*
 * cufile.h - files to and from GPU memory: the cuFile API.
 *
 * Names, numbers and layouts are those of cuFile 1.15 .. 1.18, every one asserted below, so
 * a program built against this header runs on NVIDIA's library and the other way round.
 * Additions of this project are in opengds.h.
 *
 * Where CUDA is installed its cuda.h is used; where it is not, the two types that are
 * needed of it are declared here. CUFILE_NO_CUDA_H forces the latter.
 *
 * All functions may be called by any number of threads. Sizes are bytes unless a name ends
 * in _kb or _KB. Errors of functions that return CUfileError_t stand in `err`; `cu_err` has
 * a meaning only beside CU_FILE_CUDA_DRIVER_ERROR and is 0 otherwise.
 */
#ifndef OPENGDS_CUFILE_H
#define OPENGDS_CUFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

#if !defined(CUFILE_NO_CUDA_H) && defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#define CUFILE_HAS_CUDA_H 1
#endif
#endif
#ifndef CUFILE_HAS_CUDA_H
typedef int CUresult;
typedef struct CUstream_st *CUstream;
#endif

#ifdef __cplusplus
extern "C" {
#define CUFILE_ASSERT(cond) static_assert(cond, #cond)
#else
#define CUFILE_ASSERT(cond) _Static_assert(cond, #cond)
#endif

#pragma GCC visibility push(default)

#define CUFILEOP_BASE_ERR 5000

typedef enum CUfileOpError {
	CU_FILE_SUCCESS = 0,
	CU_FILE_DRIVER_NOT_INITIALIZED = CUFILEOP_BASE_ERR + 1,
	CU_FILE_DRIVER_INVALID_PROPS = CUFILEOP_BASE_ERR + 2,
	CU_FILE_DRIVER_UNSUPPORTED_LIMIT = CUFILEOP_BASE_ERR + 3,
	CU_FILE_DRIVER_VERSION_MISMATCH = CUFILEOP_BASE_ERR + 4,
	CU_FILE_DRIVER_VERSION_READ_ERROR = CUFILEOP_BASE_ERR + 5,
	CU_FILE_DRIVER_CLOSING = CUFILEOP_BASE_ERR + 6,
	CU_FILE_PLATFORM_NOT_SUPPORTED = CUFILEOP_BASE_ERR + 7,
	CU_FILE_IO_NOT_SUPPORTED = CUFILEOP_BASE_ERR + 8,
	CU_FILE_DEVICE_NOT_SUPPORTED = CUFILEOP_BASE_ERR + 9,
	CU_FILE_NVFS_DRIVER_ERROR = CUFILEOP_BASE_ERR + 10,
	CU_FILE_CUDA_DRIVER_ERROR = CUFILEOP_BASE_ERR + 11,
	CU_FILE_CUDA_POINTER_INVALID = CUFILEOP_BASE_ERR + 12,
	CU_FILE_CUDA_MEMORY_TYPE_INVALID = CUFILEOP_BASE_ERR + 13,
	CU_FILE_CUDA_POINTER_RANGE_ERROR = CUFILEOP_BASE_ERR + 14,
	CU_FILE_CUDA_CONTEXT_MISMATCH = CUFILEOP_BASE_ERR + 15,
	CU_FILE_INVALID_MAPPING_SIZE = CUFILEOP_BASE_ERR + 16,
	CU_FILE_INVALID_MAPPING_RANGE = CUFILEOP_BASE_ERR + 17,
	CU_FILE_INVALID_FILE_TYPE = CUFILEOP_BASE_ERR + 18,
	CU_FILE_INVALID_FILE_OPEN_FLAG = CUFILEOP_BASE_ERR + 19,
	CU_FILE_DIO_NOT_SET = CUFILEOP_BASE_ERR + 20,
	CU_FILE_INVALID_VALUE = CUFILEOP_BASE_ERR + 22,
	CU_FILE_MEMORY_ALREADY_REGISTERED = CUFILEOP_BASE_ERR + 23,
	CU_FILE_MEMORY_NOT_REGISTERED = CUFILEOP_BASE_ERR + 24,
	CU_FILE_PERMISSION_DENIED = CUFILEOP_BASE_ERR + 25,
	CU_FILE_DRIVER_ALREADY_OPEN = CUFILEOP_BASE_ERR + 26,
	CU_FILE_HANDLE_NOT_REGISTERED = CUFILEOP_BASE_ERR + 27,
	CU_FILE_HANDLE_ALREADY_REGISTERED = CUFILEOP_BASE_ERR + 28,
	CU_FILE_DEVICE_NOT_FOUND = CUFILEOP_BASE_ERR + 29,
	CU_FILE_INTERNAL_ERROR = CUFILEOP_BASE_ERR + 30,
	CU_FILE_GETNEWFD_FAILED = CUFILEOP_BASE_ERR + 31,
	CU_FILE_NVFS_SETUP_ERROR = CUFILEOP_BASE_ERR + 33,
	CU_FILE_IO_DISABLED = CUFILEOP_BASE_ERR + 34,
	CU_FILE_BATCH_SUBMIT_FAILED = CUFILEOP_BASE_ERR + 35,
	CU_FILE_GPU_MEMORY_PINNING_FAILED = CUFILEOP_BASE_ERR + 36,
	CU_FILE_BATCH_FULL = CUFILEOP_BASE_ERR + 37,
	CU_FILE_ASYNC_NOT_SUPPORTED = CUFILEOP_BASE_ERR + 38,
	CU_FILE_INTERNAL_BATCH_SETUP_ERROR = CUFILEOP_BASE_ERR + 39,
	CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR = CUFILEOP_BASE_ERR + 40,
	CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR = CUFILEOP_BASE_ERR + 41,
	CU_FILE_INTERNAL_BATCH_CANCEL_ERROR = CUFILEOP_BASE_ERR + 42,
	CU_FILE_NOMEM_ERROR = CUFILEOP_BASE_ERR + 43,
	CU_FILE_IO_ERROR = CUFILEOP_BASE_ERR + 44,
	CU_FILE_INTERNAL_BUF_REGISTER_ERROR = CUFILEOP_BASE_ERR + 45,
	CU_FILE_HASH_OPR_ERROR = CUFILEOP_BASE_ERR + 46,
	CU_FILE_INVALID_CONTEXT_ERROR = CUFILEOP_BASE_ERR + 47,
	CU_FILE_NVFS_INTERNAL_DRIVER_ERROR = CUFILEOP_BASE_ERR + 48,
	CU_FILE_BATCH_NOCOMPAT_ERROR = CUFILEOP_BASE_ERR + 49,
	CU_FILE_IO_MAX_ERROR = CUFILEOP_BASE_ERR + 50
} CUfileOpError;

/* Message of an error; never NULL. */
static inline const char *cufileop_status_error(CUfileOpError status)
{
	switch (status) {
	case CU_FILE_SUCCESS:
		return "cufile success";
	case CU_FILE_DRIVER_NOT_INITIALIZED:
		return "nvidia-fs driver is not loaded. Set allow_compat_mode to true in cufile.json file to enable compatible mode";
	case CU_FILE_DRIVER_INVALID_PROPS:
		return "invalid property";
	case CU_FILE_DRIVER_UNSUPPORTED_LIMIT:
		return "property range error";
	case CU_FILE_DRIVER_VERSION_MISMATCH:
		return "nvidia-fs driver version mismatch";
	case CU_FILE_DRIVER_VERSION_READ_ERROR:
		return "nvidia-fs driver version read error";
	case CU_FILE_DRIVER_CLOSING:
		return "driver shutdown in progress";
	case CU_FILE_PLATFORM_NOT_SUPPORTED:
		return "GPUDirect Storage not supported on current platform";
	case CU_FILE_IO_NOT_SUPPORTED:
		return "GPUDirect Storage not supported on current file";
	case CU_FILE_DEVICE_NOT_SUPPORTED:
		return "GPUDirect Storage not supported on current GPU";
	case CU_FILE_NVFS_DRIVER_ERROR:
		return "nvidia-fs driver ioctl error";
	case CU_FILE_CUDA_DRIVER_ERROR:
		return "CUDA driver API error";
	case CU_FILE_CUDA_POINTER_INVALID:
		return "invalid device pointer";
	case CU_FILE_CUDA_MEMORY_TYPE_INVALID:
		return "invalid pointer memory type";
	case CU_FILE_CUDA_POINTER_RANGE_ERROR:
		return "pointer range exceeds allocated address range";
	case CU_FILE_CUDA_CONTEXT_MISMATCH:
		return "cuda context mismatch";
	case CU_FILE_INVALID_MAPPING_SIZE:
		return "access beyond maximum pinned size";
	case CU_FILE_INVALID_MAPPING_RANGE:
		return "access beyond mapped size";
	case CU_FILE_INVALID_FILE_TYPE:
		return "unsupported file type";
	case CU_FILE_INVALID_FILE_OPEN_FLAG:
		return "unsupported file open flags";
	case CU_FILE_DIO_NOT_SET:
		return "fd direct IO not set";
	case CU_FILE_INVALID_VALUE:
		return "invalid arguments";
	case CU_FILE_MEMORY_ALREADY_REGISTERED:
		return "device pointer already registered";
	case CU_FILE_MEMORY_NOT_REGISTERED:
		return "device pointer lookup failure";
	case CU_FILE_PERMISSION_DENIED:
		return "driver or file access error";
	case CU_FILE_DRIVER_ALREADY_OPEN:
		return "driver is already open";
	case CU_FILE_HANDLE_NOT_REGISTERED:
		return "file descriptor is not registered";
	case CU_FILE_HANDLE_ALREADY_REGISTERED:
		return "file descriptor is already registered";
	case CU_FILE_DEVICE_NOT_FOUND:
		return "GPU device not found";
	case CU_FILE_INTERNAL_ERROR:
		return "internal error";
	case CU_FILE_GETNEWFD_FAILED:
		return "failed to obtain new file descriptor";
	case CU_FILE_NVFS_SETUP_ERROR:
		return "NVFS driver initialization error";
	case CU_FILE_IO_DISABLED:
		return "GPUDirect Storage disabled by config on current file";
	case CU_FILE_BATCH_SUBMIT_FAILED:
		return "failed to submit batch operation";
	case CU_FILE_GPU_MEMORY_PINNING_FAILED:
		return "failed to allocate pinned GPU memory";
	case CU_FILE_BATCH_FULL:
		return "queue full for batch operation";
	case CU_FILE_ASYNC_NOT_SUPPORTED:
		return "cuFile stream operation not supported";
	case CU_FILE_INTERNAL_BATCH_SETUP_ERROR:
		return "batch setup failed, retry later";
	case CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR:
		return "batch submit failed, retry later";
	case CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR:
		return "batch status failed, retry later";
	case CU_FILE_INTERNAL_BATCH_CANCEL_ERROR:
		return "batch cancel failed, retry later";
	case CU_FILE_NOMEM_ERROR:
		return "out of memory";
	case CU_FILE_IO_ERROR:
		return "I/O error";
	case CU_FILE_INTERNAL_BUF_REGISTER_ERROR:
		return "buffer registration failed";
	case CU_FILE_HASH_OPR_ERROR:
		return "look-up table error";
	case CU_FILE_INVALID_CONTEXT_ERROR:
		return "invalid CUDA context";
	case CU_FILE_NVFS_INTERNAL_DRIVER_ERROR:
		return "nvidia-fs driver internal error";
	case CU_FILE_BATCH_NOCOMPAT_ERROR:
		return "batch operation needs compatible mode, which is disabled";
	case CU_FILE_IO_MAX_ERROR:
		return "GPUDirect Storage max error";
	}
	return "unknown cufile error";
}

#define IS_CUFILE_ERR(err) (abs((int)(err)) > CUFILEOP_BASE_ERR)
#define CUFILE_ERRSTR(err) cufileop_status_error((CUfileOpError)abs((int)(err)))
#define IS_CUDA_ERR(status) ((status).err == CU_FILE_CUDA_DRIVER_ERROR)
#define CU_FILE_CUDA_ERR(status) ((status).cu_err)

typedef struct CUfileError {
	CUfileOpError err;
	CUresult cu_err;
} CUfileError_t;

/* -- the driver's properties -- */

typedef enum CUfileDriverStatusFlags {
	CU_FILE_LUSTRE_SUPPORTED = 0,
	CU_FILE_WEKAFS_SUPPORTED = 1,
	CU_FILE_NFS_SUPPORTED = 2,
	CU_FILE_GPFS_SUPPORTED = 3,
	CU_FILE_NVME_SUPPORTED = 4,
	CU_FILE_NVMEOF_SUPPORTED = 5,
	CU_FILE_SCSI_SUPPORTED = 6,
	CU_FILE_SCALEFLUX_CSD_SUPPORTED = 7,
	CU_FILE_NVMESH_SUPPORTED = 8,
	CU_FILE_BEEGFS_SUPPORTED = 9,
	/* 10: reserved */
	CU_FILE_NVME_P2P_SUPPORTED = 11,
	CU_FILE_SCATEFS_SUPPORTED = 12,
	CU_FILE_VIRTIOFS_SUPPORTED = 13,
	CU_FILE_MAX_TARGET_TYPES = 14
} CUfileDriverStatusFlags_t;

typedef enum CUfileDriverControlFlags {
	CU_FILE_USE_POLL_MODE = 0,
	CU_FILE_ALLOW_COMPAT_MODE = 1
} CUfileDriverControlFlags_t;

typedef enum CUfileFeatureFlags {
	CU_FILE_DYN_ROUTING_SUPPORTED = 0,
	CU_FILE_BATCH_IO_SUPPORTED = 1,
	CU_FILE_STREAMS_SUPPORTED = 2,
	CU_FILE_PARALLEL_IO_SUPPORTED = 3,
	CU_FILE_P2P_SUPPORTED = 4
} CUfileFeatureFlags_t;

/* Numbers of bits; the calls take masks of them (CU_FILE_P2P_FLAG_*) in the same type. */
typedef enum CUfileP2PFlags {
	CUFILE_P2PDMA = 0,
	CUFILE_NVFS = 1,
	CUFILE_DMABUF = 2,
	CUFILE_C2C = 3,
	CUFILE_NVIDIA_PEERMEM = 4
} CUfileP2PFlags_t;

#define CU_FILE_P2P_FLAG_PCI_P2PDMA (1 << CUFILE_P2PDMA)
#define CU_FILE_P2P_FLAG_NVFS (1 << CUFILE_NVFS)
#define CU_FILE_P2P_FLAG_DMABUF (1 << CUFILE_DMABUF)
#define CU_FILE_P2P_FLAG_C2C (1 << CUFILE_C2C)

typedef struct CUfileDrvProps {
	struct {
		unsigned int major_version;	/* 0.0: no direct route */
		unsigned int minor_version;
		size_t poll_thresh_size;	/* KB */
		size_t max_direct_io_size;	/* KB */
		unsigned int dstatusflags;	/* bits numbered by CUfileDriverStatusFlags_t */
		unsigned int dcontrolflags;	/* bits numbered by CUfileDriverControlFlags_t */
	} nvfs;
	unsigned int fflags;			/* bits numbered by CUfileFeatureFlags_t */
	unsigned int max_device_cache_size;	/* KB */
	unsigned int per_buffer_cache_size;	/* KB */
	unsigned int max_device_pinned_mem_size; /* KB */
	unsigned int max_batch_io_size;		/* entries */
	unsigned int max_batch_io_timeout_msecs;
} CUfileDrvProps_t;

/* -- files -- */

typedef struct sockaddr sockaddr_t;

typedef struct cufileRDMAInfo {
	int version;
	int desc_len;
	const char *desc_str;
} cufileRDMAInfo_t;

#define CU_FILE_RDMA_REGISTER 1
#define CU_FILE_RDMA_RELAXED_ORDERING (1 << 1)

typedef struct CUfileFSOps {
	const char *(*fs_type)(const void *handle);
	int (*getRDMADeviceList)(const void *handle, sockaddr_t **hostaddrs);
	int (*getRDMADevicePriority)(const void *handle, char *, size_t, loff_t,
				     sockaddr_t *hostaddr);
	ssize_t (*read)(const void *handle, char *, size_t, loff_t, const cufileRDMAInfo_t *);
	ssize_t (*write)(const void *handle, const char *, size_t, loff_t,
			 const cufileRDMAInfo_t *);
} CUfileFSOps_t;

typedef enum CUfileFileHandleType {
	CU_FILE_HANDLE_TYPE_OPAQUE_FD = 1,
	CU_FILE_HANDLE_TYPE_OPAQUE_WIN32 = 2,
	CU_FILE_HANDLE_TYPE_USERSPACE_FS = 3,
	/* the spelling of a published walk-through; the same value */
	CU_FILE_handle_TYPE_OPAQUE_FD = 1
} CUfileFileHandleType;

typedef struct CUfileDescr {
	CUfileFileHandleType type;
	union {
		union {
			int fd;
			void *handle;
		} handle;
		void *cookie;		/* of the same walk-through: the descriptor, cast */
	};
	const CUfileFSOps_t *fs_ops;	/* CU_FILE_HANDLE_TYPE_USERSPACE_FS only */
} CUfileDescr_t;

typedef void *CUfileHandle_t;

/* One piece of memory of cuFileReadv and cuFileWritev. */
typedef struct CUfileIOVec {
	void *base;
	size_t len;
} CUfileIOVec_t;

/* -- batches: types -- */

typedef enum CUfileOpcode {
	CUFILE_READ = 0,
	CUFILE_WRITE = 1
} CUfileOpcode_t;

typedef enum CUFILEStatus_enum {
	CUFILE_WAITING = 0x01,
	CUFILE_PENDING = 0x02,
	CUFILE_INVALID = 0x04,
	CUFILE_CANCELED = 0x08,
	CUFILE_COMPLETE = 0x10,
	CUFILE_TIMEOUT = 0x20,
	CUFILE_FAILED = 0x40
} CUfileStatus_t;

typedef enum cufileBatchMode {
	CUFILE_BATCH = 1
} CUfileBatchMode_t;

typedef struct CUfileIOParams {
	CUfileBatchMode_t mode;
	union {
		struct {
			void *devPtr_base;
			off_t file_offset;
			off_t devPtr_offset;
			size_t size;
		} batch;
	} u;
	CUfileHandle_t fh;
	CUfileOpcode_t opcode;
	void *cookie;
} CUfileIOParams_t;

typedef struct CUfileIOEvents {
	void *cookie;
	CUfileStatus_t status;
	size_t ret;		/* bytes, or a negative errno as a size_t */
} CUfileIOEvents_t;

typedef void *CUfileBatchHandle_t;

/* -- streams: what the caller promises of a registered stream -- */

#define CU_FILE_STREAM_FIXED_BUF_OFFSET 1
#define CU_FILE_STREAM_FIXED_FILE_OFFSET 2
#define CU_FILE_STREAM_FIXED_FILE_SIZE 4
#define CU_FILE_STREAM_PAGE_ALIGNED_INPUTS 8

/* -- parameters: types -- */

typedef enum CUFileSizeTConfigParameter_t {
	CUFILE_PARAM_PROFILE_STATS = 0,
	CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH = 1,
	CUFILE_PARAM_EXECUTION_MAX_IO_THREADS = 2,
	CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB = 3,
	CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM = 4,
	CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB = 5,
	CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB = 6,
	CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB = 7,
	CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB = 8,
	CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE = 9,
	CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB = 10,
	CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS = 11
} CUFileSizeTConfigParameter_t;

typedef enum CUFileBoolConfigParameter_t {
	CUFILE_PARAM_PROPERTIES_USE_POLL_MODE = 0,
	CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE = 1,
	CUFILE_PARAM_FORCE_COMPAT_MODE = 2,
	CUFILE_PARAM_FS_MISC_API_CHECK_AGGRESSIVE = 3,
	CUFILE_PARAM_EXECUTION_PARALLEL_IO = 4,
	CUFILE_PARAM_PROFILE_NVTX = 5,
	CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY = 6,
	CUFILE_PARAM_USE_PCIP2PDMA = 7,
	CUFILE_PARAM_PREFER_IO_URING = 8,
	CUFILE_PARAM_FORCE_ODIRECT_MODE = 9,
	CUFILE_PARAM_SKIP_TOPOLOGY_DETECTION = 10,
	CUFILE_PARAM_STREAM_MEMOPS_BYPASS = 11
} CUFileBoolConfigParameter_t;

typedef enum CUFileStringConfigParameter_t {
	CUFILE_PARAM_LOGGING_LEVEL = 0,
	CUFILE_PARAM_ENV_LOGFILE_PATH = 1,
	CUFILE_PARAM_LOG_DIR = 2
} CUFileStringConfigParameter_t;

typedef enum CUFileArrayConfigParameter_t {
	CUFILE_PARAM_POSIX_POOL_SLAB_SIZE_KB = 0,
	CUFILE_PARAM_POSIX_POOL_SLAB_COUNT = 1
} CUFileArrayConfigParameter_t;

/* -- statistics: types, in the layout of 1.15 .. 1.18 -- */

typedef struct CUfileOpCounter {
	uint64_t ok;
	uint64_t err;
} CUfileOpCounter_t;

typedef struct CUfileStatsLevel1 {
	CUfileOpCounter_t read_ops;
	CUfileOpCounter_t write_ops;
	CUfileOpCounter_t hdl_register_ops;
	CUfileOpCounter_t hdl_deregister_ops;
	CUfileOpCounter_t buf_register_ops;
	CUfileOpCounter_t buf_deregister_ops;
	uint64_t read_bytes;
	uint64_t write_bytes;
	uint64_t read_bw_bytes_per_sec;
	uint64_t write_bw_bytes_per_sec;
	uint64_t read_lat_avg_us;
	uint64_t write_lat_avg_us;
	uint64_t read_ops_per_sec;
	uint64_t write_ops_per_sec;
	uint64_t read_lat_sum_us;
	uint64_t write_lat_sum_us;
	CUfileOpCounter_t batch_submit_ops;
	CUfileOpCounter_t batch_complete_ops;
	CUfileOpCounter_t batch_setup_ops;
	CUfileOpCounter_t batch_cancel_ops;
	CUfileOpCounter_t batch_destroy_ops;
	CUfileOpCounter_t batch_enqueued_ops;
	CUfileOpCounter_t batch_posix_enqueued_ops;
	CUfileOpCounter_t batch_processed_ops;
	CUfileOpCounter_t batch_posix_processed_ops;
	CUfileOpCounter_t batch_nvfs_submit_ops;
	CUfileOpCounter_t batch_p2p_submit_ops;
	CUfileOpCounter_t batch_aio_submit_ops;
	CUfileOpCounter_t batch_iouring_submit_ops;
	CUfileOpCounter_t batch_mixed_io_submit_ops;
	CUfileOpCounter_t batch_total_submit_ops;
	uint64_t batch_read_bytes;
	uint64_t batch_write_bytes;
	uint64_t batch_read_bw_bytes;
	uint64_t batch_write_bw_bytes;
	uint64_t batch_submit_lat_avg_us;
	uint64_t batch_completion_lat_avg_us;
	uint64_t batch_submit_ops_per_sec;
	uint64_t batch_complete_ops_per_sec;
	uint64_t batch_submit_lat_sum_us;
	uint64_t batch_completion_lat_sum_us;
	uint64_t last_batch_read_bytes;
	uint64_t last_batch_write_bytes;
} CUfileStatsLevel1_t;

typedef struct CUfileStatsLevel2 {
	CUfileStatsLevel1_t basic;
	uint64_t read_size_kb_hist[32];
	uint64_t write_size_kb_hist[32];
} CUfileStatsLevel2_t;

#define CUFILE_GPU_UUID_LEN 16
#define CUFILE_STATS_MAX_GPUS 16

typedef struct CUfilePerGpuStats {
	char uuid[CUFILE_GPU_UUID_LEN];
	uint64_t read_bytes;
	uint64_t read_bw_bytes_per_sec;
	uint64_t read_utilization;
	uint64_t read_duration_us;
	uint64_t n_total_reads;
	uint64_t n_p2p_reads;
	uint64_t n_nvfs_reads;
	uint64_t n_posix_reads;
	uint64_t n_unaligned_reads;
	uint64_t n_dr_reads;
	uint64_t n_sparse_regions;
	uint64_t n_inline_regions;
	uint64_t n_reads_err;
	uint64_t writes_bytes;
	uint64_t write_bw_bytes_per_sec;
	uint64_t write_utilization;
	uint64_t write_duration_us;
	uint64_t n_total_writes;
	uint64_t n_p2p_writes;
	uint64_t n_nvfs_writes;
	uint64_t n_posix_writes;
	uint64_t n_unaligned_writes;
	uint64_t n_dr_writes;
	uint64_t n_writes_err;
	uint64_t n_mmap;
	uint64_t n_mmap_ok;
	uint64_t n_mmap_err;
	uint64_t n_mmap_free;
	uint64_t reg_bytes;
} CUfilePerGpuStats_t;

typedef struct CUfileStatsLevel3 {
	CUfileStatsLevel2_t detailed;
	uint32_t num_gpus;
	CUfilePerGpuStats_t per_gpu_stats[CUFILE_STATS_MAX_GPUS];
} CUfileStatsLevel3_t;

/*
 * Takes a use of the library; the first opens it: configuration, CUDA, nvidia-fs. The other
 * functions do that by themselves. Blocks. CU_FILE_CUDA_DRIVER_ERROR without a GPU,
 * CU_FILE_DRIVER_NOT_INITIALIZED when no direct route exists and falling back is forbidden.
 */
CUfileError_t cuFileDriverOpen(void);

/*
 * Gives a use back; the last one waits for requests in flight (they end with
 * CU_FILE_DRIVER_CLOSING) and releases all handles and buffers.
 */
CUfileError_t cuFileDriverClose(void);
CUfileError_t cuFileDriverClose_v2(void);
#define cuFileDriverClose cuFileDriverClose_v2

/* Uses taken and not given back; an open by another function counts as one. */
long cuFileUseCount(void);

CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *props);

/* Kept for the direct routes that can poll; threshold_kb: a multiple of 4. */
CUfileError_t cuFileDriverSetPollMode(bool poll, size_t poll_threshold_size_kb);

/* The largest piece of one kernel call, KB; taken to 64 .. 16384 in steps of 64. */
CUfileError_t cuFileDriverSetMaxDirectIOSize(size_t max_direct_io_size_kb);

/* GPU memory that the library may hold for staging, KB, per GPU. */
CUfileError_t cuFileDriverSetMaxCacheSize(size_t max_cache_size_kb);

/* GPU memory that may be pinned, buffers and staging together, KB, per GPU. */
CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t max_pinned_size_kb);

/* 1000 * major + 10 * minor of the API that this library has. */
CUfileError_t cuFileGetVersion(int *version);

/*
 * Makes a file known. The caller keeps its descriptor, which may be open with or without
 * O_DIRECT; the library opens its own on the same file. fh and descr belong to the caller;
 * *fh is valid until cuFileHandleDeregister or the last close.
 */
CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *descr);

/* Forgets it. Requests in flight end as if it were still there. */
void cuFileHandleDeregister(CUfileHandle_t fh);

/*
 * Pins a range of GPU memory for direct I/O (or notes a range of host memory). The range
 * stays the caller's and must be deregistered before it is freed. flags: no effect.
 */
CUfileError_t cuFileBufRegister(const void *bufPtr_base, size_t length, int flags);

/* Unpins it; waits for requests in flight on it. */
CUfileError_t cuFileBufDeregister(const void *bufPtr_base);

/*
 * Moves `size` bytes between the file at `file_offset` and memory at bufPtr_base +
 * bufPtr_offset, whatever their alignment. Blocks until they are there (not until they
 * are durable: fsync does that). Ordered with no CUDA stream. Returns the bytes moved, less
 * than `size` only at the end of the file; or -1 with errno set to a system errno or to a
 * CUfileOpError. ogds_last_io() of opengds.h tells which way they went.
 */
ssize_t cuFileRead(CUfileHandle_t fh, void *bufPtr_base, size_t size, off_t file_offset,
		   off_t bufPtr_offset);
ssize_t cuFileWrite(CUfileHandle_t fh, const void *bufPtr_base, size_t size, off_t file_offset,
		    off_t bufPtr_offset);

/*
 * As the two above, for one extent of the file and several pieces of memory, in order. flags
 * must be 0.
 */
ssize_t cuFileReadv(CUfileHandle_t fh, const CUfileIOVec_t *iov, size_t iovcnt, off_t file_offset,
		    unsigned int flags);
ssize_t cuFileWritev(CUfileHandle_t fh, const CUfileIOVec_t *iov, size_t iovcnt, off_t file_offset,
		     unsigned int flags);

/*
 * Batches. A handle takes up to `nr` entries at a time and serves any number of submissions.
 * params are copied. Entries run in no order. GetStatus waits for min_nr events or the
 * timeout (NULL: without limit), reports each once, and sets *nr to their number; on entry
 * *nr is the room in `events`. Cancel drops what has not begun and waits for what has; its
 * events can be asked for until the next submission. Destroy does that and frees.
 */
CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *batch, unsigned int nr);
CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch, unsigned int nr,
				  CUfileIOParams_t *params, unsigned int flags);
CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t batch, unsigned int min_nr,
				     unsigned int *nr, CUfileIOEvents_t *events,
				     struct timespec *timeout);
CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t batch);
void cuFileBatchIODestroy(CUfileBatchHandle_t batch);

/*
 * In stream order: after what was queued before, and before what is queued after. Size and
 * offsets are read when the operation's turn comes (unless the stream was registered with
 * the promise that they are fixed); *size_p must hold the most it can become already now.
 * All four pointers must stay valid until the stream is past the operation; then *bytes_p
 * is the bytes moved, or minus an errno or CUfileOpError.
 */
CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void *bufPtr_base, size_t *size_p,
			      off_t *file_offset_p, off_t *bufPtr_offset_p, ssize_t *bytes_read_p,
			      CUstream stream);
CUfileError_t cuFileWriteAsync(CUfileHandle_t fh, void *bufPtr_base, size_t *size_p,
			       off_t *file_offset_p, off_t *bufPtr_offset_p,
			       ssize_t *bytes_written_p, CUstream stream);
/* flags: CU_FILE_STREAM_*; both synchronise the stream. Registering is not needed. */
CUfileError_t cuFileStreamRegister(CUstream stream, unsigned int flags);
CUfileError_t cuFileStreamDeregister(CUstream stream);

/*
 * Parameters stand in for the keys of cufile.json. Set: while the library is closed only
 * (CU_FILE_DRIVER_ALREADY_OPEN otherwise), for the next open. Get: what is in force; while
 * the library is closed what was set, else the default.
 */
CUfileError_t cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t *value);
CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t param, bool *value);
CUfileError_t cuFileGetParameterString(CUFileStringConfigParameter_t param, char *desc_str,
				       int len);
CUfileError_t cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t value);
CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t param, bool value);
CUfileError_t cuFileSetParameterString(CUFileStringConfigParameter_t param, const char *desc_str);
CUfileError_t cuFileGetParameterMinMaxValue(CUFileSizeTConfigParameter_t param, size_t *min_value,
					    size_t *max_value);
/* Slabs of host and of GPU memory for requests that are not direct; sizes in KB. */
CUfileError_t cuFileSetParameterPosixPoolSlabArray(const size_t *size_values,
						   const size_t *count_values, int len);
CUfileError_t cuFileGetParameterPosixPoolSlabArray(size_t *size_values, size_t *count_values,
						   int len);
CUfileError_t cuFileSetParameterGpuBounceBufferSlabArray(const size_t *size_values,
							 const size_t *count_values, int len);
CUfileError_t cuFileGetParameterGpuBounceBufferSlabArray(size_t *size_values, size_t *count_values,
							 int len);

CUfileError_t cuFileDriverSetP2PFlags(CUfileDriverStatusFlags_t fsType, CUfileP2PFlags_t flags);
CUfileError_t cuFileDriverGetP2PFlags(CUfileDriverStatusFlags_t fsType, CUfileP2PFlags_t *flags);

/* Statistics. Level 0: off; 1: counters; 2: and size histograms; 3: and by GPU. */
CUfileError_t cuFileSetStatsLevel(int level);
CUfileError_t cuFileGetStatsLevel(int *level);
CUfileError_t cuFileStatsStart(void);
CUfileError_t cuFileStatsStop(void);
CUfileError_t cuFileStatsReset(void);
CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *stats);
CUfileError_t cuFileGetStatsL2(CUfileStatsLevel2_t *stats);
CUfileError_t cuFileGetStatsL3(CUfileStatsLevel3_t *stats);

/* Size of BAR1 of a GPU, KB. */
CUfileError_t cuFileGetBARSizeInKB(int gpuIndex, size_t *barSize);

/* Writes what the machine's PCI tree holds of GPUs and drives, as JSON below a comment line. */
CUfileError_t cuFileExportPCIeTopology(const char *filename);

#pragma GCC visibility pop

CUFILE_ASSERT(sizeof(CUfileIOVec_t) == 16);
CUFILE_ASSERT(sizeof(CUfileStatsLevel1_t) == 512);
CUFILE_ASSERT(offsetof(CUfileStatsLevel1_t, batch_submit_ops) == 176);
CUFILE_ASSERT(offsetof(CUfileStatsLevel1_t, batch_read_bytes) == 416);
CUFILE_ASSERT(sizeof(CUfileStatsLevel2_t) == 1024);
CUFILE_ASSERT(sizeof(CUfilePerGpuStats_t) == 248);
CUFILE_ASSERT(offsetof(CUfilePerGpuStats_t, writes_bytes) == 120);
CUFILE_ASSERT(offsetof(CUfileStatsLevel3_t, per_gpu_stats) == 1032);
CUFILE_ASSERT(sizeof(CUfileStatsLevel3_t) == 5000);
CUFILE_ASSERT(sizeof(CUfileOpError) == 4);
CUFILE_ASSERT(sizeof(CUfileError_t) == 8);
CUFILE_ASSERT(offsetof(CUfileError_t, cu_err) == 4);
CUFILE_ASSERT(sizeof(CUfileDescr_t) == 24);
CUFILE_ASSERT(offsetof(CUfileDescr_t, handle) == 8);
CUFILE_ASSERT(offsetof(CUfileDescr_t, cookie) == 8);
CUFILE_ASSERT(offsetof(CUfileDescr_t, fs_ops) == 16);
CUFILE_ASSERT(sizeof(CUfileFSOps_t) == 40);
CUFILE_ASSERT(sizeof(cufileRDMAInfo_t) == 16);
CUFILE_ASSERT(sizeof(CUfileDrvProps_t) == 56);
CUFILE_ASSERT(offsetof(CUfileDrvProps_t, nvfs.poll_thresh_size) == 8);
CUFILE_ASSERT(offsetof(CUfileDrvProps_t, nvfs.dstatusflags) == 24);
CUFILE_ASSERT(offsetof(CUfileDrvProps_t, fflags) == 32);
CUFILE_ASSERT(offsetof(CUfileDrvProps_t, max_batch_io_timeout_msecs) == 52);
CUFILE_ASSERT(sizeof(CUfileIOParams_t) == 64);
CUFILE_ASSERT(offsetof(CUfileIOParams_t, u.batch.size) == 32);
CUFILE_ASSERT(offsetof(CUfileIOParams_t, fh) == 40);
CUFILE_ASSERT(offsetof(CUfileIOParams_t, cookie) == 56);
CUFILE_ASSERT(sizeof(CUfileIOEvents_t) == 24);
CUFILE_ASSERT(offsetof(CUfileIOEvents_t, ret) == 16);

#ifdef __cplusplus
}
#endif

#endif /* OPENGDS_CUFILE_H */
