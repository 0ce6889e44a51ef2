// SPDX-License-Identifier: MIT
/* operations.c - the calls of the API that are counted, and what each form names them. */
#include "out.h"

#define AT(member) offsetof(CUfileStatsLevel1_t, member)

/* In the order of the document. A metric's label is for good: its series go by it. */
const struct operation operations[OPERATIONS] = {
	{ "read", "read", AT(read_ops) },
	{ "write", "write", AT(write_ops) },
	{ "handle_register", "handle_register", AT(hdl_register_ops) },
	{ "handle_deregister", "handle_deregister", AT(hdl_deregister_ops) },
	{ "buffer_register", "buffer_register", AT(buf_register_ops) },
	{ "buffer_deregister", "buffer_deregister", AT(buf_deregister_ops) },
	{ "batch_setup", NULL, AT(batch_setup_ops) },
	{ "batch_submit", "batch_submit", AT(batch_submit_ops) },
	{ "batch_complete", NULL, AT(batch_complete_ops) },
	{ "batch_cancel", "batch_cancel", AT(batch_cancel_ops) },
	{ "batch_destroy", NULL, AT(batch_destroy_ops) },
	{ "batch_entry_enqueued", NULL, AT(batch_enqueued_ops) },
	{ "batch_entry_processed", "batch_entry", AT(batch_processed_ops) },
};

const CUfileOpCounter_t *operation_count(const struct operation *o, const CUfileStatsLevel1_t *l)
{
	return (const CUfileOpCounter_t *)((const char *)l + o->at);
}
