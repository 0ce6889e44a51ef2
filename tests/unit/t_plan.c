// SPDX-License-Identifier: MIT
/*
 * t_plan.c - the planner, rule by rule (their list stands in lib/plan.c). Each rule also has
 * a mutant: it is broken there and one of these tests must turn red.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "errmap.h"
#include "plan.h"
#include "route.h"

#define ALL 0x3fu
#define VA 0x7f0000000000ULL

/* A request that can go direct into registered memory: 1 MiB at 0. */
static struct plan_in direct(enum ogds_op op)
{
	struct plan_in in = {
		.op = op,
		.off = 0,
		.size = 1 << 20,
		.va = VA,
		.file_size = 1 << 30,
		.kind = GPU_MEM_DEVICE,
		.registered = true,
		.pages_reason = REASON_PAGES_MEMORY,
		.allow_compat = true,
		.routes = ALL,
	};

	return in;
}

/* The pieces cover the request, in order, with nothing between them. */
static void assert_covers(const struct plan *p, int64_t off, int64_t end)
{
	unsigned int i;

	assert_int_equal(p->error, 0);
	for (i = 0; i < p->n; i++) {
		assert_int_equal(p->piece[i].file_off, off);
		assert_true(p->piece[i].size > 0);
		off += p->piece[i].size;
	}
	assert_int_equal(off, end);
}

static void assert_piece(const struct plan *p, unsigned int i, int64_t off, int64_t end,
			 unsigned int route, unsigned int reason)
{
	assert_true(i < p->n);
	assert_int_equal(p->piece[i].file_off, off);
	assert_int_equal(p->piece[i].size, end - off);
	assert_string_equal(route_table[p->piece[i].route]->name, route_table[route]->name);
	assert_string_equal(facts_reason(p->piece[i].reason)->id, facts_reason(reason)->id);
}

static void t_read_ends_with_file(void **state)
{
	struct plan_in in = direct(OGDS_OP_READ);
	struct plan p;

	in.file_size = 8192 + 100;
	plan_make(&in, &p);
	assert_covers(&p, 0, 8292);
	assert_piece(&p, 0, 0, 8192, OGDS_ROUTE_NVFS, REASON_NONE);
	assert_piece(&p, 1, 8192, 8292, OGDS_ROUTE_BOUNCE, REASON_EOF_BLOCK);

	in.off = 1 << 20;
	in.va = VA;
	plan_make(&in, &p);
	assert_int_equal(p.n, 0);
	assert_int_equal(p.error, 0);

	/* a write does not end there */
	in = direct(OGDS_OP_WRITE);
	in.file_size = 0;
	plan_make(&in, &p);
	assert_covers(&p, 0, 1 << 20);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_NVFS, REASON_NONE);
}

static void t_host_memory(void **state)
{
	struct plan_in in = direct(OGDS_OP_READ);
	struct plan p;

	in.kind = GPU_MEM_HOST;
	in.off = 5;
	in.strict = true;
	in.allow_compat = false;
	in.force_compat = true;
	plan_make(&in, &p);
	assert_covers(&p, 5, 5 + (1 << 20));
	assert_piece(&p, 0, 5, 5 + (1 << 20), OGDS_ROUTE_HOST, REASON_HOST_MEMORY);
	in.routes &= ~(1u << OGDS_ROUTE_HOST);
	plan_make(&in, &p);
	assert_int_equal(p.error, ERR(IO_NOT_SUPPORTED));
}

static void t_edges_of_a_write(void **state)
{
	struct plan_in in = direct(OGDS_OP_WRITE);
	struct plan p;

	in.off = 4000;
	in.va = VA + 4000;
	in.size = 10000;
	plan_make(&in, &p);
	assert_covers(&p, 4000, 14000);
	assert_int_equal(p.n, 3);
	assert_piece(&p, 0, 4000, 4096, OGDS_ROUTE_BOUNCE, REASON_EDGE);
	assert_piece(&p, 1, 4096, 12288, OGDS_ROUTE_NVFS, REASON_NONE);
	assert_piece(&p, 2, 12288, 14000, OGDS_ROUTE_BOUNCE, REASON_EDGE);
	assert_int_equal(p.whole, 8192);
	assert_int_equal(p.whole_direct, 8192);

	/* staging is ours, the file's blocks are not */
	in.registered = false;
	in.pin_reason = REASON_NOT_REGISTERED;
	plan_make(&in, &p);
	assert_covers(&p, 4000, 14000);
	assert_piece(&p, 0, 4000, 4096, OGDS_ROUTE_BOUNCE, REASON_EDGE);
	assert_piece(&p, 1, 4096, 12288, OGDS_ROUTE_STAGED, REASON_NOT_REGISTERED);
	assert_piece(&p, 2, 12288, 14000, OGDS_ROUTE_BOUNCE, REASON_EDGE);
}

static void t_no_whole_block(void **state)
{
	struct plan_in in = direct(OGDS_OP_READ);
	struct plan p;

	in.off = 100;
	in.va = VA + 100;
	in.size = 3996;
	plan_make(&in, &p);
	assert_covers(&p, 100, 4096);
	assert_piece(&p, 0, 100, 4096, OGDS_ROUTE_BOUNCE, REASON_EDGE);
	assert_int_equal(p.whole, 0);
	/* so strict has nothing to refuse, nor has allow_compat_mode */
	in.strict = true;
	in.allow_compat = false;
	plan_make(&in, &p);
	assert_covers(&p, 100, 4096);
}

static void t_offset_mismatch(void **state)
{
	struct plan_in in = direct(OGDS_OP_READ);
	struct plan p;

	in.off = 512;
	plan_make(&in, &p);
	assert_covers(&p, 512, 512 + (1 << 20));
	assert_int_equal(p.n, 1);
	assert_piece(&p, 0, 512, 512 + (1 << 20), OGDS_ROUTE_STAGED, REASON_OFFSET_MISMATCH);
	assert_int_equal(p.whole_direct, p.whole);
	/* the same remainder is enough */
	in.va = VA + 512;
	plan_make(&in, &p);
	assert_piece(&p, 1, 4096, 1 << 20, OGDS_ROUTE_NVFS, REASON_NONE);
	/* a write alike */
	in = direct(OGDS_OP_WRITE);
	in.va = VA + 1;
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_STAGED, REASON_OFFSET_MISMATCH);
}

static void t_unregistered(void **state)
{
	struct plan_in in = direct(OGDS_OP_READ);
	struct plan p;

	in.registered = false;
	in.pin_reason = REASON_NOT_REGISTERED;
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_STAGED, REASON_NOT_REGISTERED);
	in.pin_now = true;
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_NVFS, REASON_NONE);
	/* registered, and the pin was refused */
	in.registered = true;
	in.pin_reason = REASON_PIN_FAILED;
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_STAGED, REASON_PIN_FAILED);
	/* and no staging either */
	in.staging_reason = REASON_NO_STAGING;
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_BOUNCE, REASON_NO_STAGING);
	assert_int_equal(p.whole_direct, 0);
}

static void t_other_memory(void **state)
{
	struct plan_in in = direct(OGDS_OP_READ);
	struct plan p;

	in.kind = GPU_MEM_MANAGED;
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_STAGED, REASON_MANAGED_MEMORY);
	in = direct(OGDS_OP_READ);
	in.registered = false;
	in.pin_reason = REASON_NOT_REGISTERED;
	in.other_context = true;
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_BOUNCE, REASON_OTHER_CONTEXT);
}

static void t_file_or_module(void **state)
{
	struct plan_in in = direct(OGDS_OP_READ);
	struct plan p;

	in.off = 100;
	in.va = VA + 100;
	in.file_reason = REASON_FS_TYPE;
	plan_make(&in, &p);
	assert_covers(&p, 100, 100 + (1 << 20));
	assert_int_equal(p.n, 1);
	assert_piece(&p, 0, 100, 100 + (1 << 20), OGDS_ROUTE_BOUNCE, REASON_FS_TYPE);
	in.file_reason = REASON_NONE;
	in.module_reason = REASON_NO_MODULE;
	plan_make(&in, &p);
	assert_int_equal(p.n, 1);
	assert_piece(&p, 0, 100, 100 + (1 << 20), OGDS_ROUTE_BOUNCE, REASON_NO_MODULE);
	assert_int_equal(p.no_fall_back, REASON_NONE);
}

static void t_strict(void **state)
{
	struct plan_in in = direct(OGDS_OP_WRITE);
	struct plan p;

	in.strict = true;
	in.off = 100;
	in.va = VA + 100;
	plan_make(&in, &p);
	/* edges may bounce, the whole blocks went direct */
	assert_covers(&p, 100, 100 + (1 << 20));
	assert_int_equal(p.no_fall_back, REASON_STRICT);
	assert_int_equal(p.refused_by, REASON_NONE);
	in.file_reason = REASON_FS_JOURNAL;
	plan_make(&in, &p);
	assert_int_equal(p.error, ERR(IO_NOT_SUPPORTED));
	assert_int_equal(p.reason, REASON_FS_JOURNAL);
	assert_int_equal(p.refused_by, REASON_STRICT);
	assert_int_equal(p.n, 0);
	/* staged is direct too */
	in.file_reason = REASON_NONE;
	in.registered = false;
	in.pin_reason = REASON_NOT_REGISTERED;
	plan_make(&in, &p);
	assert_int_equal(p.error, 0);
	assert_int_equal(p.whole_direct, p.whole);
}

/* What stands further left decides: strict, force_compat, routes, allow_compat. */
static void t_precedence(void **state)
{
	struct plan_in in = direct(OGDS_OP_READ);
	struct plan p;

	in.force_compat = true;
	plan_make(&in, &p);
	assert_int_equal(p.n, 1);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_BOUNCE, REASON_FORCE_COMPAT);
	/* force_compat over allow_compat */
	in.allow_compat = false;
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_BOUNCE, REASON_FORCE_COMPAT);
	/* strict over force_compat: neither may be broken, so nothing is done */
	in.strict = true;
	plan_make(&in, &p);
	assert_int_equal(p.error, ERR(IO_NOT_SUPPORTED));
	assert_int_equal(p.reason, REASON_FORCE_COMPAT);
	assert_int_equal(p.refused_by, REASON_STRICT);

	/* a route that is left out */
	in = direct(OGDS_OP_READ);
	in.routes &= ~(1u << OGDS_ROUTE_NVFS);
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_STAGED, REASON_ROUTE_DENIED);
	in.routes &= ~(1u << OGDS_ROUTE_STAGED | 1u << OGDS_ROUTE_P2PDMA);
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_BOUNCE, REASON_ROUTE_DENIED);
	in.routes &= ~(1u << OGDS_ROUTE_BOUNCE);
	plan_make(&in, &p);
	assert_int_equal(p.error, ERR(IO_NOT_SUPPORTED));
	assert_int_equal(p.reason, REASON_ROUTE_DENIED);
	assert_int_equal(p.refused_by, REASON_ROUTE_DENIED);
	assert_int_equal(p.no_fall_back, REASON_ROUTE_DENIED);
	/* of a route that refused and one that is left out, the first has the cause */
	in = direct(OGDS_OP_READ);
	in.strict = true;
	in.pin_reason = REASON_PIN_FAILED;
	in.routes = 1u << OGDS_ROUTE_NVFS | 1u << OGDS_ROUTE_BOUNCE;
	plan_make(&in, &p);
	assert_int_equal(p.reason, REASON_PIN_FAILED);
	/* edges need a route as well */
	in = direct(OGDS_OP_WRITE);
	in.size += 1;
	in.routes &= ~(1u << OGDS_ROUTE_BOUNCE);
	plan_make(&in, &p);
	assert_int_equal(p.error, ERR(IO_NOT_SUPPORTED));
	assert_int_equal(p.n, 0);
}

static void t_compat_forbidden(void **state)
{
	struct plan_in in = direct(OGDS_OP_READ);
	struct plan p;

	in.allow_compat = false;
	in.size = 8192 + 5;
	plan_make(&in, &p);
	assert_covers(&p, 0, 8197);
	assert_piece(&p, 1, 8192, 8197, OGDS_ROUTE_BOUNCE, REASON_EDGE);
	assert_int_equal(p.no_fall_back, REASON_COMPAT_FORBIDDEN);
	in.file_reason = REASON_STACKED;
	plan_make(&in, &p);
	assert_int_equal(p.error, ERR(IO_NOT_SUPPORTED));
	assert_int_equal(p.reason, REASON_STACKED);
	assert_int_equal(p.refused_by, REASON_COMPAT_FORBIDDEN);
	in.allow_compat = true;
	plan_make(&in, &p);
	assert_int_equal(p.error, 0);
}

/* Any request: covered once, no byte of a partial block direct in place, whole counted. */
static void t_any(void **state)
{
	uint64_t seed = 88172645463325252ULL;
	struct plan_in in;
	struct plan p;
	unsigned int i, k;

	for (i = 0; i < 200000; i++) {
		uint64_t r[4], whole = 0;
		int64_t end;

		for (k = 0; k < 4; k++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			r[k] = seed;
		}
		in = direct(r[0] & 1 ? OGDS_OP_WRITE : OGDS_OP_READ);
		in.off = r[1] >> (16 + (r[0] >> 8) % 47);
		in.size = 1 + (r[2] >> (30 + (r[0] >> 16) % 33));
		in.va = VA + (r[0] & 2 ? in.off % 4096 : r[3] % 4096);
		in.registered = r[0] & 4;
		in.pin_reason = in.registered ? REASON_NONE : REASON_NOT_REGISTERED;
		in.file_reason = r[0] & 0x18 ? REASON_NONE : REASON_FS_TYPE;
		in.file_size = in.off + (r[3] >> (30 + (r[0] >> 24) % 33));
		plan_make(&in, &p);
		end = in.off + in.size;
		if (in.op == OGDS_OP_READ && end > in.file_size)
			end = in.file_size;
		assert_covers(&p, in.off, end > in.off ? end : in.off);
		for (k = 0; k < p.n; k++) {
			const struct ogds_piece *q = &p.piece[k];

			if (q->route == OGDS_ROUTE_NVFS) {
				assert_int_equal(q->file_off % 4096, 0);
				assert_int_equal(q->size % 4096, 0);
				assert_int_equal((in.va + q->file_off - in.off) % 4096, 0);
			}
			if (q->route == OGDS_ROUTE_STAGED && in.op == OGDS_OP_WRITE) {
				assert_int_equal(q->file_off % 4096, 0);
				assert_int_equal(q->size % 4096, 0);
			}
			if (route_table[q->route]->direct)
				whole += plan_whole(q->file_off, q->size);
		}
		assert_int_equal(p.whole_direct, whole);
		if (!in.file_reason)
			assert_int_equal(p.whole_direct, p.whole);
	}
}

/* Pages in the process: after the module, before staging, and whole blocks in place alone. */
static void t_pages(void **state)
{
	struct plan_in in = direct(OGDS_OP_READ);
	struct plan p;

	in.pages_reason = REASON_NONE;
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_NVFS, REASON_NONE);
	/* what the module does not take, as md */
	in.file_reason = REASON_STACKED;
	plan_make(&in, &p);
	assert_int_equal(p.n, 1);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_P2PDMA, REASON_STACKED);
	in.off = 100;
	in.va = VA + 100;
	plan_make(&in, &p);
	assert_int_equal(p.n, 3);
	assert_piece(&p, 1, 4096, 1 << 20, OGDS_ROUTE_P2PDMA, REASON_STACKED);
	/* in place: not at another offset, not unregistered, not managed, not without a module */
	in.va++;
	plan_make(&in, &p);
	assert_piece(&p, 0, 100, 100 + (1 << 20), OGDS_ROUTE_BOUNCE, REASON_STACKED);
	in.va--;
	in.registered = false;
	plan_make(&in, &p);
	assert_int_equal(p.piece[0].route, OGDS_ROUTE_BOUNCE);
	in.registered = true;
	in.kind = GPU_MEM_MANAGED;
	plan_make(&in, &p);
	assert_int_equal(p.piece[0].route, OGDS_ROUTE_BOUNCE);
	in.kind = GPU_MEM_DEVICE;
	in.module_reason = REASON_NO_MODULE;
	plan_make(&in, &p);
	assert_piece(&p, 0, 100, 100 + (1 << 20), OGDS_ROUTE_BOUNCE, REASON_STACKED);
	in.module_reason = REASON_NONE;
	in.file_pages_reason = REASON_PAGES_DEVICE;
	plan_make(&in, &p);
	assert_piece(&p, 0, 100, 100 + (1 << 20), OGDS_ROUTE_BOUNCE, REASON_STACKED);
}

/* Its own reason is for who asks for it in place of nvfs. */
static void t_pages_reason(void **state)
{
	struct plan_in in = direct(OGDS_OP_WRITE);
	struct plan p;

	in.pages_reason = REASON_PAGES_KERNEL;
	in.pin_reason = REASON_PIN_FAILED;
	in.staging_reason = REASON_NO_STAGING;
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_BOUNCE, REASON_NO_STAGING);
	in.routes = 1u << OGDS_ROUTE_P2PDMA | 1u << OGDS_ROUTE_BOUNCE;
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_BOUNCE, REASON_PAGES_KERNEL);
	in.routes = 1u << OGDS_ROUTE_BOUNCE;
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 1 << 20, OGDS_ROUTE_BOUNCE, REASON_ROUTE_DENIED);
	in.pages_reason = REASON_NONE;
	in.pin_reason = REASON_NONE;
	in.routes = ALL;
	assert_int_equal(plan_next(&in, OGDS_ROUTE_NVFS), OGDS_ROUTE_P2PDMA);
	in.routes &= ~(1u << OGDS_ROUTE_P2PDMA);
	in.staging_reason = REASON_NONE;
	assert_int_equal(plan_next(&in, OGDS_ROUTE_NVFS), OGDS_ROUTE_STAGED);
	assert_int_equal(plan_next(&in, OGDS_ROUTE_STAGED), OGDS_ROUTES);
}

/* The order in which direct routes are asked is that of their scores, and none is left out. */
static void t_order(void **state)
{
	unsigned int i, n = 0;

	for (i = 0; i < OGDS_ROUTES; i++)
		n += route_table[i]->direct;
	assert_int_equal(n, PLAN_DIRECT);
	for (i = 0; i < PLAN_DIRECT; i++) {
		assert_true(route_table[plan_order[i]]->direct);
		if (i)
			assert_true(route_table[plan_order[i]]->score <
				    route_table[plan_order[i - 1]]->score);
	}
}

/* Stores through BAR1: reads only, where they are quicker or an edge, and where they may. */
static void t_bar(void **state)
{
	struct plan_in in = direct(OGDS_OP_READ);
	struct plan p;

	in.file_reason = REASON_FS_TYPE;
	in.size = 5000;
	in.bar = true;
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 5000, OGDS_ROUTE_BOUNCE, REASON_FS_TYPE);
	in.bar_quicker = true;
	plan_make(&in, &p);
	assert_int_equal(p.n, 1);
	assert_piece(&p, 0, 0, 5000, OGDS_ROUTE_BAR, REASON_FS_TYPE);
	in.routes = ALL & ~(1u << OGDS_ROUTE_BAR);
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 5000, OGDS_ROUTE_BOUNCE, REASON_FS_TYPE);
	in.routes = ALL & ~(1u << OGDS_ROUTE_BOUNCE);
	in.bar_quicker = false;
	plan_make(&in, &p);
	assert_piece(&p, 0, 0, 5000, OGDS_ROUTE_BAR, REASON_FS_TYPE);
	in.op = OGDS_OP_WRITE;
	plan_make(&in, &p);
	assert_int_equal(p.reason, REASON_ROUTE_DENIED);
	/* edges of a direct read, however large it is */
	in = direct(OGDS_OP_READ);
	in.bar = true;
	in.off = 4000;
	in.va = VA + 4000;
	plan_make(&in, &p);
	assert_piece(&p, 0, 4000, 4096, OGDS_ROUTE_BAR, REASON_EDGE);
	assert_piece(&p, 1, 4096, 1052672 - 4096, OGDS_ROUTE_NVFS, REASON_NONE);
	assert_piece(&p, 2, 1048576, 1052576, OGDS_ROUTE_BAR, REASON_EDGE);
}

/* The quick plan is the other one's, or there is none. */
static void t_quick(void **state)
{
	struct plan_in in, other;
	struct plan p, q;
	unsigned int i, quick = 0;

	for (i = 0; i < 1 << 12; i++) {
		in = direct(i & 1 ? OGDS_OP_WRITE : OGDS_OP_READ);
		in.bar = i & 2;
		in.bar_quicker = i & 4;
		in.file_reason = i & 8 ? REASON_FS_TYPE : REASON_NONE;
		in.module_reason = i & 16 ? REASON_NO_MODULE : REASON_NONE;
		in.strict = i & 32;
		in.force_compat = i & 64;
		in.allow_compat = i & 128;
		in.routes = i & 256 ? ALL : ALL & ~(1u << OGDS_ROUTE_BAR);
		in.kind = i & 512 ? GPU_MEM_DEVICE : GPU_MEM_MANAGED;
		in.size = i & 1024 ? 100000 : 4096;
		in.off = i & 2048 ? 4096 : 77;
		memset(&p, 0xa5, sizeof(p));
		if (!plan_quick(&in, &p))
			continue;
		quick++;
		other = in;
		plan_make(&other, &q);
		assert_int_equal(p.n, 1);
		assert_int_equal(q.n, 1);
		assert_memory_equal(&p.piece[0], &q.piece[0], sizeof(p.piece[0]));
		assert_int_equal(p.error, q.error);
		assert_int_equal(p.whole, q.whole);
		assert_int_equal(p.whole_direct, q.whole_direct);
		assert_int_equal(p.no_fall_back, 0);
	}
	assert_true(quick > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_read_ends_with_file), cmocka_unit_test(t_host_memory),
		cmocka_unit_test(t_edges_of_a_write),	 cmocka_unit_test(t_no_whole_block),
		cmocka_unit_test(t_offset_mismatch),	 cmocka_unit_test(t_unregistered),
		cmocka_unit_test(t_other_memory),	 cmocka_unit_test(t_file_or_module),
		cmocka_unit_test(t_strict),		 cmocka_unit_test(t_precedence),
		cmocka_unit_test(t_compat_forbidden),	 cmocka_unit_test(t_any),
		cmocka_unit_test(t_pages),
		cmocka_unit_test(t_pages_reason),
		cmocka_unit_test(t_order),		 cmocka_unit_test(t_bar),
		cmocka_unit_test(t_quick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
