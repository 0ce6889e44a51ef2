// SPDX-License-Identifier: MIT
/*
 * report_platform.c - gdscheck -p and -v: the report that scripts parse, in the layout they know.
 *
 * Each line of -p begins with a blank. All of it is what the stack is capable of, so a line of our
 * own at the end says that nothing is proven by it.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cufile_load.h"
#include "gdscheck.h"
#include "gpu.h"
#include "read.h"

#define MINIMUM "2.12"		/* of nvidia-fs: what the library asks for */
#define SLABS 8

struct report {
	FILE *out;
	struct gc_cufile cufile;
	CUfileDrvProps_t props;
	CUfileError_t opened;
	bool compat;
	struct facts_nvfs nvfs;
	bool has_nvfs;
};

/* -- head -- */

static void versions(const struct report *r, const char *before)
{
	int v = 0;

	if (r->cufile.version && r->cufile.version(&v).err == CU_FILE_SUCCESS)
		fprintf(r->out, "%sGDS release version: %d.%d.0.0\n", before, v / 1000,
			v % 1000 / 10);
	else
		fprintf(r->out, "%sGDS release version: unknown\n", before);
	if (r->has_nvfs)
		fprintf(r->out, "%snvidia_fs version:  %u.%u nvidia_fs minimum version: " MINIMUM "\n",
			before, r->nvfs.major, r->nvfs.minor);
	else
		fprintf(r->out, "%snvidia_fs minimum version: " MINIMUM "\n", before);
}

static void title(const struct report *r, const char *text)
{
	static const char rule[] = "================================";
	int n = (int)strlen(text);

	fprintf(r->out, " %.*s\n %s\n %.*s\n", n, rule, text, n, rule);
}

static void environment(const struct report *r)
{
	const char *const *e;

	title(r, "ENVIRONMENT:");
	for (e = (const char *const *)environ; *e; e++)
		if (!strncmp(*e, "CUFILE_", 7) || !strncmp(*e, "OPENGDS_", 8))
			fprintf(r->out, " %.*s : %s\n", (int)strcspn(*e, "="), *e,
				strchr(*e, '=') ? strchr(*e, '=') + 1 : "");
}

/* -- which ways a kind of storage has -- */

static void driver_row(const struct report *r, const char *name, int type)
{
	CUfileP2PFlags_t flags = 0;
	bool p2pdma = false, nvfs;

	nvfs = r->props.nvfs.major_version && r->props.nvfs.dstatusflags & 1u << type;
	if (r->opened.err == CU_FILE_SUCCESS && r->cufile.p2p_flags &&
	    r->cufile.p2p_flags((CUfileDriverStatusFlags_t)type, &flags).err == CU_FILE_SUCCESS)
		p2pdma = (int)flags & CU_FILE_P2P_FLAG_PCI_P2PDMA;
	fprintf(r->out, " %-18s : %s%s%s%s%s%s\n", name, p2pdma ? "p2pdma" : "",
		p2pdma && (nvfs || r->compat) ? ", " : "", nvfs ? "nvfs" : "",
		nvfs && r->compat ? ", " : "", r->compat ? "compat" : "",
		!p2pdma && !nvfs && !r->compat ? "Unsupported" : "");
}

static void drivers(const struct report *r)
{
	static const struct { const char *name; int type; } rows[] = {
		{ "NVMe", CU_FILE_NVME_SUPPORTED },
		{ "NVMeOF", CU_FILE_NVMEOF_SUPPORTED },
		{ "SCSI", CU_FILE_SCSI_SUPPORTED },
		{ "ScaleFlux CSD", CU_FILE_SCALEFLUX_CSD_SUPPORTED },
		{ "NVMesh", CU_FILE_NVMESH_SUPPORTED },
		{ "DDN EXAScaler", CU_FILE_LUSTRE_SUPPORTED },
		{ "IBM Spectrum Scale", CU_FILE_GPFS_SUPPORTED },
		{ "NFS", CU_FILE_NFS_SUPPORTED },
		{ "BeeGFS", CU_FILE_BEEGFS_SUPPORTED },
		{ "ScaTeFS", CU_FILE_SCATEFS_SUPPORTED },
		{ "VIRTIOFS", CU_FILE_VIRTIOFS_SUPPORTED },
		{ "WekaFS", CU_FILE_WEKAFS_SUPPORTED },
	};
	void *rdma = dlopen("libcufile_rdma.so", RTLD_LAZY | RTLD_LOCAL);
	size_t i;

	title(r, "DRIVER CONFIGURATION:");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		driver_row(r, rows[i].name, rows[i].type);
	/* a way of its own of the vendor's library, which has no flag */
	fprintf(r->out, " %-18s : %s\n", "Userspace RDMA", "Unsupported");
	fprintf(r->out, " --Mellanox PeerDirect : %s\n",
		facts_there("", "sys/kernel/mm/memory_peers/nv_mem", "version") ? "Enabled" : "Disabled");
	fprintf(r->out, " --rdma library        : %s (libcufile_rdma.so)\n",
		rdma ? "Loaded" : "Not Loaded");
	fprintf(r->out, " --rdma devices        : Not configured\n");
	fprintf(r->out, " --rdma_device_status  : Up: 0 Down: 0\n");
	if (rdma)
		dlclose(rdma);
}

/* -- the configuration that is in force -- */

enum kind {
	SIZE,		/* a number of cuFileGetParameterSizeT */
	BOOL,
	SLAB_SIZES, SLAB_COUNTS, BOUNCE_SIZES, BOUNCE_COUNTS,
	TEXT,		/* a key that has no effect here: what is in force is this text */
};

static const struct {
	const char *key;
	enum kind kind;
	int param;
	const char *text;
} settings[] = {
	{ "properties.use_pci_p2pdma", BOOL, CUFILE_PARAM_USE_PCIP2PDMA },
	{ "properties.use_compat_mode", BOOL, CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE },
	{ "properties.force_compat_mode", BOOL, CUFILE_PARAM_FORCE_COMPAT_MODE },
	{ "properties.gds_rdma_write_support", TEXT, 0, "false" },
	{ "properties.use_poll_mode", BOOL, CUFILE_PARAM_PROPERTIES_USE_POLL_MODE },
	{ "properties.poll_mode_max_size_kb", SIZE, CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB },
	{ "properties.max_batch_io_size", SIZE, CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE },
	{ "properties.max_batch_io_timeout_msecs", SIZE, CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS },
	{ "properties.max_direct_io_size_kb", SIZE, CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB },
	{ "properties.max_device_cache_size_kb", SIZE,
	  CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB },
	{ "properties.per_buffer_cache_size_kb", SIZE,
	  CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB },
	{ "properties.max_device_pinned_mem_size_kb", SIZE,
	  CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB },
	{ "properties.posix_pool_slab_size_kb", SLAB_SIZES, 0 },
	{ "properties.posix_pool_slab_count", SLAB_COUNTS, 0 },
	{ "properties.gpu_bounce_buffer_slab_size_kb", BOUNCE_SIZES, 0 },
	{ "properties.gpu_bounce_buffer_slab_count", BOUNCE_COUNTS, 0 },
	{ "properties.rdma_peer_affinity_policy", TEXT, 0, "RoundRobin" },
	{ "properties.rdma_dynamic_routing", TEXT, 0, "false" },
	{ "fs.generic.posix_unaligned_writes", TEXT, 0, "false" },
	{ "fs.lustre.posix_gds_min_kb", TEXT, -1, "0" },
	{ "fs.lustre.use_pci_p2pdma", TEXT, 0, "false" },
	{ "fs.beegfs.posix_gds_min_kb", TEXT, -1, "0" },
	{ "fs.beegfs.use_pci_p2pdma", TEXT, 0, "false" },
	{ "fs.scatefs.posix_gds_min_kb", TEXT, -1, "0" },
	{ "fs.scatefs.use_pci_p2pdma", TEXT, 0, "false" },
	{ "fs.weka.rdma_write_support", TEXT, 0, "false" },
	{ "fs.nfs.use_pci_p2pdma", TEXT, 0, "false" },
	{ "fs.gpfs.gds_write_support", TEXT, 0, "false" },
	{ "fs.gpfs.gds_async_support", TEXT, 0, "false" },
	{ "fs.gpfs.use_pci_p2pdma", TEXT, 0, "false" },
	{ "fs.virtiofs.use_pci_p2pdma", TEXT, 0, "false" },
	{ "profile.nvtx", BOOL, CUFILE_PARAM_PROFILE_NVTX },
	{ "profile.cufile_stats", SIZE, CUFILE_PARAM_PROFILE_STATS },
	{ "miscellaneous.api_check_aggressive", BOOL, CUFILE_PARAM_FS_MISC_API_CHECK_AGGRESSIVE },
	{ "execution.max_io_threads", SIZE, CUFILE_PARAM_EXECUTION_MAX_IO_THREADS },
	{ "execution.max_io_queue_depth", SIZE, CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH },
	{ "execution.parallel_io", BOOL, CUFILE_PARAM_EXECUTION_PARALLEL_IO },
	{ "execution.min_io_threshold_size_kb", SIZE, CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB },
	{ "execution.max_request_parallelism", SIZE, CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM },
	{ "properties.force_odirect_mode", BOOL, CUFILE_PARAM_FORCE_ODIRECT_MODE },
	{ "properties.prefer_iouring", BOOL, CUFILE_PARAM_PREFER_IO_URING },
	{ "block.raid.use_pci_p2pdma", TEXT, 0, "false" },
	{ "block.nvme.use_pci_p2pdma", TEXT, 0, "false" },
	{ "block.nvmeof.use_pci_p2pdma", TEXT, 0, "false" },
};

/* The call wants the number of slabs exactly: it is tried. */
static void slabs(const struct report *r, const char *key, bool bounce, bool counts)
{
	CUfileError_t (*get)(size_t *sizes, size_t *counts, int len);
	size_t size[SLABS], count[SLABS];
	int n, i;

	get = bounce ? r->cufile.get_bounce : r->cufile.get_posix;
	for (n = SLABS; get && n; n--)
		if (get(size, count, n).err == CU_FILE_SUCCESS)
			break;
	if (!get || !n)
		return;
	fprintf(r->out, " %s :", key);
	for (i = 0; i < n; i++)
		fprintf(r->out, " %zu", counts ? count[i] : size[i]);
	fputs("\n", r->out);
}

static void setting(const struct report *r, size_t i)
{
	size_t n;
	bool b;

	switch (settings[i].kind) {
	case SIZE:
		if (r->cufile.get_size &&
		    r->cufile.get_size((CUFileSizeTConfigParameter_t)settings[i].param, &n).err ==
			    CU_FILE_SUCCESS)
			fprintf(r->out, " %s : %zu\n", settings[i].key, n);
		break;
	case BOOL:
		if (r->cufile.get_bool &&
		    r->cufile.get_bool((CUFileBoolConfigParameter_t)settings[i].param, &b).err ==
			    CU_FILE_SUCCESS)
			fprintf(r->out, " %s : %s\n", settings[i].key, b ? "true" : "false");
		break;
	case TEXT:
		/* param -1: the vendor has no blank in front of this colon */
		fprintf(r->out, " %s%s: %s\n", settings[i].key, settings[i].param < 0 ? "" : " ",
			settings[i].text);
		break;
	default:
		slabs(r, settings[i].key, settings[i].kind >= BOUNCE_SIZES,
		      settings[i].kind == SLAB_COUNTS || settings[i].kind == BOUNCE_COUNTS);
	}
}

static void configuration(const struct report *r)
{
	size_t i;

	title(r, "CUFILE CONFIGURATION:");
	for (i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		setting(r, i);
}

/* -- GPUs, platform -- */

/* Disabled, Pass-through or Enabled, by the group of one function; without one by all */
static const char *iommu(const char *address)
{
	char group[FACTS_NAME], path[FACTS_PATH], type[FACTS_NAME];

	if (!address[0] || facts_pci_target("", address, "iommu_group", group, sizeof(group)))
		return "Disabled";
	snprintf(path, sizeof(path), "sys/kernel/iommu_groups/%s/type", group);
	if (facts_read("", path, type, sizeof(type)) < 0)
		return "Enabled";
	return strcmp(type, "identity") ? "Enabled" : "Pass-through";
}

static int cuda_name(int dev, char *name, size_t len, int *version)
{
	int (*device)(int *out, int index), (*get)(char *out, int n, int d), (*ver)(int *v);
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *at;
	int d, ret = -1;

	if (!lib)
		return -1;
	at = dlsym(lib, "cuDeviceGet");
	memcpy(&device, &at, sizeof(at));
	at = dlsym(lib, "cuDeviceGetName");
	memcpy(&get, &at, sizeof(at));
	at = dlsym(lib, "cuDriverGetVersion");
	memcpy(&ver, &at, sizeof(at));
	if (ver && ver(version))
		*version = 0;
	if (device && get && !device(&d, dev) && !get(name, (int)len, d))
		ret = 0;
	dlclose(lib);
	return ret;
}

static int gpus(const struct report *r)
{
	char name[FACTS_PATH], address[FACTS_NAME], what[GC_TEXT];
	uint64_t pdevinfo, bar1;
	int i, n, version = 0;

	title(r, "GPU INFO:");
	if (gpu->open(what, sizeof(what))) {
		fprintf(r->out, " no GPU can be used: %s\n", what);
		return 0;
	}
	n = gpu->count();
	for (i = 0; i < n; i++) {
		bar1 = 0;
		if (cuda_name(i, name, sizeof(name), &version))
			snprintf(name, sizeof(name), "unknown");
		if (gpu->pci(i, &pdevinfo, address, sizeof(address)) ||
		    facts_pci_bar1("", address, &bar1))
			address[0] = '\0';
		fprintf(r->out, " GPU index %d %s bar:1 bar size (MiB):%llu %s, IOMMU State: %s\n",
			i, name, (unsigned long long)bar1 >> 20,
			bar1 ? "supports GDS" : "does not support GDS", iommu(address));
	}
	return version;
}

static void driver_status(const struct report *r)
{
	struct facts_gpu_driver d;

	if (facts_gpu_driver("", &d))
		fputs(" Nvidia Driver Info Status: Not installed\n", r->out);
	else
		fprintf(r->out, " Nvidia Driver Info Status: %s\n",
			d.open ? "Supported(Nvidia Open Driver Installed)" :
				 "Supported(Nvidia Proprietary Driver Installed)");
}

static int groups(void *arg, const char *name)
{
	return 1;
}

static void platform(const struct report *r, int cuda)
{
	char board[FACTS_NAME];
	struct utsname u;

	if (uname(&u))
		memset(&u, 0, sizeof(u));
	if (facts_read("", "sys/class/dmi/id/product_name", board, sizeof(board)) <= 0)
		snprintf(board, sizeof(board), "unknown");
	title(r, "PLATFORM INFO:");
	fprintf(r->out, " IOMMU: %s\n",
		facts_entries("", "sys/kernel/iommu_groups", groups, NULL) > 0 ? "enabled" : "disabled");
	driver_status(r);
	if (cuda)
		fprintf(r->out, " Cuda Driver Version Installed:  %d\n", cuda);
	fprintf(r->out, " Platform: %s, Arch: %s(%s %s)\n", board, u.machine, u.sysname, u.release);
}

/* -- the commands -- */

static int begin(struct report *r, FILE *out)
{
	char why[GC_TEXT];

	memset(r, 0, sizeof(*r));
	r->out = out;
	if (gc_cufile_load(&r->cufile, why, sizeof(why))) {
		fprintf(stderr, "gdscheck: %s\n", why);
		return GC_EXIT_ERROR;
	}
	r->has_nvfs = !facts_nvfs_find("", &r->nvfs);
	return GC_EXIT_OK;
}

int gc_platform(FILE *out)
{
	struct utsname u;
	struct report r;
	int cuda;

	if (begin(&r, out))
		return GC_EXIT_ERROR;
	r.opened = r.cufile.open();
	if (r.opened.err == CU_FILE_SUCCESS)
		r.cufile.properties(&r.props);
	r.compat = r.props.nvfs.dcontrolflags & 1u << CU_FILE_ALLOW_COMPAT_MODE;
	versions(&r, " ");
	fprintf(out, " Platform: %s\n", uname(&u) ? "unknown" : u.machine);
	environment(&r);
	drivers(&r);
	configuration(&r);
	cuda = gpus(&r);
	platform(&r, cuda);
	if (r.opened.err != CU_FILE_SUCCESS) {
		fprintf(out, " Platform verification error:\n %s\n", gc_cufile_text(r.opened));
		fputs(" route: not proven, run --prove\n", out);
		return GC_EXIT_ERROR;
	}
	fputs(" Platform verification succeeded\n route: not proven, run --prove\n", out);
	r.cufile.close();
	return GC_EXIT_OK;
}

int gc_versions(FILE *out)
{
	struct report r;

	if (begin(&r, out))
		return GC_EXIT_ERROR;
	versions(&r, "");
	return GC_EXIT_OK;
}

/* -V: clients of other file systems, by the files in which their modules tell their version */
int gc_clients(FILE *out)
{
	static const struct { const char *name, *file; } clients[] = {
		{ "OFED", "sys/module/mlx_compat/version" },
		{ "Lustre", "sys/fs/lustre/version" },
		{ "WekaFS", "sys/module/wekafsio/version" },
		{ "BeeGFS", "sys/module/beegfs/version" },
		{ "Spectrum Scale", "sys/module/mmfs26/version" },
	};
	char text[FACTS_PATH];
	size_t i;

	for (i = 0; i < sizeof(clients) / sizeof(clients[0]); i++)
		fprintf(out, "%-15s: %s\n", clients[i].name,
			facts_read("", clients[i].file, text, sizeof(text)) > 0 ? text :
										  "not loaded");
	return GC_EXIT_OK;
}
