// SPDX-License-Identifier: MIT
/*
 * Reads QEMU's trace of its NVMe controllers and IOMMU, and counts every data byte of an
 * I/O command once, by where it went.
 *
 * QEMU's main loop handles one command after the other, so the lines between a command's
 * pci_nvme_io_cmd and the next command's are its own:
 *
 *	pci_nvme_io_cmd cid 64 nsid 0x1 sqid 1 opc 0x2 opname 'NVME_NVM_CMD_READ'
 *	pci_nvme_map_prp trans_len 4096 len 8192 prp1 0x... prp2 0x... num_prps 3
 *	pci_nvme_map_addr addr 0xfffbb000 len 4096		one per piece of data
 *	vtd_dmar_translate dev 02:00.00 iova 0xfffbb000 -> gpa 0x22d0b000 mask 0xfff
 *	pci_nvme_enqueue_req_completion cid 64 cqid 1 dw0 0x0 dw1 0x0 status 0x0
 *
 * List pages, queues and interrupts have no map_addr line; admin commands, data set
 * management and metadata have, so pieces count only for commands that move user data,
 * and only up to the length of that data. A controller completes a command with success
 * even when its DMA faulted; so with an IOMMU a piece counts as resolved only when a
 * translation of its page follows its map_addr line.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proof.h"

enum nvme_opcode {
	NVME_WRITE	= 0x01,
	NVME_READ	= 0x02,
	NVME_COMPARE	= 0x05,
	NVME_APPEND	= 0x7d,
};

/* Part of a command's data that lies in one page when addresses are translated */
struct piece {
	uint64_t iova;
	uint64_t gpa;
	uint64_t len;
	bool resolved;
	uint32_t entry;		/* which map_addr line it comes from */
};

struct command {
	struct command *next;
	unsigned int cid;
	unsigned int sqid;
	bool data;		/* its data is user data */
	int dev;		/* PCI address of its drive, -1 not known */
	uint64_t left;		/* data bytes that no piece has been seen for */
	struct piece *piece;
	size_t pieces;
	size_t room;
	uint32_t entries;	/* map_addr lines so far */
	size_t unresolved;	/* pieces that wait for a translation */
	size_t first_open;	/* pieces before this one are resolved */
};

struct proof_trace {
	struct proof_pci pci;
	struct proof_count count;
	struct proof_extent *ext;
	size_t ext_room;
	struct command *first;		/* in flight, oldest first */
	struct command **last;
	struct command *now;		/* the one whose lines are being read; in the list */
	int last_dev;			/* PCI address of the last translation */
	uint64_t offset;		/* bytes of the file that were read */
	char *tail;			/* a line whose end is not there yet */
	size_t tail_len;
};

int proof_pci_read(const char *path, struct proof_pci *pci)
{
	char line[256], word[64];
	unsigned int n;
	uint64_t base, len;
	FILE *f;
	int ret = 0;

	memset(pci, 0, sizeof(*pci));
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "card %u %63s %" SCNu64 " %" SCNu64, &n, word, &base, &len) == 4) {
			if (n != pci->cards || n >= PROOF_CARDS || !len || base + len < base) {
				ret = -EPROTO;
				break;
			}
			pci->card[pci->cards++] = (struct proof_card){ base, len };
		} else if (sscanf(line, "drive %u %63s", &n, word) == 2) {
			pci->drives++;
		} else if (sscanf(line, "iommu %63s", word) == 1) {
			pci->translated = !strcmp(word, "on");
		} else {
			ret = -EPROTO;
			break;
		}
	}
	if (!ret && ferror(f))
		ret = -EIO;
	fclose(f);
	return ret;
}

struct proof_trace *proof_trace_new(const struct proof_pci *pci)
{
	struct proof_trace *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->pci = *pci;
	t->last = &t->first;
	t->last_dev = -1;
	return t;
}

static void command_free(struct command *cmd)
{
	free(cmd->piece);
	free(cmd);
}

void proof_trace_free(struct proof_trace *t)
{
	struct command *cmd;

	if (!t)
		return;
	while ((cmd = t->first)) {
		t->first = cmd->next;
		command_free(cmd);
	}
	free(t->ext);
	free(t->tail);
	free(t);
}

void proof_trace_pci(struct proof_trace *t, const struct proof_pci *pci)
{
	t->pci = *pci;
}

const struct proof_count *proof_trace_count(const struct proof_trace *t)
{
	return &t->count;
}

const struct proof_extent *proof_trace_extents(const struct proof_trace *t, size_t *n)
{
	*n = t->count.extents;
	return t->ext;
}

uint64_t proof_trace_offset(const struct proof_trace *t)
{
	return t->offset;
}

static int extent_add(struct proof_trace *t, uint32_t card, uint64_t off, uint64_t len)
{
	if (t->count.extents == t->ext_room) {
		size_t room = t->ext_room ? t->ext_room * 2 : 1024;
		void *p = realloc(t->ext, room * sizeof(*t->ext));

		if (!p)
			return -ENOMEM;
		t->ext = p;
		t->ext_room = room;
	}
	t->ext[t->count.extents++] = (struct proof_extent){ card, off, len };
	return 0;
}

/* Count len bytes at gpa; they may lie across the edge of a BAR */
static int bytes_add(struct proof_trace *t, uint64_t gpa, uint64_t len)
{
	while (len) {
		uint64_t n = len;
		unsigned int i;
		int ret;

		for (i = 0; i < t->pci.cards; i++) {
			const struct proof_card *c = &t->pci.card[i];

			if (gpa >= c->bar_gpa && gpa - c->bar_gpa < c->len) {
				uint64_t off = gpa - c->bar_gpa;

				if (n > c->len - off)
					n = c->len - off;
				ret = extent_add(t, i, off, n);
				if (ret)
					return ret;
				t->count.bar[i] += n;
				break;
			}
			/* the next BAR above ends this stretch of memory */
			if (c->bar_gpa > gpa && c->bar_gpa - gpa < n)
				n = c->bar_gpa - gpa;
		}
		if (i == t->pci.cards)
			t->count.ram += n;
		gpa += n;
		len -= n;
	}
	return 0;
}

/* The command has ended, or is lost: take it out and count what it moved */
static int command_end(struct proof_trace *t, struct command **link, bool failed)
{
	struct command *cmd = *link;
	size_t i;
	int ret = 0;

	for (i = 0; i < cmd->pieces && !ret; i++) {
		const struct piece *p = &cmd->piece[i];

		if (failed)
			t->count.failed += p->len;
		else if (!p->resolved)
			t->count.unresolved += p->len;
		else
			ret = bytes_add(t, p->gpa, p->len);
	}
	if (cmd->data)
		t->count.commands++;
	*link = cmd->next;
	if (t->last == &cmd->next)
		t->last = link;
	if (t->now == cmd)
		t->now = NULL;
	command_free(cmd);
	return ret;
}

static int on_command(struct proof_trace *t, unsigned int cid, unsigned int sqid,
		      unsigned int opc, bool admin)
{
	struct command **link, **oldest = NULL, *cmd;
	unsigned int same = 0, most = t->pci.drives ? t->pci.drives : 1;
	int ret;

	/*
	 * Lines do not name their drive. So several commands with one number may be under
	 * way, but never more than there are drives: then the oldest was lost in a reset.
	 */
	for (link = &t->first; *link; link = &(*link)->next) {
		if ((*link)->cid != cid || (*link)->sqid != sqid)
			continue;
		if (!oldest)
			oldest = link;
		same++;
	}
	if (same >= most) {
		ret = command_end(t, oldest, true);
		if (ret)
			return ret;
	}
	cmd = calloc(1, sizeof(*cmd));
	if (!cmd)
		return -ENOMEM;
	cmd->cid = cid;
	cmd->sqid = sqid;
	cmd->data = !admin && (opc == NVME_READ || opc == NVME_WRITE || opc == NVME_COMPARE ||
			       opc == NVME_APPEND);
	/* the entry of the queue was fetched just before, through the IOMMU if there is one */
	cmd->dev = t->last_dev;
	*t->last = cmd;
	t->last = &cmd->next;
	t->now = cmd;
	return 0;
}

static void on_map(struct proof_trace *t, uint64_t len)
{
	if (t->now && t->now->data)
		t->now->left = len;
}

static int piece_add(struct command *cmd, uint64_t iova, uint64_t len, bool translated)
{
	if (cmd->pieces == cmd->room) {
		size_t room = cmd->room ? cmd->room * 2 : 16;
		void *p = realloc(cmd->piece, room * sizeof(*cmd->piece));

		if (!p)
			return -ENOMEM;
		cmd->piece = p;
		cmd->room = room;
	}
	cmd->piece[cmd->pieces++] = (struct piece){
		.iova = iova, .gpa = iova, .len = len, .resolved = !translated,
		.entry = cmd->entries,
	};
	if (translated)
		cmd->unresolved++;
	return 0;
}

static int on_map_addr(struct proof_trace *t, uint64_t iova, uint64_t len)
{
	struct command *cmd = t->now;
	bool translated;
	int ret = 0;

	if (!cmd || !cmd->data)
		return 0;
	/* firmware reads the drives before the kernel turns the IOMMU on */
	translated = t->pci.translated && cmd->dev >= 0;
	/* what comes after the data is metadata */
	if (len > cmd->left)
		len = cmd->left;
	cmd->left -= len;
	cmd->entries++;
	while (len && !ret) {
		uint64_t n = len;

		if (translated && n > PROOF_PAGE - iova % PROOF_PAGE)
			n = PROOF_PAGE - iova % PROOF_PAGE;
		ret = piece_add(cmd, iova, n, translated);
		iova += n;
		len -= n;
	}
	return ret;
}

/*
 * QEMU translates an entry of its list page by page: a huge page (mask above 4 KiB) serves
 * all pieces of the entry that lie in it.
 */
static void resolve_entry(struct command *cmd, size_t i, uint64_t iova, uint64_t gpa,
			  uint64_t mask)
{
	uint32_t entry = cmd->piece[i].entry;

	for (; i < cmd->pieces && cmd->piece[i].entry == entry; i++) {
		struct piece *p = &cmd->piece[i];

		if (p->resolved || (p->iova & ~mask) != iova)
			break;
		p->gpa = gpa | (p->iova & mask);
		p->resolved = true;
		cmd->unresolved--;
	}
}

/*
 * Does the translation of a page belong to this command? Then note it. Every entry of the
 * list is translated by itself, in order, so the first that waits for the page takes it.
 */
static bool resolve(struct command *cmd, int dev, uint64_t iova, uint64_t gpa, uint64_t mask)
{
	size_t i;

	if (!cmd->unresolved || (cmd->dev >= 0 && cmd->dev != dev))
		return false;
	for (i = cmd->first_open; i < cmd->pieces; i++) {
		if (!cmd->piece[i].resolved && (cmd->piece[i].iova & ~mask) == iova)
			break;
	}
	if (i == cmd->pieces)
		return false;
	resolve_entry(cmd, i, iova, gpa, mask);
	cmd->dev = dev;
	while (cmd->first_open < cmd->pieces && cmd->piece[cmd->first_open].resolved)
		cmd->first_open++;
	return true;
}

static void on_translate(struct proof_trace *t, int dev, uint64_t iova, uint64_t gpa,
			 uint64_t mask)
{
	struct command *cmd;

	t->last_dev = dev;
	/*
	 * The command at hand first. After a fault QEMU maps the rest of a command later,
	 * between the lines of others: then the oldest that waits for the page.
	 */
	if (t->now && resolve(t->now, dev, iova, gpa, mask))
		return;
	for (cmd = t->first; cmd; cmd = cmd->next) {
		if (cmd != t->now && resolve(cmd, dev, iova, gpa, mask))
			return;
	}
}

static int on_completion(struct proof_trace *t, unsigned int cid, unsigned int cqid,
			 unsigned int status)
{
	struct command **link;

	/* Linux gives every submission queue a completion queue of the same number */
	for (link = &t->first; *link; link = &(*link)->next) {
		if ((*link)->cid == cid && (*link)->sqid == cqid)
			return command_end(t, link, status != 0);
	}
	return 0;
}

/* Skip a "PID@SECONDS:" stamp, which QEMU prints on demand */
static const char *skip_stamp(const char *line)
{
	const char *p = line;

	while (*p >= '0' && *p <= '9')
		p++;
	if (p == line || *p != '@')
		return line;
	p = strchr(p, ':');
	return p ? p + 1 : line;
}

/* Does the line start with the event's name? Then its text, else NULL. */
static const char *event(const char *line, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(line, name, n) && line[n] == ' ' ? line + n + 1 : NULL;
}

int proof_trace_line(struct proof_trace *t, const char *line)
{
	unsigned int cid, queue, opc, status, bus, slot, fn;
	uint64_t a, b, c;
	const char *p;

	line = skip_stamp(line);
	if ((p = event(line, "pci_nvme_map_addr"))) {
		if (sscanf(p, "addr %" SCNx64 " len %" SCNu64, &a, &b) == 2)
			return on_map_addr(t, a, b);
	} else if ((p = event(line, "vtd_dmar_translate"))) {
		if (sscanf(p, "dev %x:%x.%x iova %" SCNx64 " -> gpa %" SCNx64 " mask %" SCNx64,
			   &bus, &slot, &fn, &a, &b, &c) == 6)
			on_translate(t, (int)(bus << 8 | slot << 3 | fn), a, b, c);
	} else if ((p = event(line, "pci_nvme_io_cmd"))) {
		if (sscanf(p, "cid %u nsid %*x sqid %u opc %x", &cid, &queue, &opc) == 3)
			return on_command(t, cid, queue, opc, false);
	} else if ((p = event(line, "pci_nvme_admin_cmd"))) {
		if (sscanf(p, "cid %u sqid %u opc %x", &cid, &queue, &opc) == 3)
			return on_command(t, cid, queue, opc, true);
	} else if ((p = event(line, "pci_nvme_map_prp"))) {
		if (sscanf(p, "trans_len %*u len %" SCNu64, &a) == 1)
			on_map(t, a);
	} else if ((p = event(line, "pci_nvme_map_sgl"))) {
		if (sscanf(p, "type %*x len %" SCNu64, &a) == 1)
			on_map(t, a);
	} else if ((p = event(line, "pci_nvme_enqueue_req_completion"))) {
		if (sscanf(p, "cid %u cqid %u dw0 %*x dw1 %*x status %x", &cid, &queue,
			   &status) == 3)
			return on_completion(t, cid, queue, status);
	}
	return 0;
}

/* Hand the whole lines of buf on, keep the rest */
static int lines(struct proof_trace *t, char *buf, size_t len)
{
	char *p = buf, *end = buf + len, *nl;
	int ret;

	while ((nl = memchr(p, '\n', (size_t)(end - p)))) {
		*nl = 0;
		if (t->tail_len) {
			char *whole = realloc(t->tail, t->tail_len + (size_t)(nl - p) + 1);

			if (!whole)
				return -ENOMEM;
			memcpy(whole + t->tail_len, p, (size_t)(nl - p) + 1);
			t->tail = whole;
			t->tail_len = 0;
			ret = proof_trace_line(t, whole);
		} else {
			ret = proof_trace_line(t, p);
		}
		if (ret)
			return ret;
		p = nl + 1;
	}
	if (p < end) {
		size_t rest = (size_t)(end - p);
		char *more = realloc(t->tail, t->tail_len + rest + 1);

		if (!more)
			return -ENOMEM;
		memcpy(more + t->tail_len, p, rest);
		t->tail = more;
		t->tail_len += rest;
	}
	return 0;
}

int proof_trace_file(struct proof_trace *t, int fd)
{
	static char buf[1 << 18];
	ssize_t n;
	int ret;

	while ((n = pread(fd, buf, sizeof(buf), (off_t)t->offset)) != 0) {
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		t->offset += (uint64_t)n;
		ret = lines(t, buf, (size_t)n);
		if (ret)
			return ret;
	}
	return 0;
}
