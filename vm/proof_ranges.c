// SPDX-License-Identifier: MIT
/*
 * The ranges of GPU memory that a checkpoint names: which DMA fell into them, and what
 * the cards' memory files hold there, seen from outside the guest.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "proof.h"

static int refuse(char *why, size_t len, const char *text, const char *line)
{
	snprintf(why, len, "%s: '%s'", text, line);
	return -EINVAL;
}

static int range_add(struct proof_request *req, const struct proof_range *r)
{
	/* grows by powers of two */
	if (!(req->ranges & (req->ranges - 1))) {
		size_t room = req->ranges ? req->ranges * 2 : 1;
		void *p = realloc(req->range, room * sizeof(*req->range));

		if (!p)
			return -ENOMEM;
		req->range = p;
	}
	req->range[req->ranges++] = *r;
	return 0;
}

static int request_line(const char *line, const struct proof_pci *pci, struct proof_request *req,
			char *why, size_t why_len)
{
	struct proof_range r;
	char word[8], name[64];
	int end = 0;

	if (sscanf(line, "mark %7s %63[A-Za-z0-9_.-]%n", word, name, &end) == 2 && !line[end]) {
		if (!strcmp(word, "begin"))
			req->mark = PROOF_BEGIN;
		else if (!strcmp(word, "end"))
			req->mark = PROOF_END;
		else
			return refuse(why, why_len, "mark begin or mark end is expected", line);
		strcpy(req->section, name);
		return 0;
	}
	if (sscanf(line, "poison %16" SCNx64 "%n", &req->poison, &end) == 1 && !line[end]) {
		req->has_poison = true;
		return 0;
	}
	if (sscanf(line, "range %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 "%n", &r.card, &r.off,
		   &r.len, &r.buf_off, &end) == 4 && !line[end]) {
		if (r.card >= pci->cards)
			return refuse(why, why_len, "there is no such card", line);
		if (!r.len || r.off > pci->card[r.card].len ||
		    r.len > pci->card[r.card].len - r.off)
			return refuse(why, why_len, "the range is not within its card", line);
		return range_add(req, &r);
	}
	return refuse(why, why_len, "a request has lines mark, poison and range only", line);
}

static int by_buffer(const void *a, const void *b)
{
	const struct proof_range *x = a, *y = b;

	return x->buf_off < y->buf_off ? -1 : x->buf_off > y->buf_off;
}

static int by_card(const void *a, const void *b)
{
	const struct proof_range *x = a, *y = b;

	if (x->card != y->card)
		return x->card < y->card ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

int proof_request_parse(char *text, const struct proof_pci *pci, struct proof_request *req,
			char *why, size_t why_len)
{
	char *line, *save = NULL;
	size_t i;
	int ret;

	memset(req, 0, sizeof(*req));
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		ret = request_line(line, pci, req, why, why_len);
		if (ret)
			return ret;
	}
	if (!req->ranges)
		return 0;
	/* a buffer has no gaps and no byte twice, else its hash would mean nothing */
	qsort(req->range, req->ranges, sizeof(*req->range), by_buffer);
	for (i = 1; i < req->ranges; i++) {
		if (req->range[i].buf_off != req->range[i - 1].buf_off + req->range[i - 1].len) {
			snprintf(why, why_len, "the ranges have a gap or overlap at buffer offset %"
				 PRIu64, req->range[i].buf_off);
			return -EINVAL;
		}
	}
	return 0;
}

void proof_request_free(struct proof_request *req)
{
	free(req->range);
	req->range = NULL;
	req->ranges = 0;
}

/* The ranges sorted by place, those that touch or overlap joined */
static struct proof_range *merged(const struct proof_request *req, size_t *n)
{
	struct proof_range *r = malloc(req->ranges * sizeof(*r));
	size_t i;

	*n = 0;
	if (!r)
		return NULL;
	memcpy(r, req->range, req->ranges * sizeof(*r));
	qsort(r, req->ranges, sizeof(*r), by_card);
	for (i = 0; i < req->ranges; i++) {
		struct proof_range *last = *n ? &r[*n - 1] : NULL;

		if (last && last->card == r[i].card && r[i].off <= last->off + last->len) {
			if (r[i].off + r[i].len > last->off + last->len)
				last->len = r[i].off + r[i].len - last->off;
		} else {
			r[(*n)++] = r[i];
		}
	}
	return r;
}

int proof_ranges_hit(const struct proof_request *req, const struct proof_extent *ext, size_t n,
		     uint64_t *bytes)
{
	struct proof_range *r;
	size_t ranges, i;

	*bytes = 0;
	if (!req->ranges)
		return 0;
	r = merged(req, &ranges);
	if (!r)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		const struct proof_extent *e = &ext[i];
		size_t lo = 0, hi = ranges;

		/* the first range that ends after the extent starts */
		while (lo < hi) {
			size_t mid = lo + (hi - lo) / 2;

			if (r[mid].card < e->card ||
			    (r[mid].card == e->card && r[mid].off + r[mid].len <= e->off))
				lo = mid + 1;
			else
				hi = mid;
		}
		for (; lo < ranges && r[lo].card == e->card && r[lo].off < e->off + e->len; lo++) {
			uint64_t from = r[lo].off > e->off ? r[lo].off : e->off;
			uint64_t end = r[lo].off + r[lo].len, to = e->off + e->len;

			*bytes += (end < to ? end : to) - from;
		}
	}
	free(r);
	return 0;
}

/* Is buf, which stands at offset off of its card, all poison? */
static bool is_poison(const unsigned char *buf, size_t len, uint64_t off, uint64_t poison)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (buf[i] != (unsigned char)(poison >> (off + i) % 8 * 8))
			return false;
	}
	return true;
}

static int range_content(int fd, const struct proof_range *r, const struct proof_request *req,
			 EVP_MD_CTX *md, struct proof_content *content)
{
	static unsigned char buf[1 << 20];
	uint64_t done = 0;

	while (done < r->len) {
		size_t want = r->len - done < sizeof(buf) ? (size_t)(r->len - done) : sizeof(buf);
		ssize_t n = pread(fd, buf, want, (off_t)(r->off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -ENODATA;
		if (EVP_DigestUpdate(md, buf, (size_t)n) != 1)
			return -EIO;
		if (content->poisoned)
			content->poisoned = is_poison(buf, (size_t)n, r->off + done, req->poison);
		done += (uint64_t)n;
	}
	content->bytes += r->len;
	return 0;
}

int proof_ranges_content(const char *dir, const struct proof_request *req,
			 struct proof_content *content)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	unsigned int sum_len = 0;
	uint32_t open_card = 0;
	char path[4096];
	int fd = -1, ret = 0;
	size_t i;

	memset(content, 0, sizeof(*content));
	if (!md)
		return -ENOMEM;
	if (EVP_DigestInit_ex(md, EVP_sha256(), NULL) != 1) {
		ret = -EIO;
		goto out;
	}
	content->poisoned = req->ranges && req->has_poison;
	for (i = 0; i < req->ranges; i++) {
		const struct proof_range *r = &req->range[i];

		if (fd < 0 || open_card != r->card) {
			if (fd >= 0)
				close(fd);
			snprintf(path, sizeof(path), "%s/card%" PRIu32 ".vram", dir, r->card);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd < 0) {
				ret = -errno;
				goto out;
			}
			open_card = r->card;
		}
		ret = range_content(fd, r, req, md, content);
		if (ret)
			goto out;
	}
	if (EVP_DigestFinal_ex(md, sum, &sum_len) != 1 || sum_len != 32) {
		ret = -EIO;
		goto out;
	}
	for (i = 0; i < sum_len; i++)
		snprintf(content->sha256 + i * 2, 3, "%02x", sum[i]);
out:
	if (fd >= 0)
		close(fd);
	EVP_MD_CTX_free(md);
	return ret;
}
