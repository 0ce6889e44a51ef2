#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Guards tools/check: a small made-up tree passes all checks, and for each check there is a file
# that breaks just its rule: put into the tree, that check names the file, and no other says
# anything. Fails when a check has no such file here, lets one pass, or when another one speaks.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
top=$PWD
for p in shellcheck codespell gcc; do
	command -v $p >/dev/null || { echo "$p is not installed: run 'make setup' as root"; exit 77; }
done
tmp=$(mktemp -d "${TMPDIR:-/tmp}/t_check.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
bad=0 tried=' '
fail() { echo "t_check: $*"; bad=1; }

# -- a tree that nothing is wrong with --
good=$tmp/good
mkdir -p "$good"/{tools/gdscp,vm,include,lib,docs,man,tests/unit,tests/mutants,tests/guest,kernel}
cp "$top/tools/check" "$top/tools/spelling" "$good/tools/"
cp "$top/vm/lib.sh" "$good/vm/"
cp "$top/.shellcheckrc" "$good/"
cd "$good" || exit
spdx='SPDX-License-Identifier: MIT'
printf '/* %s */\n#ifndef A_H\n#define A_H\nint cuFileOpen(void);\n#endif\n' "$spdx" >include/cufile.h
printf '/* %s */\n#ifndef B_H\n#define B_H\nint ogds_ask(void);\n#endif\n' "$spdx" >include/opengds.h
printf '# %s\nlibcufile.so.0 {\n\tcuFileOpen;\n\togds_ask;\n};\n' "$spdx" >lib/libcufile.map
printf "# %s\nexecutable('gdscp', 'main.c',\n  install: true)\n" "$spdx" >tools/gdscp/meson.build
printf '.\\" %s\n.Dt GDSCP 1\n' "$spdx" >man/gdscp.1
printf '.so man3/cuFileOpen.3\n' >man/cuFileClose.3
printf "# %s\n't_one': {},\n" "$spdx" >tests/unit/meson.build
printf '// %s\nint main(void)\n{\n\treturn 0;\n}\n' "$spdx" >tests/unit/t_one.c
printf '#!/usr/bin/env bash\n# %s\n# gdscp\n' "$spdx" >tests/unit/t_man.sh
hunk='--- a/tests/unit/t_one.c
+++ b/tests/unit/t_one.c
@@ -3,3 +3,3 @@
 {
-	return 0;
+	return 1;
 }'
printf '# breaks: a rule\n# red: t_one\n%s\n' "$hunk" >tests/mutants/one.patch
printf '#!/usr/bin/env bash\n# %s\n# Guards the good.\ntrue\n' "$spdx" >tests/guest/one.sh
printf '# One\n\n## Two words\n\n[here](#two-words), [there](two.md#three)\n' >docs/one.md
printf '# Two\n\n## Three\n\nsee docs/one.md\n' >docs/two.md
printf '# Locks\n' >docs/locks.md
quick=$(tools/check --list | grep -vxE 'shell|spelling|headers')	# these take longer than all others
out=$(tools/check 2>&1) || { fail "the good tree does not pass:"; echo "$out"; exit 1; }

# breaks CHECK FILE [NAMED]: standard input is FILE, which replaces or joins the good tree's; what
# is said names it, or NAMED
breaks() {
	local check=$1 file=$2 tree=$tmp/tree
	tried+="$check "
	rm -rf "$tree"
	cp -a "$good" "$tree"
	mkdir -p "$(dirname "$tree/$file")"
	cat >"$tree/$file"
	# shellcheck disable=SC2046 # names
	if "$tree/tools/check" "$check" $(grep -vx "$check" <<<"$quick") >"$tmp/out" 2>&1; then
		fail "$check lets this pass:"
		sed 's/^/  /' "$tree/$file"
		return
	fi
	sed -i '/breaches of the style/d' "$tmp/out"
	grep -qE "^${3:-$file}:[0-9]+:.*\[$check\]$" "$tmp/out" || fail "$check does not name $file: $(cat "$tmp/out")"
	! grep -v "\[$check\]$" "$tmp/out" || fail "another check speaks about the breach of $check"
}

c="// $spdx"
breaks spdx lib/a.c <<<'int a;'
breaks spdx kernel/a.c <<<"$c"				# the kernel's is GPL-2.0-only
breaks spdx man/a.1 <<<'.Dt A 1'
breaks size lib/a.c < <(echo "$c"; printf 'int a%0100d;\n' 1)
breaks size lib/a.c < <(echo "$c"; for i in {1..900}; do echo "int a$i;"; done)
breaks blanks lib/a.c < <(echo "$c"; echo 'int a; ')
breaks blanks lib/a.c < <(echo "$c"; printf 'int a;\r\n')
breaks blanks lib/a.c < <(echo "$c"; printf 'int a;')
breaks forbidden lib/a.c < <(echo "$c"; echo 'void f(char *a) { strcat(a, "b"); }')
breaks forbidden lib/a.c < <(echo "$c"; echo 'int f(char *a) { return atoi(a); }')
breaks forbidden kernel/a.c < <(echo '// SPDX-License-Identifier: GPL-2.0-only'; echo 'void f(void) { BUG(); }')
breaks forbidden lib/a.c < <(echo "$c"; echo '#if LINUX_VERSION_CODE > 3')
breaks guards kernel/a.h < <(echo '/* SPDX-License-Identifier: GPL-2.0-only */'; echo 'extern int a;')
h="/* $spdx */
#ifndef LIB_A_H
#define LIB_A_H"
breaks headers lib/a.h < <(echo "$h"; echo 'uint64_t a(void);'; echo '#endif')
breaks headers lib/a.h < <(echo "$h"; echo '#endif'; echo 'struct s { int i; };')
breaks symbols include/cufile.h lib/libcufile.map < <(sed 's/^int.*/&\nint cuFileMore(void);/' include/cufile.h)
breaks symbols lib/libcufile.map < <(sed 's/.*ogds_ask.*/&\n\togds_more;/' lib/libcufile.map)
breaks paths lib/a.c < <(echo "$c"; echo "/* see /ho""me/me */")
breaks tests tests/unit/t_two.c <<<"$c"
breaks tests tests/mutants/two.patch < <(echo '# breaks: a rule'; echo "$hunk")
breaks mutants tests/mutants/two.patch < <(printf '# breaks: a rule\n# red: t_one\n%s\n' "${hunk//return 0/return 2}")
breaks tests tests/guest/two.sh < <(echo '#!/bin/bash'; echo "# $spdx")
breaks man tools/two/meson.build tools < <(echo "# $spdx"; echo "executable('two', files('a.c'), install: true)")
breaks man tests/unit/t_man.sh man/gdscp.1 < <(echo '#!/bin/bash'; echo "# $spdx")
breaks links docs/three.md <<<'see [this](four.md)'
breaks links docs/three.md <<<'see [this](one.md#three)'
breaks links docs/three.md <<<'see `lib/gone.c`'
breaks links lib/a.c < <(echo "$c"; echo '/* docs/four''.md tells more */')
breaks proofs SECURITY.md <<'MD'
## What a malicious user can try

| attempt | what happens | test |
|---|---|---|
| a | b | `two` |
MD
breaks locks docs/locks.md <<<'| `lock` | `lib/libcufile.map` | a | |'
breaks locks lib/a.c docs/locks.md < <(echo "$c"; echo 'static pthread_mutex_t lock;')
breaks spelling docs/three.md <<<'It is refe''red to.'
breaks shell lib/a.sh < <(echo '#!/bin/bash'; echo "# $spdx"; echo 'a=1; [ $b = 2 ]; echo $*[0]; cd $1; unset a b[')

for n in $("$top/tools/check" --list); do
	[[ $tried == *" $n "* ]] || fail "no breach of '$n' is tried: add a line"
done
"$good/tools/check" nothing >"$tmp/out" 2>&1 && fail "it takes a check that there is not"
[ $bad = 0 ] && echo "t_check: $(grep -c '^breaks [a-z]' "$top/tests/unit/t_check.sh") breaches, each told by its check alone"
exit $bad
