// SPDX-License-Identifier: MIT
/*
 * sim_rm.c - checks of the simulated GPU's resource manager in a guest, as root, with two cards:
 *
 *   sim_rm check    requests that are right and wrong, and what is seen of memory
 *   sim_rm gone     maps memory of card 0, says "held", waits for a line on stdin while that card
 *                   is unbound: mappings fault, requests answer, everything can be given back
 *
 * The requests are made as lib/rm makes them, and by its layouts, but none of its code. Memory is
 * looked at by the card's BAR in sysfs, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu.h"
#include "gpu_sim.h"
#include "rm/wire.h"
#include "t_gpu.h"
#include "t_random.h"
#include "t_vram.h"

#define K 1024UL
#define M (1024 * K)

/* Names that we choose. */
enum { DEVICE = 0x70000001, SUBDEVICE, OTHER_DEVICE, NAME, SECOND, WRONG };

#define CHECK(cond) ((cond) ? (void)0 : t_die("line %d: not true: %s", __LINE__, #cond))
#define IS(want, call) is(__LINE__, #call, want, call)

/* The memory behind a device pointer, by its IPC handle. */
struct memory {
	uint32_t client, object;
	uint64_t off, size;
};

static int control;		/* /dev/nvidiactl */
static uint32_t client, ids[2];
static uint64_t rnd = 7;

static void is(int line, const char *call, long want, long got)
{
	if (want != got)
		t_die("line %d: %s: %ld (0x%lx), wanted %ld", line, call, got, got, want);
}

/* -- requests: a status, or -errno -- */

static long alloc_on(int fd, uint32_t c, uint32_t parent, uint32_t *object, uint32_t class,
		     void *params, uint32_t size)
{
	struct rm_alloc a = { .client = c, .parent = parent, .object = *object, .class = class,
			      .params = (uintptr_t)params, .size = size };

	if (ioctl(fd, RM_IOC_ALLOC, &a))
		return -errno;
	*object = a.object;
	return a.status;
}

static long device(uint32_t name, uint32_t instance)
{
	struct rm_device_params p = { .instance = instance };

	return alloc_on(control, client, client, &name, RM_CLASS_DEVICE, &p, sizeof(p));
}

static long subdevice(uint32_t name, uint32_t parent)
{
	struct rm_subdevice_params p = { 0 };

	return alloc_on(control, client, parent, &name, RM_CLASS_SUBDEVICE, &p, sizeof(p));
}

static long ask(uint32_t command, void *params, uint32_t size)
{
	struct rm_control c = { .client = client, .object = client, .command = command,
				.params = (uintptr_t)params, .size = size };

	return ioctl(control, RM_IOC_CONTROL, &c) ? -errno : (long)c.status;
}

static long dup_on(int fd, uint32_t c, uint32_t parent, uint32_t name, const struct memory *m)
{
	struct rm_dup d = { .client = c, .parent = parent, .object = name,
			    .source_client = m->client, .source_object = m->object };

	return ioctl(fd, RM_IOC_DUP, &d) ? -errno : (long)d.status;
}

static long second_name(uint32_t name, const struct memory *m)
{
	return dup_on(control, client, DEVICE, name, m);
}

static long drop(uint32_t name)
{
	struct rm_free f = { .client = client, .parent = DEVICE, .object = name };

	return ioctl(control, RM_IOC_FREE, &f) ? -errno : (long)f.status;
}

static long map(uint32_t name, uint64_t off, uint64_t len, int fd)
{
	struct rm_map m = { .client = client, .device = DEVICE, .memory = name, .off = off,
			    .len = len, .fd = fd };

	return ioctl(control, RM_IOC_MAP, &m) ? -errno : (long)m.status;
}

/* The node of card n, as one of our client. */
static int node_of(int n)
{
	struct rm_register_fd reg = { .control = control };
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/nvidia%d", n);
	fd = t_open(path, O_RDWR);
	CHECK(!ioctl(fd, RM_IOC_REGISTER_FD, &reg));
	return fd;
}

static unsigned char *try_mmap(int fd, size_t len)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static unsigned char *view(uint32_t name, uint64_t off, size_t len)
{
	int fd = node_of(0);
	unsigned char *at;

	IS(0, map(name, off, len, fd));
	at = try_mmap(fd, len);
	CHECK(at != MAP_FAILED);
	close(fd);
	return at;
}

static struct memory memory_of(CUdeviceptr mem)
{
	CUipcMemHandle h;
	uint32_t w[16];
	struct memory m;

	CHECK(cuIpcGetMemHandle(&h, mem) == CUDA_SUCCESS);
	memcpy(w, &h, sizeof(w));
	m.size = w[4] | (uint64_t)w[5] << 32;
	m.off = w[7];
	m.client = w[12];
	m.object = w[13];
	return m;
}

static sigjmp_buf back;

static void on_signal(int sig)
{
	siglongjmp(back, sig);
}

/* The signal that touching it gives, or 0. */
static int touch(const volatile unsigned char *at)
{
	int sig;

	signal(SIGBUS, on_signal);
	sig = sigsetjmp(back, 1);
	if (!sig)
		(void)*at;
	signal(SIGBUS, SIG_DFL);
	return sig;
}

/* -- what is told of the cards -- */

static void check_information(int n)
{
	char pci[32], path[128], line[128], *c;
	unsigned int minor = ~0u;
	CUdevice dev;
	FILE *f;

	CHECK(!cuDeviceGet(&dev, n) && !cuDeviceGetPCIBusId(pci, sizeof(pci), dev));
	for (c = pci; *c; c++)
		*c = *c >= 'A' && *c <= 'F' ? *c + 32 : *c;
	snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", pci);
	f = fopen(path, "re");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "Device Minor: %u", &minor);
	fclose(f);
	IS(n, (int)minor);
}

/* Client, cards, a device and a subdevice of card 0; each step is refused before its time. */
static void connect_all(void)
{
	struct rm_probed_ids probed;
	struct rm_attach_ids attach;
	struct rm_id_info info;
	struct rm_pci_info pci;
	uint32_t none = 0;
	int i;

	control = t_open("/dev/nvidiactl", O_RDWR);
	/* the one of an earlier descriptor, or none */
	IS(RM_INVALID_CLIENT, ask(RM_CTRL_PROBED_IDS, &probed, sizeof(probed)));
	IS(RM_INVALID_CLASS, alloc_on(control, 0, 0, &none, 0x42, NULL, 0));
	client = 0;
	IS(0, alloc_on(control, 0, 0, &client, RM_CLASS_CLIENT, NULL, 0));
	CHECK(client);
	IS(RM_INVALID_COMMAND, ask(0x999, &probed, sizeof(probed)));
	IS(RM_INVALID_PARAMS, ask(RM_CTRL_PROBED_IDS, &probed, sizeof(probed) - 4));
	IS(RM_INVALID_ADDRESS, ask(RM_CTRL_PROBED_IDS, NULL, sizeof(probed)));
	IS(0, ask(RM_CTRL_PROBED_IDS, &probed, sizeof(probed)));
	CHECK(probed.id[2] == RM_NO_ID);
	for (i = 0; i < 2; i++) {
		memset(&info, 0, sizeof(info));
		info.id = probed.id[i];
		IS(0, ask(RM_CTRL_ID_INFO, &info, sizeof(info)));
		CHECK(info.device_instance < 2 && !info.subdevice_instance);
		ids[info.device_instance] = probed.id[i];
		pci = (struct rm_pci_info){ .id = probed.id[i] };
		IS(0, ask(RM_CTRL_PCI_INFO, &pci, sizeof(pci)));
		CHECK(pci.bus);
	}
	info.id = 0x99;
	IS(RM_INVALID_ARGUMENT, ask(RM_CTRL_ID_INFO, &info, sizeof(info)));
	IS(RM_INVALID_DEVICE, device(DEVICE, 0));
	memset(&attach, 0xff, sizeof(attach));
	attach.id[0] = ids[0];
	attach.id[1] = 0x99;
	IS(RM_INVALID_ARGUMENT, ask(RM_CTRL_ATTACH_IDS, &attach, sizeof(attach)));
	CHECK(attach.failed == 0x99);
	attach.id[1] = ids[1];
	IS(0, ask(RM_CTRL_ATTACH_IDS, &attach, sizeof(attach)));
	IS(RM_INVALID_PARENT, subdevice(SUBDEVICE, DEVICE));
	IS(0, device(DEVICE, 0));
	IS(RM_DUPLICATE_NAME, device(DEVICE, 0));
	IS(RM_INVALID_HANDLE, device(0, 0));
	IS(RM_INVALID_DEVICE, device(WRONG, 2));
	IS(0, subdevice(SUBDEVICE, DEVICE));
	IS(0, device(OTHER_DEVICE, 1));
}

/* -- memory -- */

static void fresh(unsigned char *buf, size_t len)
{
	t_random_fresh(&rnd, buf, len);
}

/* All of it through the mapping, both ways, and by the BAR. */
static void check_both_ways(uint32_t name, CUdeviceptr mem, size_t size)
{
	struct memory m = memory_of(mem);
	uint64_t from = m.off / 4096 * 4096, skip = m.off - from;
	size_t len = (skip + size + 4095) / 4096 * 4096;
	unsigned char *a = malloc(size), *b = malloc(size), *at;

	CHECK(a && b && m.size == size);
	IS(0, second_name(name, &m));
	at = view(name, from, len);
	fresh(a, size);
	t_gpu_put(mem, a, size);
	CHECK(!memcmp(at + skip, a, size));
	fresh(a, size);
	memcpy(at + skip, a, size);
	cpu_store_fence();
	t_vram_get(b, mem, size);
	CHECK(!memcmp(a, b, size));
	t_gpu_get(b, mem, size);
	CHECK(!memcmp(a, b, size));
	munmap(at, len);
	IS(0, drop(name));
	free(a);
	free(b);
}

/* Small ones share an object, a large one has its own. */
static void check_content(void)
{
	static const size_t size[] = { 100, 70000, 512 * K, 100001, 5 * M + 4096 };
	CUdeviceptr mem[5];
	unsigned int i;

	for (i = 0; i < 5; i++)
		mem[i] = t_gpu_alloc(size[i]);
	CHECK(memory_of(mem[0]).object == memory_of(mem[3]).object);
	CHECK(memory_of(mem[0]).object != memory_of(mem[4]).object);
	for (i = 0; i < 5; i++)
		check_both_ways(NAME, mem[i], size[i]);
	for (i = 0; i < 5; i++)
		t_gpu_free(mem[i]);
}

static void check_refusals(void)
{
	CUdeviceptr mem = t_gpu_alloc(2 * M);
	struct memory m = memory_of(mem), bad = m;
	struct rm_register_fd reg = { .control = control };
	unsigned char *at;
	int fd, plain, other;

	bad.client = 1;
	IS(RM_INVALID_CLIENT, second_name(NAME, &bad));
	bad = m;
	bad.object++;
	IS(RM_NOT_FOUND, second_name(NAME, &bad));
	IS(RM_INVALID_PARENT, dup_on(control, client, WRONG, NAME, &m));
	IS(RM_INVALID_PARENT, dup_on(control, client, OTHER_DEVICE, NAME, &m));
	IS(0, second_name(NAME, &m));
	IS(RM_DUPLICATE_NAME, second_name(NAME, &m));
	IS(RM_DUPLICATE_NAME, second_name(DEVICE, &m));

	fd = node_of(0);
	other = node_of(1);
	plain = t_open("/dev/nvidia0", O_RDWR);
	IS(RM_INVALID_ARGUMENT, map(NAME, 0, 4096, -1));
	IS(RM_INVALID_ARGUMENT, map(NAME, 0, 4096, control));
	IS(RM_INVALID_ARGUMENT, map(NAME, 0, 4096, plain));
	IS(RM_INVALID_ARGUMENT, map(NAME, 0, 4096, other));
	IS(RM_NOT_FOUND, map(WRONG, 0, 4096, fd));
	IS(RM_NOT_FOUND, map(DEVICE, 0, 4096, fd));
	IS(RM_INVALID_ARGUMENT, map(NAME, 100, 4096, fd));
	IS(RM_INVALID_BASE, map(NAME, 2 * M, 4096, fd));
	IS(RM_INVALID_LIMIT, map(NAME, 0, 0, fd));
	IS(RM_INVALID_LIMIT, map(NAME, 4096, 2 * M, fd));
	IS(RM_INVALID_LIMIT, map(NAME, 4096, -4096UL, fd));
	CHECK(try_mmap(fd, 4096) == MAP_FAILED && errno == EINVAL);
	t_vram_parameter("bar1_mb", "1");
	IS(RM_NO_RESOURCES, map(NAME, 0, 2 * M, fd));
	t_vram_parameter("bar1_mb", "0");
	IS(0, map(NAME, 4096, 8192, fd));
	IS(RM_STATE_IN_USE, map(NAME, 4096, 8192, fd));
	CHECK(try_mmap(fd, 4096) == MAP_FAILED && errno == ENXIO);
	CHECK(mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 4096) == MAP_FAILED);
	CHECK(mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED);
	at = try_mmap(fd, 8192);
	CHECK(at != MAP_FAILED && !touch(at) && !touch(at + 8191));
	/* a part of it can go */
	munmap(at, 4096);
	CHECK(!touch(at + 4096));
	munmap(at + 4096, 4096);

	CHECK(ioctl(fd, RM_IOC_REGISTER_FD, &reg) && errno == EINVAL);
	reg.control = fd;
	CHECK(ioctl(plain, RM_IOC_REGISTER_FD, &reg) && errno == EINVAL);
	CHECK(ioctl(control, 0x1234) && errno == ENOTTY);
	CHECK(ioctl(control, RM_IOC_MAP, NULL) && errno == EFAULT);
	close(plain);
	close(other);
	close(fd);

	t_vram_parameter("fault_rm", "1:12");
	IS(-ENOMEM, second_name(SECOND, &m));
	IS(0, second_name(SECOND, &m));
	t_vram_parameter("fault_rm", "1:5");
	IS(-EIO, map(SECOND, 0, 4096, control));
	t_vram_parameter("fault_rm", "-1");
	IS(0, drop(SECOND));
	t_vram_parameter("fault_rm", "0");
	IS(RM_NOT_FOUND, drop(SECOND));
	IS(0, drop(NAME));
	t_gpu_free(mem);
}

/* A second name keeps the memory as it is; the last name gives it back, and poison is there. */
static void check_kept(void)
{
	long before = t_vram_counter(0, "free_pages");
	CUdeviceptr mem = t_gpu_alloc(8 * M), next;
	unsigned char *a = malloc(8 * M), *at;
	struct memory m = memory_of(mem);
	struct gpu_sim_piece where;
	const unsigned char *bar;
	uint64_t word;
	size_t len;

	CHECK(a);
	fresh(a, 8 * M);
	t_gpu_put(mem, a, 8 * M);
	IS(1, gpu_sim_where((void *)(uintptr_t)mem, 4096, &where, 1));
	IS(0, second_name(NAME, &m));
	IS(0, second_name(SECOND, &m));
	at = view(SECOND, 0, 8 * M);
	IS(2, t_vram_counter(0, "rm_names"));
	IS(1, t_vram_counter(0, "rm_views"));
	t_gpu_free(mem);
	IS(before - 128, t_vram_counter(0, "free_pages"));
	IS(RM_NOT_FOUND, second_name(WRONG, &m));
	next = t_gpu_alloc(8 * M);
	CHECK(cuMemsetD8(next, 0x5a, 8 * M) == CUDA_SUCCESS && !cuCtxSynchronize());
	CHECK(!memcmp(at, a, 8 * M));
	t_gpu_free(next);
	IS(0, drop(NAME));
	CHECK(!memcmp(at, a, 8 * M));
	IS(before - 128, t_vram_counter(0, "free_pages"));
	/* the last name: also who maps the memory yet does not see it any more */
	IS(0, drop(SECOND));
	IS(SIGBUS, touch(at));
	IS(before, t_vram_counter(0, "free_pages"));
	IS(0, t_vram_counter(0, "rm_views"));
	bar = t_vram_map(0, &len);
	memcpy(&word, bar + where.card_off, sizeof(word));
	CHECK(word == GPU_SIM_POISON);
	munmap((void *)bar, len);
	munmap(at, 8 * M);
	free(a);
}

/* Who frees a device frees the names below it; who closes the node, all. */
static void check_ends(void)
{
	CUdeviceptr mem = t_gpu_alloc(2 * M);
	struct memory m = memory_of(mem);
	uint32_t again = 0;
	unsigned char *at;
	int fd;

	IS(0, second_name(NAME, &m));
	at = view(NAME, 0, 2 * M);
	CHECK(!touch(at));
	IS(0, drop(DEVICE));
	IS(SIGBUS, touch(at));
	IS(0, t_vram_counter(0, "rm_names"));
	IS(RM_NOT_FOUND, drop(NAME));
	IS(RM_NOT_FOUND, drop(SUBDEVICE));
	munmap(at, 2 * M);
	IS(0, device(DEVICE, 0));

	/* another descriptor's client is not ours to use, and ends with its descriptor */
	fd = t_open("/dev/nvidiactl", O_RDWR);
	IS(0, alloc_on(fd, 0, 0, &again, RM_CLASS_CLIENT, NULL, 0));
	CHECK(again != client);
	IS(RM_INVALID_CLIENT, dup_on(fd, client, DEVICE, NAME, &m));
	close(fd);

	IS(0, second_name(NAME, &m));
	at = view(NAME, 0, 2 * M);
	IS(0, drop(client));
	IS(SIGBUS, touch(at));
	IS(RM_INVALID_CLIENT, second_name(NAME, &m));
	munmap(at, 2 * M);
	close(control);
	connect_all();
	IS(0, second_name(NAME, &m));
	/* the mapping holds the client's node */
	at = view(NAME, 0, 2 * M);
	close(control);
	CHECK(!touch(at));
	IS(1, t_vram_counter(0, "rm_names"));
	munmap(at, 2 * M);
	IS(0, t_vram_counter(0, "rm_names"));
	t_gpu_free(mem);
}

/* In the child of a fork: nothing of the parent's, by its own descriptor or by a new one. */
static int child(const struct memory *m, unsigned char *at, int view_fd)
{
	uint32_t name = 0, mine = 0;
	struct rm_device_params p = { 0 };
	struct rm_attach_ids attach;
	struct rm_control c = { .command = RM_CTRL_ATTACH_IDS, .params = (uintptr_t)&attach,
				.size = sizeof(attach) };

	if (second_name(WRONG, m) != RM_INVALID_CLIENT || try_mmap(view_fd, 4096) != MAP_FAILED ||
	    msync(at, 4096, MS_ASYNC) != -1 || errno != ENOMEM)
		return 1;
	control = t_open("/dev/nvidiactl", O_RDWR);
	if (alloc_on(control, 0, 0, &mine, RM_CLASS_CLIENT, NULL, 0))
		return 2;
	client = mine;
	c.client = c.object = mine;
	memset(&attach, 0xff, sizeof(attach));
	attach.id[0] = ids[0];
	if (ioctl(control, RM_IOC_CONTROL, &c) || c.status)
		return 3;
	name = DEVICE;
	if (alloc_on(control, mine, mine, &name, RM_CLASS_DEVICE, &p, sizeof(p)))
		return 4;
	return second_name(NAME, m) == RM_NO_PERMISSION ? 0 : 5;
}

static void check_fork(void)
{
	CUdeviceptr mem = t_gpu_alloc(2 * M);
	struct memory m = memory_of(mem);
	unsigned char *at;
	int status, fd;
	pid_t pid;

	IS(0, second_name(NAME, &m));
	fd = node_of(0);
	IS(0, map(NAME, 0, 4096, fd));
	at = try_mmap(fd, 4096);
	CHECK(at != MAP_FAILED);
	pid = fork();
	if (!pid)
		_exit(child(&m, at, fd));
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	IS(0, status >> 8);
	CHECK(!status && !touch(at));
	munmap(at, 4096);
	close(fd);
	IS(0, drop(NAME));
	t_gpu_free(mem);
}

static long import(uint32_t name, uint32_t parent, int fd, unsigned int index, unsigned int *type)
{
	struct rm_import p = { .fd = fd, .parent = parent, .object = { name }, .count = 1,
			       .index = index };
	long r = ask(RM_CTRL_IMPORT, &p, sizeof(p));

	*type = p.type[0];
	return r;
}

/* Memory of cuMemCreate, mapped; the handle is kept. */
static CUdeviceptr vmm_new(CUmemGenericAllocationHandle *h, size_t size)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	const CUmemAccessDesc desc = { prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUdeviceptr va;

	IS(0, cuMemCreate(h, size, &prop, 0));
	IS(0, cuMemAddressReserve(&va, size, 0, 0, 0));
	IS(0, cuMemMap(va, size, 0, *h, 0));
	IS(0, cuMemSetAccess(va, size, &desc, 1));
	return va;
}

static int exported(CUmemGenericAllocationHandle h)
{
	int fd;

	IS(0, cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	return fd;
}

/*
 * Memory that has no IPC handle, by a descriptor: what is seen of it, what is refused, and that a
 * descriptor and a name each keep it.
 */
static void check_exported(void)
{
	long before = t_vram_counter(0, "free_pages"), with;
	CUmemGenericAllocationHandle h;
	CUdeviceptr mem = vmm_new(&h, 4 * M);
	int fd = exported(h), plain = open("/dev/nvidiactl", O_RDWR), null = open("/dev/null", O_RDWR);
	unsigned char *a = malloc(4 * M), *at;
	unsigned int type;

	CHECK(a && plain >= 0 && null >= 0);
	with = t_vram_counter(0, "free_pages");
	CHECK(before - with == 64);
	IS(RM_INVALID_PARAMETER, import(NAME, DEVICE, plain, 0, &type));
	IS(RM_INVALID_PARAMETER, import(NAME, DEVICE, null, 0, &type));
	IS(RM_INVALID_PARAMETER, import(NAME, DEVICE, -1, 0, &type));
	IS(RM_OUT_OF_RANGE, import(NAME, DEVICE, fd, 1, &type));
	IS(RM_INVALID_PARENT, import(NAME, WRONG, fd, 0, &type));
	IS(RM_INVALID_PARENT, import(NAME, OTHER_DEVICE, fd, 0, &type));
	IS(RM_INVALID_HANDLE, import(0, DEVICE, fd, 0, &type));
	IS(0, import(NAME, DEVICE, fd, 0, &type));
	IS(RM_IMPORTED_VIDMEM, type);
	IS(RM_DUPLICATE_NAME, import(NAME, DEVICE, fd, 0, &type));
	fresh(a, 4 * M);
	t_gpu_put(mem, a, 4 * M);
	at = view(NAME, 0, 4 * M);
	CHECK(!memcmp(at, a, 4 * M));
	munmap(at, 4 * M);

	/* unmapped and released: the name keeps it, then the descriptor, then nobody */
	IS(0, cuMemUnmap(mem, 4 * M));
	IS(0, cuMemRelease(h));
	IS(0, import(SECOND, DEVICE, fd, 0, &type));
	at = view(SECOND, 2 * M, 4096);
	CHECK(!memcmp(at, a + 2 * M, 4096));
	munmap(at, 4096);
	IS(0, drop(SECOND));
	close(fd);
	at = view(NAME, 0, 4096);
	CHECK(!memcmp(at, a, 4096));
	munmap(at, 4096);
	IS(with, t_vram_counter(0, "free_pages"));
	IS(0, drop(NAME));
	IS(before, t_vram_counter(0, "free_pages"));
	IS(0, cuMemAddressFree(mem, 4 * M));
	close(plain);
	close(null);
	free(a);
}

/* A driver that lies about the offset: shown is what lies further on, and the end is the start. */
static void check_lie(void)
{
	CUdeviceptr mem = t_gpu_alloc(2 * M);
	struct memory m = memory_of(mem);
	unsigned char *a = malloc(2 * M), *at;

	CHECK(a);
	fresh(a, 2 * M);
	t_gpu_put(mem, a, 2 * M);
	IS(0, second_name(NAME, &m));
	t_vram_parameter("rm_lie", "68");
	at = view(NAME, 0, 2 * M);
	CHECK(!memcmp(at, a + 68 * K, 2 * M - 68 * K) && !memcmp(at + 2 * M - 68 * K, a, 68 * K));
	t_vram_parameter("rm_lie", "0");
	munmap(at, 2 * M);
	IS(0, drop(NAME));
	t_gpu_free(mem);
	free(a);
}

static void check(void)
{
	long before = t_vram_counter(0, "free_pages");

	check_information(0);
	check_information(1);
	connect_all();
	check_content();
	check_refusals();
	check_kept();
	check_lie();
	check_exported();
	check_fork();
	check_ends();
	IS(before, t_vram_counter(0, "free_pages"));
	IS(0, t_vram_counter(0, "rm_names"));
	IS(0, t_vram_counter(0, "rm_views"));
	printf("check ok\n");
}

static void gone(void)
{
	CUdeviceptr mem = t_gpu_alloc(2 * M);
	struct memory m = memory_of(mem);
	unsigned char *at;
	int fd;

	connect_all();
	IS(0, second_name(NAME, &m));
	at = view(NAME, 0, 2 * M);
	CHECK(!touch(at) && !touch(at + 2 * M - 1));
	fd = node_of(0);
	printf("held\n");
	fflush(stdout);
	(void)getchar();
	IS(SIGBUS, touch(at));
	IS(SIGBUS, touch(at + 2 * M - 1));
	IS(RM_GPU_IS_LOST, map(NAME, 0, 4096, fd));
	IS(RM_INVALID_CLIENT, second_name(SECOND, &m));
	IS(RM_GPU_IS_LOST, device(WRONG, 0));
	CHECK(open("/dev/nvidia0", O_RDWR) < 0 && errno == ENOENT);
	CHECK(access("/dev/nvidia1", F_OK) == 0);
	IS(0, drop(NAME));
	munmap(at, 2 * M);
	close(fd);
	close(control);
	t_gpu_free(mem);
	printf("gone ok\n");
}

int main(int argc, char **argv)
{
	struct t_gpu gpu;

	if (argc != 2 || (strcmp(argv[1], "check") && strcmp(argv[1], "gone")))
		t_die("usage: sim_rm check | gone");
	t_gpu_open(&gpu, 0);
	if (!strcmp(argv[1], "check"))
		check();
	else
		gone();
	return 0;
}
