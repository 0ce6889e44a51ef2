// SPDX-License-Identifier: MIT
/*
 * topology_svg.c - the tree as a picture: a row for each function, indented as it lies, then the
 * pairs. Colours are classes, so that a viewer with a dark theme gets dark ones; the background
 * is the picture's own, so that it can be read on any page. Nothing is loaded from elsewhere.
 */
#include <errno.h>
#include <string.h>

#include "topology.h"

#define MARGIN 24
#define ROW 46		/* from one function to the next */
#define BOX 38
#define INDENT 34
/* The width of a letter, rather too much: a bold one of 13 px, a small one, a small bold one */
#define LETTER 8.4
#define SMALL 6.8
#define SMALL_BOLD 7.8
#define GAP 18		/* between pieces of a line */

static const char style[] =
	"text{font-family:'DejaVu Sans','Segoe UI',Helvetica,Arial,sans-serif;font-size:13px}"
	".bg{fill:#ffffff}.t,.h{fill:#1c2430}.h{font-weight:bold}.s{fill:#4a5666;font-size:11.5px}"
	".w{fill:#a33a00;font-weight:bold}.l{stroke:#8b98a8;stroke-width:1.5;fill:none}"
	".b{stroke-width:1.5}.k0{fill:#eef1f5;stroke:#8b98a8}.k1{fill:#e6ebf3;stroke:#6f8199}"
	".k2{fill:#dff3e4;stroke:#2f8f4e}.k3{fill:#e2ecfb;stroke:#2d6cc0}.k4{fill:#f3e8fa;stroke:#8a4bb0}"
	"@media (prefers-color-scheme:dark){.bg{fill:#12161c}.t,.h{fill:#e6ebf2}.s{fill:#aab6c5}"
	".w{fill:#ff9d5c}.l{stroke:#66758a}.k0{fill:#1d232c;stroke:#66758a}.k1{fill:#222b38;stroke:#7f93ad}"
	".k2{fill:#143322;stroke:#4fc07a}.k3{fill:#152a47;stroke:#5f9bea}.k4{fill:#301c3d;stroke:#c287e6}}";

/* Names come from a driver or from a recorded machine. */
static void escape(const char *p, FILE *f)
{
	for (; *p; p++)
		switch (*p) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		default:
			fputc((unsigned char)*p < ' ' ? '?' : *p, f);
		}
}

static void text(FILE *f, double x, double y, const char *class, const char *words)
{
	fprintf(f, "<text x=\"%.0f\" y=\"%.0f\" class=\"%s\">", x, y, class);
	escape(words, f);
	fputs("</text>\n", f);
}

/* A heading of a root complex takes a row, too. */
static bool begins_complex(const struct topo *t, size_t i)
{
	return !i || strcmp(t->node[i].pci.complex, t->node[i - 1].pci.complex);
}

static double row_top(const struct topo *t, size_t i)
{
	double y = MARGIN + 34;
	size_t j;

	for (j = 0; j <= i; j++)
		y += begins_complex(t, j) ? 30 : 0;
	return y + (double)i * ROW;
}

static double row_left(const struct topo_node *node)
{
	return MARGIN + 12 + (double)node->depth * INDENT;
}

static void title(const struct topo_node *node, char *out, size_t len)
{
	snprintf(out, len, "%s%s%s  %s", topo_kind(node), node->pci.name[0] ? " " : "",
		 node->pci.name, node->pci.address);
}

/* Link, ACS, IOMMU; each a piece that is marked when it is bad */
static void details(const struct topo_node *node, char piece[4][160])
{
	topo_link(node, piece[0], sizeof(piece[0]));
	topo_acs(node, piece[1], sizeof(piece[1]));
	topo_iommu(node, piece[2], sizeof(piece[2]));
	piece[3][0] = '\0';
	if (!topo_is_bridge(node) && node->pci.numa >= 0)
		snprintf(piece[3], sizeof(piece[3]), "NUMA node %d", node->pci.numa);
}

static bool is_bad(const struct topo_node *node, unsigned int piece)
{
	switch (piece) {
	case 0:
		return node->slow;
	case 1:
		return node->acs.on & FACTS_ACS_REDIRECT;
	case 2:
		return node->iommu.state >= FACTS_IOMMU_DMA;
	default:
		return false;
	}
}

static double box_width(const struct topo_node *node)
{
	char head[96], piece[4][160];
	double wide, small = 0;
	unsigned int i;

	title(node, head, sizeof(head));
	details(node, piece);
	wide = (double)strlen(head) * LETTER;
	for (i = 0; i < 4; i++)
		if (piece[i][0])
			small += (double)strlen(piece[i]) * (is_bad(node, i) ? SMALL_BOLD : SMALL) +
				 GAP;
	return (wide > small ? wide : small) + 24;
}

static void draw_line(const struct topo *t, size_t i, FILE *f)
{
	const struct topo_node *node = &t->node[i];
	double x = row_left(node) - INDENT / 2.0, y = row_top(t, i) + BOX / 2.0;
	double from;

	if (node->above == TOPO_NONE)
		return;
	from = row_top(t, node->above) + BOX;
	fprintf(f, "<path class=\"l\" d=\"M%.0f %.0fV%.0fH%.0f\"/>\n", x, from, y, row_left(node));
}

static void draw_node(const struct topo *t, size_t i, FILE *f)
{
	const struct topo_node *node = &t->node[i];
	double x = row_left(node), y = row_top(t, i);
	char head[96], piece[4][160];
	bool first = true;
	unsigned int k;

	fprintf(f, "<rect class=\"b k%d\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%d\" rx=\"6\"/>\n",
		(int)node->pci.kind, x, y, box_width(node), BOX);
	title(node, head, sizeof(head));
	text(f, x + 10, y + 16, "h", head);
	details(node, piece);
	fprintf(f, "<text x=\"%.0f\" y=\"%.0f\" class=\"s\">", x + 10, y + 31);
	for (k = 0; k < 4; k++) {
		if (!piece[k][0])
			continue;
		fprintf(f, "<tspan dx=\"%d\"%s>", first ? 0 : GAP,
			is_bad(node, k) ? " class=\"w\"" : "");
		escape(piece[k], f);
		fputs("</tspan>", f);
		first = false;
	}
	fputs("</text>\n", f);
}

static void pair_text(const struct topo_pair *p, char *out, size_t len)
{
	char way[320];

	snprintf(out, len, "%s - %s%s%s: %s", p->gpu->pci.address, p->drive->pci.address,
		 p->drive->pci.name[0] ? " " : "", p->drive->pci.name, topo_way(p, way, sizeof(way)));
}

/* What all of it takes */
static void size_of(const struct topo *t, double *wide, double *high)
{
	struct topo_pair p;
	size_t i, j;
	char buf[480];
	double w;

	*wide = 420;
	for (i = 0; i < t->n; i++) {
		w = row_left(&t->node[i]) + box_width(&t->node[i]);
		*wide = w > *wide ? w : *wide;
	}
	*high = t->n ? row_top(t, t->n - 1) + ROW + 34 : MARGIN + 60;
	for (i = j = 0; topo_pair(t, &i, &j, &p); *high += 20) {
		pair_text(&p, buf, sizeof(buf));
		w = MARGIN + 12 + (double)strlen(buf) * SMALL_BOLD;
		*wide = w > *wide ? w : *wide;
	}
	*wide += MARGIN;
	*high += MARGIN;
}

static void draw(const struct topo *t, FILE *f)
{
	struct topo_pair p;
	double wide, high, y;
	size_t i, j;
	char buf[480];

	size_of(t, &wide, &high);
	fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\">\n",
		wide, high, wide, high);
	fprintf(f, "<title>GPUs, drives and network cards of this machine</title>\n<style>%s</style>\n",
		style);
	fprintf(f, "<rect class=\"bg\" width=\"100%%\" height=\"100%%\"/>\n");
	text(f, MARGIN, MARGIN + 14, "h", "GPUs, drives and network cards, and what is between them");
	for (i = 0; i < t->n; i++) {
		if (begins_complex(t, i)) {
			snprintf(buf, sizeof(buf), "root complex %s", t->node[i].pci.complex);
			text(f, MARGIN, row_top(t, i) - 10, "t", buf);
		}
		draw_line(t, i, f);
	}
	for (i = 0; i < t->n; i++)
		draw_node(t, i, f);
	y = t->n ? row_top(t, t->n - 1) + ROW + 20 : MARGIN + 40;
	text(f, MARGIN, y, "h", "From GPU to drive");
	for (i = j = 0; topo_pair(t, &i, &j, &p);) {
		y += 20;
		pair_text(&p, buf, sizeof(buf));
		text(f, MARGIN + 12, y,
		     p.redirects || p.translated || p.way == FACTS_PCI_WAY_OTHER ? "s w" : "s", buf);
	}
	fputs("</svg>\n", f);
}

int gc_topology_svg(const char *root, const char *file)
{
	struct topo t;
	FILE *f;
	int r;

	r = topo_read(root, &t);
	if (r) {
		fprintf(stderr, "%s/sys/bus/pci/devices: %s; mount /sys, in a container read-only\n",
			root, strerror(-r));
		topo_free(&t);
		return TOPOLOGY_EXIT_FAILED;
	}
	f = fopen(file, "we");
	if (f) {
		draw(&t, f);
		r = fflush(f) || ferror(f) ? errno : 0;
		r = fclose(f) ? errno : r;
	} else {
		r = errno;
	}
	topo_free(&t);
	if (!r)
		return TOPOLOGY_EXIT_TOLD;
	fprintf(stderr, "%s: %s; name a file that can be written\n", file, strerror(r));
	return TOPOLOGY_EXIT_FAILED;
}
