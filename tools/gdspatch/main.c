// SPDX-License-Identifier: MIT
/*
 * gdspatch - peer access between GPUs of the open kernel modules: sites in the source, the
 * modules built from it, and the registry keys that need no source at all.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "gdspatch.h"

#ifndef GDSPATCH_VERSION
#define GDSPATCH_VERSION "unknown"
#endif

static const char usage[] =
	"usage: gdspatch inspect [--json] TREE             state, sites and layout of a source tree\n"
	"       gdspatch plan    [--set S] [--json] TREE   the edits as a diff; nothing is changed\n"
	"       gdspatch apply   [--set S] [--adopt] [--dry-run] [--json] TREE\n"
	"       gdspatch verify  [--set S] [--json] TREE   are they there, and nothing else?\n"
	"       gdspatch revert  [--json] TREE             take them back, byte for byte\n"
	"       gdspatch explain [SITE | SET | E-ID]       what it is, what it enables and not\n"
	"       gdspatch build     --kernel V TREE         build the modules for kernel V\n"
	"       gdspatch install   --kernel V TREE         put them in place, the old ones are kept\n"
	"       gdspatch uninstall --kernel V              the old ones again, byte for byte\n"
	"       gdspatch keys {--set S | --remove | --show} [--driver V]\n"
	"                                                  registry keys in one file of modprobe.d\n"
	"       gdspatch hook install | remove             look at all this after each new kernel\n"
	"       gdspatch hook run [--kernel V]             what that hook says of a kernel\n"
	"       gdspatch result --out FILE [TREE]          all of it, without names, to be shared\n"
	"sets of edits: bif, bar1p2p (default), gpu-gpu; sets of keys: gpu-gpu, pages, storage\n"
	"TREE: top folder of the open GPU kernel modules' source\n"
	"  --adopt       take over edits of this set that have no manifest\n"
	"  --dry-run     as plan: show what would be done\n"
	"  --json        for scripts\n"
	"  --root DIR    the machine whose root is DIR, not this one\n"
	"  --out FILE    where a result goes\n"
	"  --driver V    release of the driver, where it cannot be found\n"
	"  --version, --help\n"
	"exit status: 0 done, or nothing to do; 1 the system or a program failed; 2 wrong usage;\n"
	"3 refused, with an id (E-...), the place, what was expected and found, and the next step\n";

enum {
	O_SET = 1000,
	O_ADOPT,
	O_DRY,
	O_JSON,
	O_ROOT,
	O_KERNEL,
	O_DRIVER,
	O_OUT,
	O_REMOVE,
	O_SHOW,
	O_VERSION
};

static const struct option options[] = {
	{ "set", required_argument, NULL, O_SET },
	{ "adopt", no_argument, NULL, O_ADOPT },
	{ "dry-run", no_argument, NULL, O_DRY },
	{ "json", no_argument, NULL, O_JSON },
	{ "root", required_argument, NULL, O_ROOT },
	{ "kernel", required_argument, NULL, O_KERNEL },
	{ "driver", required_argument, NULL, O_DRIVER },
	{ "out", required_argument, NULL, O_OUT },
	{ "remove", no_argument, NULL, O_REMOVE },
	{ "show", no_argument, NULL, O_SHOW },
	{ "version", no_argument, NULL, O_VERSION },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* which options a command takes, how many operands */
static const struct {
	const char *name;
	int least, most;
	unsigned int takes;
	int (*with)(const struct gp_options *o, const char *operand);
	int (*without)(const struct gp_options *o);
	bool any_kernel; /* --kernel may be left out */
} commands[] = {
#define BIT(o) (1u << ((o)-O_SET))
	{ "inspect", 1, 1, BIT(O_JSON) | BIT(O_ROOT), gp_cmd_inspect, NULL },
	{ "plan", 1, 1, BIT(O_SET) | BIT(O_ADOPT) | BIT(O_DRY) | BIT(O_JSON) | BIT(O_ROOT),
	  gp_cmd_plan, NULL },
	{ "apply", 1, 1, BIT(O_SET) | BIT(O_ADOPT) | BIT(O_DRY) | BIT(O_JSON) | BIT(O_ROOT),
	  gp_cmd_apply, NULL },
	{ "verify", 1, 1, BIT(O_SET) | BIT(O_JSON) | BIT(O_ROOT), gp_cmd_verify, NULL },
	{ "revert", 1, 1, BIT(O_JSON) | BIT(O_ROOT), gp_cmd_revert, NULL },
	{ "explain", 0, 1, 0, gp_cmd_explain, NULL },
	{ "build", 1, 1, BIT(O_KERNEL) | BIT(O_DRY) | BIT(O_ROOT), gp_cmd_build, NULL },
	{ "install", 1, 1, BIT(O_KERNEL) | BIT(O_DRY) | BIT(O_JSON) | BIT(O_ROOT), gp_cmd_install,
	  NULL },
	{ "uninstall", 0, 0, BIT(O_KERNEL) | BIT(O_DRY) | BIT(O_JSON) | BIT(O_ROOT), NULL,
	  gp_cmd_uninstall },
	{ "keys", 0, 0,
	  BIT(O_SET) | BIT(O_REMOVE) | BIT(O_SHOW) | BIT(O_DRY) | BIT(O_JSON) | BIT(O_ROOT) |
		  BIT(O_DRIVER),
	  NULL, gp_cmd_keys },
	{ "hook", 1, 1, BIT(O_KERNEL) | BIT(O_DRY) | BIT(O_JSON) | BIT(O_ROOT), gp_cmd_hook, NULL,
	  true },
	{ "result", 0, 1, BIT(O_OUT) | BIT(O_ROOT), gp_cmd_result, gp_cmd_result_here },
};

static int wrong(const char *what)
{
	gp_note("%s (gdspatch --help shows all commands)", what);
	return GP_EXIT_USAGE;
}

static void store(struct gp_options *o, int c)
{
	switch (c) {
	case O_SET:
		o->set = optarg;
		break;
	case O_ROOT:
		/* "/" is this machine */
		o->root = strcmp(optarg, "/") ? optarg : "";
		break;
	case O_KERNEL:
		o->kernel = optarg;
		break;
	case O_DRIVER:
		o->driver = optarg;
		break;
	case O_OUT:
		o->out = optarg;
		break;
	}
	o->adopt |= c == O_ADOPT;
	o->dry_run |= c == O_DRY;
	o->json |= c == O_JSON;
	o->remove |= c == O_REMOVE;
	o->show |= c == O_SHOW;
}

static int command(struct gp_options *o, const char *name, int operands, const char *operand,
		   unsigned int given)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(name, commands[i].name))
			break;
	if (i == sizeof(commands) / sizeof(*commands))
		return wrong("no such command");
	if (given & ~commands[i].takes)
		return wrong("an option that this command does not take");
	if (operands < commands[i].least || operands > commands[i].most)
		return wrong(commands[i].most ? "this command takes one operand"
					      : "this command takes no operand");
	if (commands[i].takes & BIT(O_KERNEL) && !commands[i].any_kernel &&
	    (!o->kernel || !*o->kernel || strchr(o->kernel, '/')))
		return wrong("--kernel V is missing: `uname -r` of the kernel that is meant");
	return commands[i].with && (operand || !commands[i].without) ?
		       commands[i].with(o, operand) :
		       commands[i].without(o);
}

int main(int argc, char **argv)
{
	struct gp_options o = { .root = "" };
	unsigned int given = 0;
	int c, r;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return GP_EXIT_OK;
		}
		if (c == O_VERSION) {
			puts("gdspatch " GDSPATCH_VERSION " (OpenGDS)");
			return GP_EXIT_OK;
		}
		if (c == '?')
			return wrong("wrong usage");
		given |= BIT(c);
		store(&o, c);
	}
	if (optind == argc) {
		fputs(usage, stderr);
		return GP_EXIT_USAGE;
	}
	r = command(&o, argv[optind], argc - optind - 1, argv[optind + 1], given);
	if (fflush(stdout) || ferror(stdout)) {
		gp_note("standard output: it could not be written");
		return GP_EXIT_SYSTEM;
	}
	return r;
}
