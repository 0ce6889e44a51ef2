# SPDX-License-Identifier: MIT
# OpenGDS: a thin front of Meson (user space), Kbuild (modules) and the scripts of vm/ and tests/.
#
# `make demo` and `make check` do everything by themselves on a fresh Debian 12, as root.

# what the guest runs: 6.12, 7, 6.1, debug or debug7
KERNEL ?= 6.12
TOPOLOGY ?= switch
IOMMU ?= none
# the one mutant that `make check` tries; `make check-mutants` tries all
MUTANT ?= lib-no-sync

meson_opts := $(if $(OPENGDS_WERROR),--werror)

.PHONY: help
help:
	@echo 'make demo          a drive writes into (simulated) GPU memory, in a virtual machine'
	@echo 'make check         all tests of kernels 6.12 and 7, the demo, one mutant'
	@echo
	@echo 'make setup         install the Debian packages that are missing (done by all targets)'
	@echo 'make all           user space into build/host'
	@echo 'make modules       kernel modules into build/KERNEL           [KERNEL=6.12]'
	@echo 'make check-unit    unit tests: plain, ASan+UBSan, TSan'
	@echo 'make check-guest   guest tests of one kernel                  [KERNEL=6.12]'
	@echo 'make check-kernels guest tests on 6.1, 6.12 and 7'
	@echo 'make check-debug   guest tests on the debug kernel (builds it once: about 20 minutes)'
	@echo 'make check-long    the long form of the guest tests, the guest tests on debug7 (built'
	@echo '                   once: about 30 minutes), the fuzzer         [KERNEL=6.12]'
	@echo 'make check-matrix  every file system and block stack by every route; docs/matrix.md'
	@echo 'make check-memcheck    unit tests under valgrind'
	@echo 'make check-mutants each mutant must turn its test red'
	@echo 'make check-style   style checks'
	@echo 'make check-static  checkpatch, sparse and W=1 for the modules, on 6.1, 6.12 and 7'
	@echo 'make fuzz          a million random ioctls on the debug kernel; goes on where it stopped'
	@echo 'make fuzz-config   libFuzzer on the reader of cufile.json     [FUZZ_SECONDS=600]'
	@echo 'make stress-api    ten million random cuFile calls on 8 threads, ASan and TSan in turns'
	@echo 'make bench         direct against O_DIRECT into host memory   [KERNEL=6.12]'
	@echo 'make bench-threads the same with 1 to 32 threads, with a mapping each and with one for all'
	@echo 'make bench-host    what the hook costs requests of host memory'
	@echo 'bench/indirect     libcufile files side by side, on a GPU: docs/performance.md'
	@echo 'make nvme-patch    the hook for an nvme driver, for git am     KDIR=kernel-source'
	@echo 'make clean         remove build/ (the cache stays: /var/cache/opengds)'
	@echo
	@echo 'make demo takes    KERNEL=6.12|7|6.1|debug|debug7 TOPOLOGY=switch|ports IOMMU=none|pt|on'
	@echo 'OPENGDS_CACHE=DIR  moves the cache of kernels, sources and packages'

.PHONY: setup
setup:
	@tools/setup

.PHONY: all
all: setup build/host/build.ninja
	@ninja -C build/host

build/host/build.ninja: | setup
	@mkdir -p build
	@meson setup $(meson_opts) build/host

.PHONY: modules
modules: setup
	@vm/kernels/build $(KERNEL)

.PHONY: demo
demo: setup
	@tests/demo --kernel $(KERNEL) --topology $(TOPOLOGY) --iommu $(IOMMU)

.PHONY: check check-unit check-guest check-kernels check-debug check-long check-memcheck check-mutants \
	check-matrix check-style check-static
check: setup
	@tests/run --style --unit --guest --kernel 6.12 --kernel 7 --core --demo --mutant $(MUTANT)

check-unit: setup
	@tests/run --unit

check-guest: setup
	@tests/run --guest --kernel $(KERNEL)

check-kernels: setup
	@tests/run --guest --kernel 6.1 --kernel 6.12 --kernel 7

check-debug: setup
	@vm/kernels/debug >/dev/null
	@tests/run --guest --kernel debug

check-long: setup
	@tests/run --guest --long --kernel $(KERNEL)
	@vm/kernels/debug debug7 >/dev/null
	@tests/run --guest --kernel debug7
	@tests/fuzz/run --kernel $(KERNEL) --total $(if $(filter debug%,$(KERNEL)),1000000,20000000)

check-memcheck: setup
	@tests/run --memcheck

check-matrix: setup
	@tests/matrix/run
	@tests/matrix/powercut
	@tests/run ublk

check-mutants: setup
	@tests/run-mutants

check-style: setup
	@tools/check

check-static: setup
	@tools/check-static

.PHONY: fuzz fuzz-config stress-api bench bench-threads bench-host nvme-patch
fuzz: setup
	@tests/fuzz/run

fuzz-config:
	@tools/setup --with fuzz
	@tests/fuzz/config

stress-api: setup
	@tests/stress/run

bench: setup
	@bench/run --kernel $(KERNEL)

bench-threads: setup
	@bench/run threads --kernel $(KERNEL)

bench-host: setup
	@bench/run host --kernel $(KERNEL)

nvme-patch: setup
	@test -n "$(KDIR)" || { echo 'usage: make nvme-patch KDIR=kernel-source' >&2; exit 2; }
	@mkdir -p build/patches && kernel/nvme-hook/make-patch "$(KDIR)" build/patches

.PHONY: clean
clean:
	rm -rf build
