// SPDX-License-Identifier: MIT
/* cufile_prop_pick.c - what the property test tries: random, but with the values that hurt. */
#include "cufile_prop.h"
#include "t_random.h"

uint64_t prop_next(struct prop *p)
{
	return t_random(&p->rnd);
}

uint64_t prop_below(struct prop *p, uint64_t n)
{
	return n ? prop_next(p) % n : 0;
}

size_t prop_log_size(struct prop *p, size_t max)
{
	unsigned int bits = 0;
	size_t size;

	while (max >> bits > 1)
		bits++;
	size = 1UL << prop_below(p, bits + 1);
	size += prop_below(p, size);
	return size < max ? size : max;
}

uint64_t prop_interesting(struct prop *p, uint64_t v)
{
	static const uint64_t unit[] = { 512, 4096, 65536 };
	uint64_t u = unit[prop_below(p, 3)];

	if (prop_below(p, 2))
		return v;
	v = v / u * u;
	switch (prop_below(p, 3)) {
	case 0: return v;
	case 1: return v + 1;
	default: return v ? v - 1 : u - 1;
	}
}

/* The largest size that may shrink; triples: there is none. */
static unsigned int largest(const struct prop *p, bool keep_big)
{
	unsigned int i, top = p->triples;

	for (i = 0; i < p->triples; i++) {
		if (p->size[i] < 2 || (keep_big && p->size[i] > BIG && p->size[i] <= BIG + M))
			continue;
		if (top == p->triples || p->size[i] > p->size[top])
			top = i;
	}
	return top;
}

void prop_plan_sizes(struct prop *p)
{
	unsigned int i, top, big = 0, want = prop_least(20, p->max_bytes / 2 / (BIG + 16 * M));
	size_t sum = 0, *size = p->size;

	want = prop_least(want, p->triples / 2);
	for (i = 0; i < p->triples; i++) {
		size[i] = prop_least(prop_interesting(p, prop_log_size(p, MAX_SIZE)), MAX_SIZE);
		size[i] += !size[i];
		big += size[i] > BIG;
	}
	while (big < want) {
		i = prop_below(p, p->triples);
		if (size[i] > BIG)
			continue;
		size[i] = BIG + 1 + prop_below(p, MAX_SIZE - BIG);
		big++;
	}
	for (i = 0; i < p->triples; i++)
		sum += size[i];
	while (sum > p->max_bytes) {
		top = largest(p, big <= want);
		if (top == p->triples)
			t_die("--max-bytes %zu is too small for %u triples", p->max_bytes,
			      p->triples);
		sum -= size[top];
		if (size[top] > BIG && big <= want) {
			size[top] = BIG + 1 + prop_below(p, M);
		} else {
			big -= size[top] > BIG;
			size[top] = size[top] > BIG ? prop_log_size(p, BIG) :
				    1 + prop_below(p, size[top] / 2);
		}
		sum += size[top];
	}
}

static void pick_offset(struct prop *p, struct step *s, off_t end)
{
	off_t room = p->file_size - s->size, last = prop_least(end, room);

	if (!s->write && prop_below(p, 8))	/* most reads end before the file does */
		last = end > (off_t)s->size ? end - s->size : 0;
	switch (prop_below(p, 16)) {
	case 0: s->off = 0; break;
	case 1: s->off = last; break;
	case 2: s->off = end - prop_below(p, prop_least(s->size, end) + 1); break;
	default: s->off = prop_interesting(p, prop_below(p, last + 1)); break;
	}
	if (s->hole)
		s->off = prop_interesting(p, prop_below(p, prop_least(end + 16 * M, room) + 1));
	else if (!s->write && !prop_below(p, 24))
		s->off = end + prop_below(p, 3) * prop_below(p, 2 * T_BLOCK);
	if (s->write)
		s->off = prop_least(s->off, s->hole ? room : prop_least(end, room));
}

static void pick_target(struct prop *p, struct step *s)
{
	size_t at = GPU_GUARD + T_BLOCK, room = SLACK + MAX_SIZE - s->size;
	size_t v = prop_interesting(p, prop_below(p, room + 1));

	if (prop_below(p, 2))	/* alike modulo 4096: no staging is needed */
		v = v / T_BLOCK * T_BLOCK + s->off % T_BLOCK;
	while (v > room)
		v -= v >= T_BLOCK ? T_BLOCK : v - room;
	s->target = at + v;
}

void prop_pick(struct prop *p, struct step *s, size_t size, off_t end, bool hole)
{
	s->size = size;
	s->hole = hole;
	s->write = prop_below(p, 2);
	s->registered = prop_below(p, 2);
	s->advanced = prop_below(p, 2);
	pick_offset(p, s, end);
	pick_target(p, s);
}
