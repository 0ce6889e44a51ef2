// SPDX-License-Identifier: MIT
/*
 * t_gdspatch.c - mode P on trees of all layouts: what is planned, applied, verified, reverted,
 * taken over; the states; what the machine says; JSON; wrong usage.
 */
#include <json-c/json.h>

#include "gdspatch_fixture.h"

static const char *const hal[GP_NR_HAL] = {
	"kbusGetBar1P2PDmaInfo",
	"kbusCreateP2PMappingForBar1P2P",
	"kbusRemoveP2PMappingForBar1P2P",
	"kbusHasPcieBar1P2PMapping",
	"kbusIsPcieBar1P2PMappingSupported",
};

static bool plans(const struct layout *l)
{
	return !strcmp(l->plan, "yes");
}

static bool uvm(const struct layout *l)
{
	return !strcmp(l->fixed, "TU102");
}

/* the edits by plain replacement of the fixtures' text: an oracle that knows no C */
static void edit_by_hand(const struct layout *l, enum gp_set set)
{
	const char *stubs[GP_NR_HAL] = { l->dma, l->create, l->create, l->has, l->supported };
	char old[160], new[160];
	static const char branch[] =
		"    if (FLD_TEST_DRF(_P2PAPI, _ATTRIBUTES, _CONNECTION_TYPE, _PCIE_BAR1, attributes))\n"
		"        return kbus%sP2PMappingForBar1P2P_HAL(pGpu0, pKernelBus0, pGpu1, pKernelBus1, attributes);\n\n";

	assert_int_equal(
		edit(GP_F_BIF, "p2pOverride = BIF_P2P_NOT_OVERRIDEN", "p2pOverride = 0x11", 0), 1);
	snprintf(new, sizeof(new), "forceP2PType = NV_REG_STR_RM_FORCE_P2P_TYPE_%s", l->type);
	assert_int_equal(
		edit(GP_F_BIF, "forceP2PType = NV_REG_STR_RM_FORCE_P2P_TYPE_DEFAULT", new, 0), 1);
	assert_int_equal(edit(GP_F_BIF, "pcieP2PType = NV_REG_STR_RM_PCIEP2P_TYPE_DEFAULT",
			      "pcieP2PType = NV_REG_STR_RM_PCIEP2P_TYPE_BAR1", 0),
			 !strcmp(l->pcie, "yes"));
	for (int i = 0; i < GP_NR_HAL && set >= GP_BAR1P2P; i++) {
		snprintf(old, sizeof(old), "&%s_%s;", hal[i], stubs[i]);
		snprintf(new, sizeof(new), "&%s_GH100;", hal[i]);
		assert_int_equal(edit(GP_F_TABLE, old, new, 0), 1);
	}
	for (int i = 0; i < 2 && set >= GP_GPU_GPU; i++) {
		char text[512];
		const char *after = i ? "NV_STATUS status = NV_ERR_NOT_SUPPORTED;\n\n" : ")\n{\n";

		snprintf(text, sizeof(text), "%s", after);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), branch,
			 i ? "Remove" : "Create");
		assert_true(edit(GP_F_DISPATCH, after, text, 1) > 0);
	}
}

static int lines_that_start(const char *text, const char *with)
{
	int n = 0;

	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n')
		n += !strncmp(p, with, strlen(with));
	return n;
}

static void t_layouts(void **state)
{
	int planned = 0, refused = 0;

	for (int i = 0; i < LAYOUTS; i++) {
		const struct layout *l = &layouts[i];
		int defaults = strcmp(l->pcie, "yes") ? 2 : 3;
		char *before, *after;

		unpack(l);
		before = snapshot(tree_dir);
		if (!plans(l)) {
			REFUSED("E-TOO-OLD", "plan %s", tree_dir);
			assert_true(said(l->release));
			REFUSED("E-TOO-OLD", "inspect %s", tree_dir);
			assert_true(said("state: unknown"));
			refused++;
		} else {
			OK("plan %s", tree_dir);
			assert_int_equal(lines_that_start(out_text, "+  "), defaults + 5);
			assert_int_equal(lines_that_start(out_text, "-  "), defaults + 5);
			assert_non_null(
				strstr(err_text, "does not affect GPUDirect Storage; see mode U"));
			OK("plan --set bif %s", tree_dir);
			assert_int_equal(lines_that_start(out_text, "+  "), defaults);
			if (uvm(l)) {
				OK("plan --set gpu-gpu %s", tree_dir);
				/* two branches of two lines and a blank one */
				assert_int_equal(lines_that_start(out_text, "+"),
						 defaults + 5 + 6 + 3);
			} else {
				REFUSED("E-SET-UNAVAILABLE", "plan --set gpu-gpu %s", tree_dir);
			}
			OK("inspect %s", tree_dir);
			assert_true(said("state: pristine\n") && said(l->release));
			REFUSED("E-NOT-APPLIED", "verify %s", tree_dir);
			planned++;
		}
		after = snapshot(tree_dir);
		assert_string_equal(before, after);
		free(before);
		free(after);
	}
	print_message("%d layouts: %d planned, %d refused\n", LAYOUTS, planned, refused);
	assert_int_equal(planned, 9);
	assert_int_equal(refused, 2);
	(void)state;
}

/* one layout and set: applied as by hand, again, verified, reverted to the byte */
static void there_and_back(const struct layout *l, enum gp_set set)
{
	char *pristine, *wanted, *now, path[200];
	struct stat st, again;
	const char *other = set == GP_BAR1P2P ? "gpu-gpu" : "bar1p2p";

	unpack(l);
	edit_by_hand(l, set);
	snprintf(path, sizeof(path), "%s/%s", tree_dir, gp_path[GP_F_TABLE]);
	assert_int_equal(chmod(path, 0640), 0);
	wanted = snapshot(tree_dir);
	unpack(l);
	assert_int_equal(chmod(path, 0640), 0);
	pristine = snapshot(tree_dir);

	OK("apply --set %s --dry-run %s", gp_set_name[set], tree_dir);
	now = snapshot(tree_dir);
	assert_string_equal(now, pristine);
	free(now);
	OK("apply --set %s %s", gp_set_name[set], tree_dir);
	assert_true(said("does not affect GPUDirect Storage") && said("risks:") &&
		    said("next: build"));
	now = snapshot_but(tree_dir, ".patchkit");
	assert_string_equal(now, wanted);
	free(now);
	OK("verify %s", tree_dir);
	OK("verify --set %s %s", gp_set_name[set], tree_dir);
	REFUSED("E-OTHER-SET", "verify --set %s %s", other, tree_dir);
	OK("inspect %s", tree_dir);
	assert_true(said("state: applied"));

	/* again: nothing is written, not even the same */
	assert_int_equal(stat(path, &st), 0);
	OK("apply --set %s %s", gp_set_name[set], tree_dir);
	assert_true(said("already applied"));
	assert_int_equal(stat(path, &again), 0);
	assert_int_equal(st.st_ino, again.st_ino);
	REFUSED("E-OTHER-SET", "apply --set %s %s", other, tree_dir);
	OK("plan --set %s %s", gp_set_name[set], tree_dir);

	OK("revert %s", tree_dir);
	now = snapshot(tree_dir);
	assert_string_equal(now, pristine);
	free(now);
	REFUSED("E-NOT-APPLIED", "revert %s", tree_dir);
	free(wanted);
	free(pristine);
}

static void t_there_and_back(void **state)
{
	for (int i = 0; i < LAYOUTS; i++) {
		if (plans(&layouts[i]))
			there_and_back(&layouts[i], GP_BAR1P2P);
		if (uvm(&layouts[i]))
			there_and_back(&layouts[i], GP_GPU_GPU);
	}
	(void)state;
}

/* the diff is one that patch takes, and gives what apply gives */
static void t_diff(void **state)
{
	char line[400], *by_patch, *by_us;

	unpack(layout("580"));
	OK("plan --set gpu-gpu %s", tree_dir);
	assert_true(tree_put(base, "diff", out_text));
	snprintf(line, sizeof(line), "cd %s && patch -s -p1 --no-backup-if-mismatch <%s/diff",
		 tree_dir, base);
	assert_int_equal(system(line), 0);
	by_patch = snapshot(tree_dir);
	unpack(layout("580"));
	OK("apply --set gpu-gpu %s", tree_dir);
	by_us = snapshot_but(tree_dir, ".patchkit");
	assert_string_equal(by_patch, by_us);
	free(by_patch);
	free(by_us);
	(void)state;
}

static void t_keys_suffice(void **state)
{
	unpack(layout("575"));
	REFUSED("E-NOTHING-TO-DO", "apply --set bif %s", tree_dir);
	assert_true(said("gdspatch keys --set gpu-gpu"));
	OK("apply --set bif --dry-run %s", tree_dir);
	(void)state;
}

static void forget_manifest(void)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/.patchkit", tree_dir);
	assert_true(tree_remove(path));
}

static void t_adopt(void **state)
{
	static const enum gp_set sets[] = { GP_BAR1P2P, GP_GPU_GPU };

	for (size_t i = 0; i < 2; i++) {
		char *pristine, *now;

		unpack(layout("595"));
		pristine = snapshot(tree_dir);
		OK("apply --set %s %s", gp_set_name[sets[i]], tree_dir);
		forget_manifest();
		REFUSED("E-FOREIGN", "inspect %s", tree_dir);
		assert_true(said("state: foreign"));
		REFUSED("E-FOREIGN", "verify %s", tree_dir);
		REFUSED("E-FOREIGN", "apply --set %s %s", gp_set_name[sets[i]], tree_dir);
		REFUSED("E-FOREIGN", "apply --set %s --adopt %s", gp_set_name[sets[!i]], tree_dir);
		REFUSED("E-NOT-APPLIED", "revert %s", tree_dir);
		OK("apply --set %s --adopt %s", gp_set_name[sets[i]], tree_dir);
		assert_true(said("taken over"));
		OK("verify --set %s %s", gp_set_name[sets[i]], tree_dir);
		OK("revert %s", tree_dir);
		now = snapshot(tree_dir);
		assert_string_equal(now, pristine);
		free(now);
		free(pristine);
	}
	REFUSED("E-NOT-APPLIED", "apply --adopt %s", tree_dir);

	/* the same meaning in another form cannot be taken back to the byte */
	edit_by_hand(layout("595"), GP_GPU_GPU);
	assert_int_equal(edit(GP_F_DISPATCH, "_PCIE_BAR1, attributes))\n        return",
			      "_PCIE_BAR1, attributes)) return", 1),
			 2);
	REFUSED("E-FOREIGN", "apply --set gpu-gpu --adopt %s", tree_dir);
	(void)state;
}

static void t_states(void **state)
{
	char path[200], *now, *before;

	/* some sites of a set */
	unpack(layout("545"));
	assert_int_equal(edit(GP_F_TABLE, "&kbusHasPcieBar1P2PMapping_bf6dfa;",
			      "&kbusHasPcieBar1P2PMapping_GH100;", 0),
			 1);
	before = snapshot(tree_dir);
	REFUSED("E-MIXED-STATE", "inspect %s", tree_dir);
	assert_true(said("state: mixed") && said("1 edited"));
	REFUSED("E-MIXED-STATE", "plan %s", tree_dir);
	REFUSED("E-MIXED-STATE", "apply --adopt %s", tree_dir);
	now = snapshot(tree_dir);
	assert_string_equal(now, before);
	free(now);
	free(before);

	/* a file changed after the edit: named, and nothing is overwritten */
	unpack(layout("570"));
	OK("apply %s", tree_dir);
	assert_int_equal(edit(GP_F_TABLE, "static void fill", "static  void fill", 0), 1);
	before = snapshot(tree_dir);
	REFUSED("E-HASH-CHANGED", "revert %s", tree_dir);
	assert_true(said("g_kern_bus_nvoc.c"));
	REFUSED("E-HASH-CHANGED", "verify %s", tree_dir);
	REFUSED("E-HASH-CHANGED", "apply %s", tree_dir);
	REFUSED("E-HASH-CHANGED", "inspect %s", tree_dir);
	now = snapshot(tree_dir);
	assert_string_equal(now, before);
	free(now);
	free(before);

	/* a damaged manifest */
	snprintf(path, sizeof(path), "%s/.patchkit/manifest", tree_dir);
	assert_int_equal(truncate(path, 20), 0);
	REFUSED("E-JOURNAL", "revert %s", tree_dir);
	(void)state;
}

static void t_not_a_tree(void **state)
{
	static const enum gp_file needed[] = {
		GP_F_VERSION, GP_F_BIF, GP_F_TABLE, GP_F_HEADER, GP_F_REGISTRY,
	};
	static const char *const versions[] = {
		"X = 1\n",
		"NVIDIA_VERSION = \n",
		"NVIDIA_VERSION = abc\n",
		"NVIDIA_VERSION = 580\n",
		"# NVIDIA_VERSION = 580.1\n",
		"NVIDIA_VERSION = 580.1\nNVIDIA_VERSION = 580.2\n",
		"NVIDIA_VERSION = .580\n",
		"NVIDIA_VERSION = 580.\n",
	};
	char path[200];

	REFUSED("E-NOT-A-TREE", "plan %s/nothere", base);
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
		unpack(layout("580"));
		snprintf(path, sizeof(path), "%s/%s", tree_dir, gp_path[needed[i]]);
		assert_int_equal(unlink(path), 0);
		REFUSED("E-NOT-A-TREE", "plan %s", tree_dir);
		assert_true(said(gp_path[needed[i]]));
	}
	assert_true(tree_put(tree_dir, "kernel-open/nvidia/nv-kernel.o_binary", "x"));
	REFUSED("E-NOT-A-TREE", "plan %s", tree_dir);
	assert_true(said("binary"));
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		unpack(layout("580"));
		assert_true(tree_put(tree_dir, "version.mk", versions[i]));
		REFUSED("E-VERSION-UNPARSED", "plan %s", tree_dir);
	}
	/* only gpu-gpu wants these */
	unpack(layout("580"));
	snprintf(path, sizeof(path), "%s/%s", tree_dir, gp_path[GP_F_DISPATCH]);
	assert_int_equal(unlink(path), 0);
	OK("plan %s", tree_dir);
	REFUSED("E-NOT-A-TREE", "plan --set gpu-gpu %s", tree_dir);
	unpack(layout("580"));
	assert_true(tree_put(tree_dir, gp_path[GP_F_BIF], "/* no end\n"));
	REFUSED("E-NOT-UNDERSTOOD", "plan %s", tree_dir);
	(void)state;
}

static void put_gpu(const char *root, const char *address, const char *device)
{
	char path[200];

	snprintf(path, sizeof(path), "sys/devices/pci0000:00/%s/vendor", address);
	assert_true(tree_put(root, path, "0x10de\n"));
	snprintf(path, sizeof(path), "sys/devices/pci0000:00/%s/device", address);
	assert_true(tree_put(root, path, device));
	snprintf(path, sizeof(path), "sys/devices/pci0000:00/%s/class", address);
	assert_true(tree_put(root, path, "0x030000\n"));
	snprintf(path, sizeof(path), "../../../devices/pci0000:00/%s", address);
	{
		char link[200];

		snprintf(link, sizeof(link), "sys/bus/pci/devices/%s", address);
		assert_true(tree_link(root, link, path));
	}
}

static void t_machine(void **state)
{
	char root[100];

	snprintf(root, sizeof(root), "%s/machine", base);
	assert_int_equal(mkdir(root, 0755), 0);
	assert_true(tree_put(
		root, "proc/driver/nvidia/version",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.142  Release Build\n"));
	unpack(layout("580"));
	OK("inspect --root %s %s", root, tree_dir);
	assert_string_equal(err_text, "");
	assert_true(tree_put(
		root, "proc/driver/nvidia/version",
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  575.64.05  Mon Jan  1 00:00:00\n"));
	OK("inspect --root %s %s", root, tree_dir);
	assert_non_null(strstr(err_text, "575.64.05"));
	assert_non_null(strstr(err_text, "closed"));

	/* consumer Blackwell has the functions from 570 on, not before */
	put_gpu(root, "0000:01:00.0", "0x2b85\n");
	put_gpu(root, "0000:02:00.0", "0x2f04\n");
	REFUSED("E-NOTHING-TO-DO", "apply --root %s %s", root, tree_dir);
	assert_true(said("GB20x"));
	OK("plan --root %s %s", root, tree_dir);
	unpack(layout("560"));
	OK("apply --root %s %s", root, tree_dir);
	/* one that has not is enough */
	put_gpu(root, "0000:03:00.0", "0x2684\n");
	unpack(layout("580"));
	OK("apply --root %s %s", root, tree_dir);
	drop(root);
	(void)state;
}

/* ---- for scripts ---- */

static struct json_object *json(void)
{
	struct json_object *o = json_tokener_parse(out_text);

	if (!o)
		fail_msg("no JSON: %s", out_text);
	return o;
}

static const char *get(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;

	if (!json_object_object_get_ex(o, key, &v))
		fail_msg("no %s in %s", key, out_text);
	return json_object_get_string(v);
}

static void t_json(void **state)
{
	struct json_object *o, *list, *e;
	char hash[65], *text;

	unpack(layout("575"));
	OK("inspect --json %s", tree_dir);
	o = json();
	assert_string_equal(get(o, "release"), "575.64.05");
	assert_string_equal(get(o, "state"), "pristine");
	assert_string_equal(get(o, "set"), "none");
	assert_non_null(strstr(get(o, "layout"), "395e98,395e98,395e98,d69453,d69453"));
	assert_true(json_object_object_get_ex(o, "sites", &list));
	assert_int_equal(json_object_array_length(list), GP_NR_SITES);
	e = json_object_array_get_idx(list, GP_S_HAS);
	assert_string_equal(get(e, "found"), "kbusHasPcieBar1P2PMapping_d69453");
	assert_string_equal(get(e, "state"), "pristine");
	json_object_put(o);

	OK("plan --json %s", tree_dir);
	o = json();
	assert_non_null(strstr(get(o, "diff"), "+    pKernelBif->p2pOverride = 0x11;"));
	assert_true(json_object_object_get_ex(o, "files", &list));
	assert_int_equal(json_object_array_length(list), 2);
	text = text_of(GP_F_BIF);
	pk_sha256(text, strlen(text), hash);
	free(text);
	assert_string_equal(get(json_object_array_get_idx(list, 0), "sha256_before"), hash);
	json_object_put(o);

	OK("apply --json %s", tree_dir);
	o = json();
	assert_string_equal(get(o, "changed"), "true");
	json_object_put(o);
	OK("apply --json %s", tree_dir);
	o = json();
	assert_string_equal(get(o, "changed"), "false");
	json_object_put(o);
	OK("verify --json %s", tree_dir);
	o = json();
	assert_string_equal(get(o, "state"), "applied");
	assert_string_equal(get(o, "set"), "bar1p2p");
	json_object_put(o);
	REFUSED("E-OTHER-SET", "apply --json --set gpu-gpu %s", tree_dir);
	o = json();
	assert_true(json_object_object_get_ex(o, "error", &e));
	assert_string_equal(get(e, "id"), "E-OTHER-SET");
	assert_non_null(strstr(get(e, "next"), "gdspatch revert"));
	json_object_put(o);
	OK("revert --json %s", tree_dir);
	o = json();
	assert_string_equal(get(o, "state"), "pristine");
	json_object_put(o);

	assert_int_equal(edit(GP_F_TABLE, "&kbusHasPcieBar1P2PMapping_d69453;", "&kbusX_1;", 0), 1);
	REFUSED("E-HAL-COUNT", "inspect --json %s", tree_dir);
	o = json();
	assert_string_equal(get(o, "state"), "unknown");
	assert_true(json_object_object_get_ex(o, "error", &e));
	assert_string_equal(get(e, "function"), "kbusHasPcieBar1P2PMapping");
	assert_string_equal(get(e, "found"), "kbusX_1");
	assert_true(atoi(get(e, "line")) > 1);
	json_object_put(o);
	(void)state;
}

static void t_explain(void **state)
{
	OK("explain");
	for (enum gp_site s = 0; s < GP_NR_SITES; s++) {
		assert_true(said(gp_site_name[s]));
		OK("explain %s", gp_site_name[s]);
		assert_true(said(gp_path[gp_site_file(s)]) && said("gpu-gpu"));
		OK("explain");
	}
	for (enum gp_set set = GP_BIF; set < GP_NR_SETS; set++) {
		OK("explain %s", gp_set_name[set]);
		assert_true(said("enables:") && said("does not enable:") && said("see mode U"));
	}
	for (enum gp_id id = GP_OK + 1; id < GP_NR_IDS; id++) {
		assert_true(strlen(gp_id_next(id)) > 10);
		OK("explain %s", gp_id_name(id));
	}
	assert_int_equal(run("explain nothing"), GP_EXIT_USAGE);
	(void)state;
}

static void t_usage(void **state)
{
	static const char *const wrong[] = {
		"",
		"frobnicate x",
		"plan",
		"plan a b",
		"plan --set fancy .",
		"plan --frob .",
		"inspect --set bif .",
		"build .",
		"install --kernel a/b .",
		"install --kernel",
		"uninstall --kernel 6.1 x",
		"keys",
		"keys --set",
		"keys --set bif",
		"keys --remove --show",
		"keys x",
		"explain a b",
		"explain --json",
		"revert --adopt .",
	};

	OK("--help");
	assert_true(said("usage: gdspatch") && said("exit status:"));
	OK("--version");
	assert_true(said("OpenGDS"));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (run("%s", wrong[i]) != GP_EXIT_USAGE || !*err_text)
			fail_msg("`%s`: %s", wrong[i], err_text);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_layouts),	cmocka_unit_test(t_there_and_back),
		cmocka_unit_test(t_diff),	cmocka_unit_test(t_keys_suffice),
		cmocka_unit_test(t_adopt),	cmocka_unit_test(t_states),
		cmocka_unit_test(t_not_a_tree), cmocka_unit_test(t_machine),
		cmocka_unit_test(t_json),	cmocka_unit_test(t_explain),
		cmocka_unit_test(t_usage),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
