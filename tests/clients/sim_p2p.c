// SPDX-License-Identifier: MIT
/*
 * sim_p2p.c - nvidia_p2p_* of the simulated GPU, driven through gpu-sim-test.ko; as root.
 *
 *   sim_p2p pins PEER           pins, callbacks, DMA mappings for PEER (a PCI address)
 *   sim_p2p faults              what the fault parameters do
 *   sim_p2p mode NAME           gpu-sim was loaded with pin_mode=NAME
 *   sim_p2p race PEER SECONDS   put and map against free
 *   sim_p2p unbind CARD         callback and persistent pin while CARD is unbound
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../sim/gpu/test/p2p_test_abi.h"
#include "cuda.h"
#include "gpu_sim.h"

#define MIB ((size_t)1 << 20)
#define NO_DETAILS (~0U)
#define ENOTSUPP 524	/* the kernel's own, not in errno.h */

static int test_fd;
static CUcontext context;

static void die_at(int line, const char *what, long got)
{
	fprintf(stderr, "sim_p2p: line %d: %s (%ld)\n", line, what, got);
	exit(1);
}

#define CHECK(cond) ((cond) ? (void)0 : die_at(__LINE__, #cond, errno))
#define EXPECT(want, expr)                                                                     \
	do {                                                                                   \
		long got_ = (expr);                                                            \
		if (got_ != (want))                                                            \
			die_at(__LINE__, #expr " is not " #want, got_);                        \
	} while (0)

static void start(void)
{
	EXPECT(CUDA_SUCCESS, cuInit(0));
	EXPECT(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&context, 0));
	EXPECT(CUDA_SUCCESS, cuCtxSetCurrent(context));
	test_fd = open("/dev/gpu-sim-test", O_RDWR | O_CLOEXEC);
	CHECK(test_fd >= 0);
}

static CUdeviceptr alloc(size_t size)
{
	CUdeviceptr p;

	EXPECT(CUDA_SUCCESS, cuMemAlloc(&p, size));
	return p;
}

/* One operation; returns what the nvidia_p2p_* call did. */
static int run(struct p2p_test *t, enum p2p_test_op op)
{
	t->op = op;
	if (ioctl(test_fd, P2P_TEST_IOC, t))
		die_at(__LINE__, "P2P_TEST_IOC", errno);
	return t->ret;
}

static int get(struct p2p_test *t, unsigned int slot, CUdeviceptr va, size_t len,
	       unsigned int flags)
{
	memset(t, 0, sizeof(*t));
	t->slot = slot;
	t->va = va;
	t->len = len;
	t->flags = flags;
	return run(t, P2P_TEST_GET);
}

static void set_parameter(const char *name, const char *value)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/gpu_sim/parameters/%s", name);
	f = fopen(path, "w");
	if (!f || fputs(value, f) < 0 || fclose(f))
		die_at(__LINE__, path, errno);
}

static void card_path(char *path, size_t size, int card, const char *file)
{
	char pci[32];
	int i;

	EXPECT(CUDA_SUCCESS, cuDeviceGetPCIBusId(pci, sizeof(pci), card));
	for (i = 0; pci[i]; i++)
		pci[i] = pci[i] >= 'A' && pci[i] <= 'F' ? pci[i] + 32 : pci[i];
	snprintf(path, size, "/sys/bus/pci/devices/%s/%s", pci, file);
}

static long counter(const char *name)
{
	char path[128], file[64];
	long value;
	FILE *f;

	snprintf(file, sizeof(file), "gpu_sim/%s", name);
	card_path(path, sizeof(path), 0, file);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%ld", &value) != 1)
		die_at(__LINE__, path, errno);
	fclose(f);
	return value;
}

static bool all_free(void)
{
	return counter("free_pages") == counter("total_pages");
}

/* CPU physical address of the card's BAR 2. */
static uint64_t bar_start(void)
{
	unsigned long long start, end, flags;
	char path[128];
	FILE *f;
	int i;

	card_path(path, sizeof(path), 0, "resource");
	f = fopen(path, "r");
	CHECK(f);
	for (i = 0; i <= 2; i++)
		EXPECT(3, fscanf(f, "%llx %llx %llx", &start, &end, &flags));
	fclose(f);
	return start;
}

static uint64_t peer_of(const char *pci)
{
	unsigned int domain, bus, dev, fn;

	EXPECT(4, sscanf(pci, "%x:%x:%x.%x", &domain, &bus, &dev, &fn));
	return (uint64_t)domain << 32 | bus << 8 | dev << 3 | fn;
}

/* Does a translating IOMMU stand before the peer? Then addresses are not the bus's. */
static bool translated(const char *pci)
{
	char path[128], type[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/iommu_group/type", pci);
	f = fopen(path, "r");
	if (!f)
		return false;
	EXPECT(1, fscanf(f, "%31s", type));
	fclose(f);
	return strcmp(type, "identity") != 0;
}

static void check_addresses(CUdeviceptr va, const struct p2p_test *t)
{
	struct gpu_sim_piece piece;
	uint64_t bar = bar_start();
	unsigned int i;

	for (i = 0; i < t->entries && i < P2P_TEST_PAGES; i++) {
		EXPECT(1, gpu_sim_where((void *)(uintptr_t)(va + i * 65536), 65536, &piece, 1));
		CHECK(t->addr[i] == bar + piece.card_off);
	}
}

static void check_map(const char *pci, const struct p2p_test *got, const struct p2p_test *map)
{
	unsigned int i;

	EXPECT(0x00020003, map->version);
	CHECK(map->entries == got->entries && map->page_size == got->page_size);
	for (i = 0; i < got->entries && i < P2P_TEST_PAGES; i++) {
		if (!translated(pci))
			CHECK(map->addr[i] == got->addr[i]);
		else if (i && got->addr[i] == got->addr[i - 1] + 65536)
			CHECK(map->addr[i] == map->addr[i - 1] + 65536);
	}
}

static void pins_persistent(const char *pci)
{
	struct p2p_test t, m;
	CUdeviceptr p = alloc(4 * MIB), q;

	EXPECT(0, get(&t, 0, p, 4 * MIB, P2P_TEST_PERSISTENT));
	EXPECT(0x00020000, t.version);
	EXPECT(64, t.entries);
	EXPECT(1, t.page_size);
	check_addresses(p, &t);
	EXPECT(1, counter("pins"));
	m = t;
	m.peer = peer_of(pci);
	EXPECT(0, run(&m, P2P_TEST_MAP));
	check_map(pci, &t, &m);
	printf("card at %llx, peer sees %llx%s\n", (unsigned long long)t.addr[0],
	       (unsigned long long)m.addr[0], translated(pci) ? " (translated)" : "");
	EXPECT(1, counter("dma_maps"));
	EXPECT(0, run(&m, P2P_TEST_UNMAP));
	EXPECT(0, counter("dma_maps"));
	EXPECT(-EINVAL, run(&m, P2P_TEST_UNMAP));
	/* a second pin of a part, put first; mappings that are left go with the pin */
	EXPECT(0, get(&m, 1, p + 65536, MIB, P2P_TEST_PERSISTENT));
	EXPECT(16, m.entries);
	m.peer = peer_of(pci);
	EXPECT(0, run(&m, P2P_TEST_MAP));
	EXPECT(0, run(&m, P2P_TEST_PUT));
	EXPECT(0, counter("dma_maps"));
	EXPECT(-EINVAL, run(&m, P2P_TEST_PUT));
	t.va += 65536;
	EXPECT(-EINVAL, run(&t, P2P_TEST_PUT));
	t.va -= 65536;
	/* the memory outlives its free, its VA does not */
	EXPECT(CUDA_SUCCESS, cuMemFree(p));
	CHECK(!all_free());
	EXPECT(-EINVAL, get(&m, 1, p, 65536, P2P_TEST_PERSISTENT));
	m = t;
	m.peer = peer_of(pci);
	EXPECT(0, run(&m, P2P_TEST_MAP));
	check_map(pci, &t, &m);
	EXPECT(0, run(&t, P2P_TEST_PUT));
	CHECK(all_free());
	EXPECT(0, counter("pins"));
	/* what is no memory of ours */
	p = alloc(2 * MIB);
	q = alloc(4096);
	EXPECT(-EINVAL, get(&t, 0, p + 4096, 65536, 0));
	EXPECT(-EINVAL, get(&t, 0, p, 4096, 0));
	EXPECT(-EINVAL, get(&t, 0, p, 0, 0));
	EXPECT(-EINVAL, get(&t, 0, p, 2 * MIB + 65536, 0));
	EXPECT(-EINVAL, get(&t, 0, p - 65536, 131072, 0));
	EXPECT(-EINVAL, get(&t, 0, -65536ULL, 131072, 0));
	EXPECT(-EINVAL, get(&t, 0, p, -65536ULL, 0));
	EXPECT(-EINVAL, get(&t, 0, (uintptr_t)&t & ~65535UL, 65536, 0));
	/* a small allocation is pinned with the block it lives in */
	EXPECT(0, get(&t, 0, q & ~65535UL, 65536, P2P_TEST_PERSISTENT));
	EXPECT(0, run(&t, P2P_TEST_PUT));
	EXPECT(CUDA_SUCCESS, cuMemFree(q));
	EXPECT(CUDA_SUCCESS, cuMemFree(p));
}

static void pins_callback(const char *pci)
{
	struct p2p_test t, other;
	CUdeviceptr p = alloc(2 * MIB);

	/* put before free: no callback */
	EXPECT(0, get(&t, 0, p, 2 * MIB, 0));
	EXPECT(0, run(&t, P2P_TEST_PUT));
	EXPECT(0, run(&t, P2P_TEST_STATE));
	EXPECT(0, t.callbacks);
	/* free: one callback for each pin, then everything is the driver's */
	EXPECT(0, get(&t, 0, p, 2 * MIB, 0));
	check_addresses(p, &t);
	t.peer = peer_of(pci);
	EXPECT(0, run(&t, P2P_TEST_MAP));
	EXPECT(0, get(&other, 1, p, 65536, P2P_TEST_CB_UNMAP));
	other.peer = peer_of(pci);
	EXPECT(0, run(&other, P2P_TEST_MAP));
	EXPECT(2, counter("dma_maps"));
	EXPECT(CUDA_SUCCESS, cuMemFree(p));
	EXPECT(0, run(&t, P2P_TEST_STATE));
	EXPECT(1, t.callbacks);
	EXPECT(0, run(&other, P2P_TEST_STATE));
	EXPECT(1, other.callbacks);
	EXPECT(0, counter("dma_maps"));
	EXPECT(0, counter("pins"));
	EXPECT(0, run(&t, P2P_TEST_PUT));
	EXPECT(-EINVAL, run(&t, P2P_TEST_MAP));
	CHECK(all_free());
	/* a put that comes during the callback waits for it */
	p = alloc(2 * MIB);
	EXPECT(0, get(&t, 0, p, 2 * MIB, P2P_TEST_CB_PUT));
	EXPECT(CUDA_SUCCESS, cuMemFree(p));
	EXPECT(0, run(&t, P2P_TEST_STATE));
	EXPECT(1, t.callbacks);
	EXPECT(1, t.blocked);
	EXPECT(0, t.put_ret);
	CHECK(all_free());
}

/* A process that dies with both kinds of pins, and what its parent then sees. */
static void pins_exit(void)
{
	struct p2p_test t, keep;
	CUdeviceptr *va;
	int status;
	pid_t pid;

	va = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(va != MAP_FAILED);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		start();
		va[0] = alloc(4 * MIB);
		va[1] = alloc(2 * MIB);
		EXPECT(0, get(&keep, 2, va[0], 4 * MIB, P2P_TEST_PERSISTENT));
		EXPECT(0, get(&t, 3, va[1], 2 * MIB, 0));
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	start();
	memset(&t, 0, sizeof(t));
	t.slot = 3;
	EXPECT(0, run(&t, P2P_TEST_STATE));
	EXPECT(1, t.callbacks);
	EXPECT(1, counter("pins"));
	EXPECT(64, counter("total_pages") - counter("free_pages"));
	/* its address means nothing in another process */
	EXPECT(-EINVAL, get(&t, 4, va[0], 65536, P2P_TEST_PERSISTENT));
	memset(&keep, 0, sizeof(keep));
	keep.slot = 2;
	keep.va = va[0];
	EXPECT(0, run(&keep, P2P_TEST_PUT));
	CHECK(all_free());
}

static void faults(void)
{
	struct p2p_test t, m;
	CUdeviceptr p = alloc(4 * MIB);
	struct timespec a, b;

	set_parameter("fault_get_pages", "2:22");
	EXPECT(-EINVAL, get(&t, 0, p, 65536, 0));
	EXPECT(-EINVAL, get(&t, 0, p, 65536, P2P_TEST_PERSISTENT));
	EXPECT(0, get(&t, 0, p, 65536, P2P_TEST_PERSISTENT));
	set_parameter("fault_dma_map", "1:5");
	m = t;
	EXPECT(-EIO, (m.peer = 0, run(&m, P2P_TEST_MAP)));
	EXPECT(0, run(&t, P2P_TEST_PUT));
	set_parameter("bar1_mb", "1");
	EXPECT(0, get(&t, 0, p, MIB, P2P_TEST_PERSISTENT));
	EXPECT(-ENOMEM, get(&m, 1, p, 65536, P2P_TEST_PERSISTENT));
	EXPECT(0, run(&t, P2P_TEST_PUT));
	set_parameter("bar1_mb", "0");
	set_parameter("table_version", "1");
	EXPECT(0, get(&t, 0, p, 65536, P2P_TEST_PERSISTENT));
	EXPECT(0x00010002, t.version);
	EXPECT(0, run(&t, P2P_TEST_PUT));
	set_parameter("table_version", "0x00770001");
	EXPECT(0, get(&t, 0, p, 65536, P2P_TEST_PERSISTENT));
	EXPECT(0x00770001, t.version);
	EXPECT(0, run(&t, P2P_TEST_PUT));
	set_parameter("table_version", "2");
	set_parameter("page_kb", "128");
	EXPECT(0, get(&t, 0, p, 4 * MIB, P2P_TEST_PERSISTENT));
	EXPECT(2, t.page_size);
	EXPECT(32, t.entries);
	CHECK(t.addr[1] == t.addr[0] + 131072);
	EXPECT(0, run(&t, P2P_TEST_PUT));
	EXPECT(-EINVAL, get(&t, 0, p, 65536, P2P_TEST_PERSISTENT));
	set_parameter("page_kb", "64");
	EXPECT(0, get(&t, 0, p, 65536, 0));
	set_parameter("callback_delay_ms", "300");
	clock_gettime(CLOCK_MONOTONIC, &a);
	EXPECT(CUDA_SUCCESS, cuMemFree(p));
	clock_gettime(CLOCK_MONOTONIC, &b);
	set_parameter("callback_delay_ms", "0");
	CHECK((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= 300);
	EXPECT(0, run(&t, P2P_TEST_STATE));
	EXPECT(1, t.callbacks);
}

static void mode(const char *name)
{
	bool persistent = strcmp(name, "callback") != 0, callback = strcmp(name, "persistent") != 0;
	CUdeviceptr p = alloc(2 * MIB);
	struct p2p_test t;

	EXPECT(persistent ? 0 : -ENOTSUPP, get(&t, 0, p, 65536, P2P_TEST_PERSISTENT));
	if (persistent)
		EXPECT(0, run(&t, P2P_TEST_PUT));
	EXPECT(callback ? 0 : -ENOTSUPP, get(&t, 0, p, 65536, 0));
	if (callback)
		EXPECT(0, run(&t, P2P_TEST_PUT));
	EXPECT(CUDA_SUCCESS, cuMemFree(p));
}

/* What the racing threads share; va is published before, taken back after the free. */
static struct {
	_Atomic CUdeviceptr va;
	_Atomic bool stop;
	_Atomic long gets, maps, late_puts;
	uint64_t peer;
} race;

static void *race_pin(void *arg)
{
	unsigned int slot = (uintptr_t)arg;
	struct p2p_test t, m;
	CUdeviceptr va;
	int r;

	while (!race.stop) {
		va = race.va;
		memset(&t, 0, sizeof(t));
		t.slot = slot;
		t.va = va;
		t.len = 4 * 65536;
		t.entries = NO_DETAILS;
		if (!va || run(&t, P2P_TEST_GET))
			continue;
		race.gets++;
		m = t;
		m.peer = race.peer;
		r = run(&m, P2P_TEST_MAP);
		CHECK(r == 0 || r == -EINVAL);
		race.maps += r == 0;
		EXPECT(0, run(&t, P2P_TEST_PUT));
		EXPECT(0, run(&t, P2P_TEST_STATE));
		CHECK(t.callbacks <= 1);
		race.late_puts += t.callbacks;
	}
	return NULL;
}

static void race_free(const char *pci, int seconds)
{
	pthread_t thread[3];
	struct timespec now;
	CUdeviceptr p;
	time_t end;
	long n = 0;
	int i;

	race.peer = peer_of(pci);
	for (i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, race_pin, (void *)(uintptr_t)(10 + i)));
	clock_gettime(CLOCK_MONOTONIC, &now);
	for (end = now.tv_sec + seconds; now.tv_sec < end; n++) {
		p = alloc(2 * MIB);
		race.va = p;
		nanosleep(&(struct timespec){ .tv_nsec = n % 7 * 100000 }, NULL);
		EXPECT(CUDA_SUCCESS, cuMemFree(p));
		race.va = 0;
		clock_gettime(CLOCK_MONOTONIC, &now);
	}
	race.stop = true;
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	printf("%ld frees against %ld pins, %ld mapped, %ld put after their callback\n", n,
	       race.gets, race.maps, race.late_puts);
	CHECK(race.gets > 0 && race.maps > 0);
	EXPECT(0, counter("pins"));
	EXPECT(0, counter("dma_maps"));
	CHECK(all_free());
}

static void unbind(const char *card)
{
	CUdeviceptr p = alloc(2 * MIB), q = alloc(2 * MIB);
	struct p2p_test t, keep;
	FILE *f;

	EXPECT(0, get(&t, 0, p, 2 * MIB, 0));
	EXPECT(0, get(&keep, 1, q, 2 * MIB, P2P_TEST_PERSISTENT));
	f = fopen("/sys/bus/pci/drivers/gpu-sim/unbind", "w");
	CHECK(f && fputs(card, f) >= 0 && !fclose(f));
	EXPECT(0, run(&t, P2P_TEST_STATE));
	EXPECT(1, t.callbacks);
	EXPECT(0, run(&t, P2P_TEST_PUT));
	keep.peer = peer_of(card);
	EXPECT(-ENODEV, run(&keep, P2P_TEST_MAP));
	EXPECT(-EINVAL, get(&t, 0, p, 65536, 0));
	EXPECT(0, run(&keep, P2P_TEST_PUT));
	EXPECT(CUDA_SUCCESS, cuMemFree(p));
	EXPECT(CUDA_SUCCESS, cuMemFree(q));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "pins") && argc == 3) {
		pins_exit();	/* forks, so before CUDA is used; then starts it */
		pins_persistent(argv[2]);
		pins_callback(argv[2]);
	} else if (!strcmp(what, "faults") && argc == 2) {
		start();
		faults();
	} else if (!strcmp(what, "mode") && argc == 3) {
		start();
		mode(argv[2]);
	} else if (!strcmp(what, "race") && argc == 4) {
		start();
		race_free(argv[2], atoi(argv[3]));
	} else if (!strcmp(what, "unbind") && argc == 3) {
		start();
		unbind(argv[2]);
	} else {
		fprintf(stderr, "usage: sim_p2p pins PEER | faults | mode NAME | "
				"race PEER SECONDS | unbind CARD\n");
		return 2;
	}
	printf("%s ok\n", what);
	return 0;
}
