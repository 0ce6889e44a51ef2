// SPDX-License-Identifier: MIT
/*
 * layout.c - the fingerprints of the known layouts.
 *
 * By shape: no release number decides anything. `tags` only says for people which releases a
 * shape was seen in; where several differ in nothing that is looked at, they are one row.
 */
#include <string.h>

#include "gdspatch.h"

static const struct gp_row rows[] = {
	{ "535.43.02 to 535.288.01",
	  "395e98,46f6a7,46f6a7,491d52,491d52 unsupported,unsupported,unsupported,zero,zero "
	  "A GH100,GP100 pcie:no BAR1P2P static:GH100",
	  false, false },
	{ "545.23.06 to 550.163.01",
	  "395e98,395e98,395e98,bf6dfa,bf6dfa unsupported,unsupported,unsupported,zero,zero "
	  "A GH100,GP100 pcie:no BAR1P2P static:GH100",
	  false, false },
	{ "555.42.02 to 560.35.03",
	  "395e98,395e98,395e98,bf6dfa,bf6dfa unsupported,unsupported,unsupported,zero,zero "
	  "B GH100,GP100 pcie:no BAR1P2P static:GH100",
	  false, false },
	{ "565.57.01 to 565.77",
	  "395e98,395e98,395e98,d69453,d69453 unsupported,unsupported,unsupported,false,false "
	  "B GH100,GP100 pcie:no BAR1P2P static:single",
	  false, false },
	{ "570.86.15 to 570.211.01",
	  "395e98,395e98,395e98,d69453,d69453 unsupported,unsupported,unsupported,false,false "
	  "B GP100,GH100 pcie:no BAR1P2P static:single",
	  false, true },
	{ "575.51.02 to 575.64.05",
	  "395e98,395e98,395e98,d69453,d69453 unsupported,unsupported,unsupported,false,false "
	  "B GP100,GH100 pcie:yes PCIEP2P static:single",
	  false, true },
	{ "580.65.06 to 595.45.04",
	  "395e98,395e98,395e98,d69453,d69453 unsupported,unsupported,unsupported,false,false "
	  "B GH100,GP100 pcie:yes PCIEP2P static:TU102",
	  true, true },
};

void gp_signature(const struct gp_layout *l, struct pk_buf *out)
{
	int r = 0;

	for (int i = 0; i < GP_NR_HAL; i++)
		r = r ? r : pk_buf_printf(out, "%s%s", i ? "," : "", l->suffix[i]);
	for (int i = 0; i < GP_NR_HAL; i++)
		r = r ? r : pk_buf_printf(out, "%s%s", i ? "," : " ", l->result[i]);
	if (!r)
		pk_buf_printf(out, " %s %s pcie:%s %s static:%s", l->form, l->order, l->pcie,
			      l->type, l->static_bar1);
}

const struct gp_row *gp_row_of(const struct gp_layout *l)
{
	struct pk_buf sig = { 0 };
	const struct gp_row *row = NULL;

	gp_signature(l, &sig);
	for (size_t i = 0; sig.data && i < sizeof(rows) / sizeof(*rows); i++)
		if (!strcmp(rows[i].signature, sig.data))
			row = &rows[i];
	pk_buf_free(&sig);
	return row;
}
