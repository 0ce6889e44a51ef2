// SPDX-License-Identifier: MIT
/*
 * pciway.c - which way the bytes between two PCI functions go, by the bridges above them and what
 * these redirect.
 */
#include <string.h>

#include "facts.h"

/* True at the first function from p up to `end`, and with it, that redirects. */
static bool redirect(const char *root, const struct facts_pci *tree, size_t n,
		     const struct facts_pci *p, const struct facts_pci *end, struct facts_way *out)
{
	struct facts_pci_acs acs;

	for (; p; p = facts_pci_above(tree, n, p)) {
		if (!facts_pci_acs(root, p->address, &acs)) {
			if (!acs.readable)
				out->acs_unknown = true;
			if (acs.on & FACTS_ACS_REDIRECT) {
				memcpy(out->at, p->address, sizeof(out->at));
				return true;
			}
		}
		if (p == end)
			break;
	}
	return false;
}

void facts_way(const char *root, const struct facts_pci *tree, size_t n, const struct facts_pci *a,
	       const struct facts_pci *b, struct facts_way *out)
{
	const struct facts_pci *meet;
	enum facts_pci_way way = facts_pci_way(tree, n, a, b, &meet);

	memset(out, 0, sizeof(*out));
	if (!meet) {
		out->kind = way == FACTS_PCI_WAY_OTHER ? FACTS_WAY_FAR : FACTS_WAY_HOST;
		return;
	}
	out->kind = FACTS_WAY_REDIRECT;
	if (redirect(root, tree, n, a, meet, out) || redirect(root, tree, n, b, meet, out))
		return;
	out->kind = FACTS_WAY_SWITCH;
	memcpy(out->at, meet->address, sizeof(out->at));
}
