# SPDX-License-Identifier: Apache-2.0
# Kernel Gate: one Makefile for the whole tree. `make help` lists what it can do.
#
# Settings, on the command line or in the environment:
#   CUDA=0|1      leave the CUDA parts out, or insist on them (default: on where nvcc is found)
#   NVCC=FILE     the CUDA compiler
#   CUDA_ARCHS=.. what CUDA code is compiled for, such as '80 90a ptx90' (default: the GPU that is
#                 here, or 80, 89 and 90a without one; `make dist`: these and PTX for later GPUs)
#   WEB=0|1       leave out the dashboard, or insist on it (default: on where npm is found)
#   SANITIZE=...  address,undefined or thread: builds in a folder of its own, host code only
#   PREFIX, DESTDIR, CC, CFLAGS, LDFLAGS, NVCCFLAGS, V=1 (show commands) as usual
#
# Everything that is made lies under build/, in the shape of the installed tree: bin/gate,
# lib/kernel-gate/*.so, share/kernel-gate/. The programs find their libraries from where they lie.

MAKEFLAGS += --no-builtin-rules --no-print-directory
# One job a processor, unless the command line says otherwise.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:

# ---- settings ---------------------------------------------------------------------------------

ifeq ($(origin CC),default)
CC := gcc
endif
CFLAGS ?= $(if $(SANITIZE),-O1,-O2) -g
NVCCFLAGS ?= -O3
PKG_CONFIG ?= pkg-config
PREFIX ?= /usr/local
ARCH := $(shell uname -m)

SANITIZE ?=
ifeq ($(SANITIZE),)
B := build
else ifeq ($(SANITIZE),address,undefined)
B := build/asan
else ifeq ($(SANITIZE),thread)
B := build/tsan
else ifeq ($(SANITIZE),fuzzer-no-link,address,undefined)
B := build/fuzz
else
$(error SANITIZE is '$(SANITIZE)', expected 'address,undefined' or 'thread')
endif

ifndef NVCC
NVCC := $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
endif
NVCC_MAJOR := $(if $(NVCC),$(shell $(NVCC) --version 2>/dev/null | \
    sed -n 's/.*release \([0-9]*\).*/\1/p'))
# sm_90a came with CUDA 12.
NO_CUDA_REASON := $(if $(filter 0,$(CUDA)),CUDA=0,$(if $(NVCC_MAJOR),$(if \
    $(filter 1 2 3 4 5 6 7 8 9 10 11,$(NVCC_MAJOR)),$(NVCC) is of CUDA $(NVCC_MAJOR) \
    and 12 or later is needed),no nvcc on PATH or in /usr/local/cuda))
# switch NAME,REASON: an error if NAME is neither 0 nor 1, or 1 where it cannot be.
switch = $(if $(filter-out 0 1,$($(1))),$(error $(1) is '$($(1))', expected 0 or 1))$(if \
    $(and $(filter 1,$($(1))),$(2)),$(error $(1)=1, but $(2)))
CUDA ?= $(if $(NO_CUDA_REASON),0,1)
$(call switch,CUDA,$(NO_CUDA_REASON))

# The architectures that kernels are written for: Ampere, Ada and Hopper. A single one compiles in a
# third of the time, so a machine with a GPU builds for that one.
EVERY_ARCH := 80 89 90a
GPU_ARCHS := $(patsubst 90,90a,$(subst .,,$(shell nvidia-smi --query-gpu=compute_cap \
    --format=csv,noheader 2>/dev/null | sort -u)))
ifneq ($(filter dist,$(MAKECMDGOALS)),)
CUDA_ARCHS ?= $(EVERY_ARCH) ptx90
else ifeq ($(filter-out 80 86 87 89 90a,$(GPU_ARCHS)),)
CUDA_ARCHS ?= $(or $(GPU_ARCHS),$(EVERY_ARCH))
else
CUDA_ARCHS ?= $(EVERY_ARCH) ptx90
endif

NO_WEB_REASON := $(if $(filter 0,$(WEB)),WEB=0,$(if $(shell command -v npm),,no npm on PATH))
WEB ?= $(if $(NO_WEB_REASON),0,1)
$(call switch,WEB,$(NO_WEB_REASON))

# `git describe` where a release is tagged, else the release that this tree leads to.
RELEASE := 0.2.0
TAGGED := $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null)
COMMIT := $(shell git describe --always --exclude '*' --dirty 2>/dev/null)
VERSION := $(or $(TAGGED:v%=%),$(RELEASE)$(COMMIT:%=+g%))

V ?= 0
Q := $(if $(filter 1,$(V)),,@)
say = @$(if $(filter 1,$(V)),:,printf '  %-5s %s\n' $(1) '$(patsubst $(B)/%,%,$(or $(2),$@))')

CUDA_DEFINE := $(if $(filter 1,$(CUDA)),-DGATE_CUDA)

# ---- flags ------------------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla \
    -Wwrite-strings -Wformat=2 -Wpointer-arith -Wundef
# Assertions stay on in every build; paths are cut so that equal sources give equal binaries.
PLAIN_C_FLAGS = -std=c11 -D_GNU_SOURCE $(CUDA_DEFINE) -I. $(WARNINGS) -fno-common \
    -fstack-protector-strong -ffile-prefix-map=$(CURDIR)=. -pthread $(CFLAGS)
ifneq ($(SANITIZE),)
# Their checks hide from gcc what initializes a variable.
SANITIZE_FLAGS := -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer \
    $(if $(findstring clang,$(CC)),,-Wno-maybe-uninitialized)
endif
C_FLAGS = $(PLAIN_C_FLAGS) -I$(B)/gen $(SANITIZE_FLAGS)
LD_FLAGS = -pthread -Wl,--as-needed -Wl,-z,relro,-z,now $(LDFLAGS) $(SANITIZE_FLAGS)

# A kernel library shows its one function and nothing of what it is linked with.
LIBRARY_C_FLAGS := -fPIC -fvisibility=hidden -O3
LIBRARY_LD_FLAGS = -shared -Wl,-z,defs -Wl,--version-script=ci/kernel-library.map -static-libgcc

# Asked when a program is linked, not when this file is read: `make run` may install them first.
libs = $(shell $(PKG_CONFIG) --libs $(1))
GATE_LIBS = $(call libs,sqlite3 libcjson libmd zlib libzstd) -ldl -lm
SERVER_LIBS = $(call libs,sqlite3 libcjson libmd libmicrohttpd zlib libzstd) -ldl -lm
TEST_LIBS = $(call libs,cmocka sqlite3 libcjson libmd libmicrohttpd zlib libzstd) -ldl -lm

# ---- sources ----------------------------------------------------------------------------------

# The ops as data, with their references on the host.
OPS_C := $(wildcard kernels/ops/*.c)
EMBED_C := gate/base/embed_tool.c
GATE_C := $(filter-out $(EMBED_C),$(wildcard gate/*.c gate/*/*.c)) \
    $(OPS_C)
SERVER_C := $(wildcard server/*.c server/*/*.c)
MAIN_C := gate/main.c gate/search/main.c server/main.c
CORE_C := $(filter-out $(MAIN_C),$(GATE_C) $(SERVER_C))
GATE_CU := $(wildcard gate/device/*.cu) kernels/reference/reference_cuda.cu
HOST_C := $(wildcard kernels/host/*.c)
OURS := kernels/ours.c $(wildcard kernels/attention_fwd/*.cu kernels/gemm/*.cu \
    kernels/linear_relu/*.cu kernels/gemv/*.cu kernels/cuda/*.cu)
# Each provider_X.c makes a library of its own with the rest of the folder.
CUBLAS_PROVIDERS := $(wildcard kernels/cublas/provider_*.c)
CUBLAS := $(filter-out $(CUBLAS_PROVIDERS),$(wildcard kernels/cublas/*.c kernels/cublas/*.cu))
CUDNN := $(wildcard kernels/cudnn/*.c)
SUITES := $(wildcard kernels/suites/*.json)
SCHEMAS := $(sort $(wildcard gate/formats/*.schema.json))
INIT_FILES := kernels/kernel.h $(addprefix examples/mykernels/,mykernels.c mykernels.cu Makefile \
    CMakeLists.txt kernels.json .gitignore) $(addprefix ci/templates/,github-actions.yml \
    github-comment.yml gitlab-ci.yml slurm.sh)
ifeq ($(WEB),1)
PAGE := $(wildcard $(addprefix web/,*.html *.css *.svg frame/*.js chart/*.js views/*.js)) \
    build/web/uplot.js build/web/uplot.css
else
PAGE := web/style.css # badges have its colours
endif
UNIT_C := $(wildcard tests/unit/test_*.c)
# A source with a header of its own is shared by the tests; the others of tests/tools are programs.
TEST_SHARED_C := $(wildcard $(patsubst %.h,%.c,$(wildcard tests/unit/*.h tests/tools/*.h)))
TOOL_C := $(filter-out $(TEST_SHARED_C),$(wildcard tests/tools/*.c))
BROWSER_MODULES := tests/browser/node_modules/.package-lock.json
TEMPLATE_MODULES := tests/templates/node_modules/.package-lock.json
GPU_C := $(wildcard tests/gpu/test_*.c)
GPU_SHARED_CU := $(wildcard tests/gpu/*.cu) kernels/cuda/tensor_map.cu
MUTANT_C := $(wildcard tests/mutants/*.c)
MUTANT_CU := $(wildcard tests/mutants/*.cu)

object = $(patsubst %,$(B)/obj/%.o,$(1))
# CUDA objects and libraries are the same in every build folder: sanitizers watch host code.
empty :=
comma := ,
CUDA_B := build/cuda/$(subst $(empty) $(empty),-,$(strip $(CUDA_ARCHS)))
cuda_object = $(patsubst %,$(CUDA_B)/%.o,$(1))

LIB := lib/kernel-gate
SHARE := share/kernel-gate
INCLUDE := include/kernel-gate

CORE_O := $(call object,$(CORE_C)) \
    $(addprefix $(B)/gen/,init.c.o api.c.o queries.c.o store.c.o web.c.o)
ifeq ($(CUDA),1)
CORE_O += $(call cuda_object,$(GATE_CU))
CUDA_IN_USE := build/cuda/archs
# Where the toolkit lies only nvcc itself knows: the nvcc of the PATH may be a script that calls it.
CUDA_HOME := $(realpath $(shell $(NVCC) --dryrun -x cu -c /dev/null 2>&1 | sed -n 's/.* TOP=//p'))
# It says nothing before there is a g++, which the packages bring.
CUDA_HOME := $(or $(CUDA_HOME),$(realpath $(patsubst %/bin/nvcc,%,$(filter /%,$(NVCC)))))
ifeq ($(CUDA_HOME),)
$(error '$(NVCC) --dryrun' does not say where its toolkit lies (no TOP=); give NVCC=FILE or CUDA=0)
endif
CUBLAS_H := $(firstword $(wildcard $(CUDA_HOME)/include/cublasLt.h /usr/include/cublasLt.h))
CUDA_LIBRARIES := $(B)/$(LIB)/libours.so $(B)/$(LIB)/libcudnn_provider.so \
    $(if $(CUBLAS_H),$(CUBLAS_PROVIDERS:kernels/cublas/provider_%.c=$(B)/$(LIB)/lib%_provider.so))
CUDA_MUTANTS := $(patsubst tests/mutants/%.cu,$(B)/tests/mutants/%.so,$(MUTANT_CU))
GPU_TESTS := $(patsubst %.c,$(B)/%,$(GPU_C))
CUDART := $(firstword $(wildcard $(CUDA_HOME)/lib64/libcudart_static.a \
    $(CUDA_HOME)/targets/$(ARCH)-linux/lib/libcudart_static.a \
    /usr/lib/$(ARCH)-linux-gnu/libcudart_static.a))
CUDA_LIBS := $(or $(CUDART),-lcudart_static) -lrt -ldl
endif
LIBRARIES := $(B)/$(LIB)/libhost.so $(CUDA_LIBRARIES)
PROGRAMS := $(B)/bin/gate $(B)/bin/gate-search $(B)/bin/gate-server
# What is installed besides them, in the same places.
UNIT := lib/systemd/system/gate-server.service
DATA := $(SUITES:kernels/suites/%=$(B)/$(SHARE)/suites/%) \
    $(SCHEMAS:gate/formats/%=$(B)/$(SHARE)/schemas/%) $(addprefix $(B)/,$(UNIT) \
    lib/systemd/system/gate-server.socket $(INCLUDE)/kernel.h share/doc/kernel-gate/kernels.md \
    share/doc/kernel-gate/CHANGELOG.md \
    lib/pkgconfig/kernel-gate.pc lib/cmake/kernel-gate/kernel-gate-config.cmake \
    lib/cmake/kernel-gate/kernel-gate-config-version.cmake share/man/man1/gate.1 \
    share/man/man1/gate-search.1 share/man/man1/gate-server.1 \
    share/bash-completion/completions/gate \
    share/bash-completion/completions/gate-server)
INSTALLED := $(patsubst $(B)/%,%,$(PROGRAMS) $(LIBRARIES) $(DATA))
# With TESTS, of the unit tests those alone.
TESTS_AND_TOOLS := $(patsubst %.c,$(B)/%,$(if $(TESTS),$(filter $(wildcard $(TESTS)),$(UNIT_C)),\
    $(UNIT_C)) $(TOOL_C))
MUTANTS := $(patsubst tests/mutants/%.c,$(B)/tests/mutants/%.so,$(MUTANT_C)) $(CUDA_MUTANTS)

# ---- what to make -----------------------------------------------------------------------------

.PHONY: all run serve tests test test-long bench-server fuzz fuzz-targets mutants test-gpu \
    lint format dist deb install uninstall deps clean help packages FORCE

## all: builds the programs and the kernel libraries (the default)
all: $(PROGRAMS) $(LIBRARIES) $(DATA)
ifeq ($(CUDA),0)
	@echo 'CUDA parts are left out: $(NO_CUDA_REASON).'
else ifeq ($(CUBLAS_H),)
	@echo 'The providers of cuBLAS are left out: no cublasLt.h in $(CUDA_HOME).'
endif
ifeq ($(WEB),0)
	@echo 'The dashboard is left out: $(NO_WEB_REASON).'
endif

## run: builds, then measures the kernels on the GPU, else on the CPU, into ./gate.db
run: all
	@status=0; \
	$(B)/bin/gate run --device auto --db ./gate.db --accept-new --allow-dirty || status=$$?; \
	echo; echo "The history is in ./gate.db; 'make serve' opens the dashboard."; exit $$status

## serve: shows the history in ./gate.db on http://127.0.0.1:8731/
LISTEN ?= 127.0.0.1:8731
serve: packages
	@+$(MAKE) $(B)/bin/gate-server
	@$(B)/bin/gate-server --db ./gate.db --listen $(LISTEN)

## tests: builds the test programs and the broken kernels of the tests
tests: all $(TESTS_AND_TOOLS) $(MUTANTS)

## test: runs all tests that need no GPU; TESTS='tests/unit/*' runs a part
test: packages
	@+$(MAKE) tests $(BROWSER_MODULES) $(TEMPLATE_MODULES)
	@tests/run --build $(B) $(TESTS)

## test-long: runs the tests that take minutes: fuzzing, kills of the server, all broken kernels
test-long: packages
	@+$(MAKE) tests
	@tests/run --build $(B) --long $(TESTS)

## bench-server: measures gate-server beside nginx (needs wrk and nginx; HISTORY=FILE: a database)
HISTORY ?=
bench-server: $(B)/bin/gate-server $(filter %/tools/seed_store,$(TESTS_AND_TOOLS))
	@python3 tests/bench/bench_server.py $(B) $(HISTORY)

## fuzz: fuzzes each target for SECONDS (5) with clang; KEEP=DIR keeps the inputs
SECONDS := 5
KEEP ?=
FUZZ_CC ?= clang
fuzz: fuzz-targets
	@tests/fuzz/fuzz.py --seconds $(SECONDS) $(if $(KEEP),--keep '$(KEEP)') build/fuzz

FUZZ_C := $(wildcard tests/fuzz/fuzz_*.c)
fuzz-targets:
	@ci/deps.sh --check fuzz
	@+$(MAKE) SANITIZE=fuzzer-no-link,address,undefined CC=$(FUZZ_CC) CFLAGS='-O1 -g' CUDA=0 \
	    WEB=0 $(FUZZ_C:%.c=build/fuzz/%)

## mutants: runs the gate on all broken kernels and prints how many it found
mutants: tests
	@tests/mutants/suite.py --build $(B) $(MUTANT)

## test-gpu: runs the tests that need a GPU
ifeq ($(CUDA),1)
test-gpu: all $(MUTANTS) $(GPU_TESTS)
	@tests/run --build $(B) --gpu $(TESTS)
else
test-gpu:
	@echo 'No GPU tests without the CUDA parts: $(NO_CUDA_REASON).' >&2; exit 1
endif

## lint: checks the sources: format, rules of the tree, clang-tidy, cppcheck, shellcheck
lint: build/gen/version.h
	@ci/lint.sh

## format: formats all C and CUDA sources
SOURCES = $(wildcard $(shell git ls-files --cached --others --exclude-standard \
    '*.c' '*.h' '*.cu' '*.cuh'))
CLANG_FORMAT ?= clang-format
format:
	$(Q)$(CLANG_FORMAT) -i $(SOURCES)

## dist: packs the tarball for a GPU runner without packages: dist/*.tar.gz
DIST_NAME := kernel-gate-$(VERSION)-linux-$(ARCH)
dist: all $(MUTANTS) $(GPU_TESTS) $(B)/dist/gate $(B)/dist/gate-search
	@ci/dist.sh $(B) $(DIST_NAME) $(notdir $(LIBRARIES))

## deb: packs the Debian packages of the gate and of the server: dist/*.deb
deb: all
	@+ci/deb.sh $(VERSION)

## install: installs below PREFIX (/usr/local)
I = $(DESTDIR)$(PREFIX)
install: all
	$(Q)umask 022; for file in $(INSTALLED); do mode=644; [[ $$file != bin/* ]] || mode=755; \
	    install -D -m $$mode $(B)/$$file $(I)/$$file; done
	$(Q)sed -i 's|/usr/local|$(PREFIX)|g' $(I)/$(UNIT)

## uninstall: removes what install put there, and folders that are then empty
uninstall:
	$(Q)cd $(or $(DESTDIR),/) && rm -f $(INSTALLED:%=$(PREFIX:/%=%)/%) && \
	    for folder in $(sort $(dir $(INSTALLED:%=$(PREFIX:/%=%)/%))); do [ ! -d $$folder ] || \
	    rmdir -p --ignore-fail-on-non-empty $$folder; done

## deps: installs the Debian packages that building and testing need, or prints how
deps:
	@ci/deps.sh build && ci/deps.sh test

## clean: removes build/ and dist/
clean:
	$(Q)rm -rf build dist

## help: shows this list
FIRST := all run serve test install
help:
	@sed -n 's/^## \([a-z-]*\): /\1\t/p' Makefile | awk -F'\t' -v first=' $(FIRST) ' \
	    'index(first, " " $$1 " ") { print_row($$1, $$2); next } { rest[++n] = $$0 } \
	    function print_row(name, what) { printf "  %-14s %s\n", name, what } \
	    END { print "\nFor developers:"; \
	        for (i = 1; i <= n; i++) { split(rest[i], row, "\t"); print_row(row[1], row[2]) } }'
	@echo; echo 'Settings, as in `make CUDA=0`:'
	@echo "  CUDA=0|1  NVCC=FILE  CUDA_ARCHS='80 90a'  WEB=0|1  CC=..  CFLAGS=.."
	@echo '  SANITIZE=address,undefined|thread  PREFIX=DIR  DESTDIR=DIR  V=1'

# ---- packages ---------------------------------------------------------------------------------

# What compiles waits for this. Only targets that are meant to work on a bare machine install
# packages; a plain `make` says what is missing. What is installed here is found by another make.
packages:
	@CUDA=$(CUDA) ci/deps.sh \
	    $(if $(filter run serve test test-long test-gpu dist,$(MAKECMDGOALS)),,--check) build
ifneq ($(filter serve,$(MAKECMDGOALS)),)
	@$(if $(filter WEB=0,$(NO_WEB_REASON)),:,ci/deps.sh web || true)
endif
ifneq ($(filter test test-long,$(MAKECMDGOALS)),)
	@ci/deps.sh test
endif

# ---- generated files --------------------------------------------------------------------------

# Writes standard input to $@ unless it holds just that, so that nothing depends on it in vain.
keep_if_same = mkdir -p $(@D); cat > $@.new; \
    if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

FORCE:

$(B)/gen/version.h: FORCE
	@printf '#define GATE_VERSION "%s"\n' '$(VERSION)' | { $(keep_if_same); }

# Objects depend on the flags that they were made with.
$(B)/gen/flags: FORCE
	@printf '%s\n' '$(CC) $(C_FLAGS)' | { $(keep_if_same); }

# What is linked of CUDA objects depends on which of their folders is in use.
build/cuda/archs: FORCE
	@printf '%s\n' '$(CUDA_ARCHS)' | { $(keep_if_same); }

$(CUDA_B)/flags: FORCE
	@printf '%s\n' '$(CC) $(NVCC) $(NVCC_FLAGS) $(GENCODE) $(GENCODE_SM90) $(CUDA_C_FLAGS)' | \
	    { $(keep_if_same); }

build/embed: $(EMBED_C) | packages
	$(call say,CC)
	$(Q)mkdir -p $(@D) && $(CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) -O1 $< \
	    $(call libs,libmd zlib) -o $@

# embedded NAME,FILES: what a program carries with it.
define embedded
$(B)/gen/$(1).c: $(2) build/embed
	$$(call say,EMBED)
	$$(Q)mkdir -p $$(@D) && build/embed embedded_$(1) $(2) > $$@
endef
$(eval $(call embedded,init,$(INIT_FILES)))
$(eval $(call embedded,store,$(wildcard gate/store/*.sql)))
$(eval $(call embedded,queries,$(wildcard server/queries/*.sql)))
$(eval $(call embedded,api,server/api/openapi_parts.json))

$(B)/gen/page: FORCE
	@printf '%s\n' $(sort $(PAGE)) | { $(keep_if_same); }

$(B)/gen/web.c: $(PAGE) $(B)/gen/page build/embed
	$(call say,EMBED)
	$(Q)build/embed --page embedded_web $(PAGE) > $@

# What npm brings: the chart library, of the version and the hash in the lock file. Its file for
# script elements becomes a module that carries its licence.
UPLOT := web/node_modules/uplot
web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	$(call say,NPM,web)
	$(Q)npm ci --ignore-scripts --prefer-offline --no-audit --no-fund --silent --prefix $(@D)/.. || { \
	    echo "npm cannot bring uPlot; 'make WEB=0' builds without the dashboard" >&2; exit 1; }

build/web/uplot.js: web/node_modules/.package-lock.json
	$(Q)mkdir -p $(@D) && { echo '/*!'; cat $(UPLOT)/LICENSE; echo '*/'; \
	    cat $(UPLOT)/dist/uPlot.iife.min.js; echo 'export default uPlot;'; } > $@

build/web/uplot.css: web/node_modules/.package-lock.json
	$(Q)mkdir -p $(@D) && cp $(UPLOT)/dist/uPlot.min.css $@

# ---- C ----------------------------------------------------------------------------------------

define compile
$(call say,CC,$<)
$(Q)mkdir -p $(@D) && $(CC) $(C_FLAGS) $(1) -MMD -MP -c $< -o $@
endef

OF_LIBRARY := kernels/host/% kernels/ops/% tests/mutants/%
$(B)/obj/%.c.o: %.c $(B)/gen/flags | packages $(B)/gen/version.h
	$(call compile,$(if $(filter $(OF_LIBRARY),$<),$(LIBRARY_C_FLAGS)))

$(B)/gen/%.c.o: $(B)/gen/%.c $(B)/gen/flags | packages
	$(call compile)

define link
$(call say,LD)
$(Q)mkdir -p $(@D) && $(CC) $(LD_FLAGS) $(1) -o $@
endef

# All code but the main files: a program takes out of it what it uses.
$(B)/obj/core.a: $(CORE_O) $(CUDA_IN_USE)
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcsPT $@ $(filter %.o,$^)

$(B)/bin/gate $(B)/dist/gate: $(call object,gate/main.c)
$(B)/bin/gate-search $(B)/dist/gate-search: $(call object,gate/search/main.c)
$(B)/bin/gate-server: $(call object,server/main.c)
$(PROGRAMS): $(B)/obj/core.a
	$(call link,$(filter %.o,$^) $< \
	    $(if $(filter %server,$@),$(SERVER_LIBS),$(GATE_LIBS)) $(CUDA_LIBS))

$(B)/$(LIB)/libhost.so: $(call object,$(HOST_C) $(OPS_C)) ci/kernel-library.map
	$(call link,$(LIBRARY_LD_FLAGS) $(filter %.o,$^) -lm)

# copied TARGET,SOURCE: a file that is installed as it is, but for the version.
define copied
$(B)/$(1): $(2) $(B)/gen/version.h
	$$(Q)mkdir -p $$(@D) && sed 's|@VERSION@|$$(VERSION)|' $$< > $$@
endef
$(eval $(call copied,$(SHARE)/suites/%,kernels/suites/%))
$(eval $(call copied,$(SHARE)/schemas/%,gate/formats/%))
$(eval $(call copied,$(INCLUDE)/kernel.h,kernels/kernel.h))
$(eval $(call copied,share/doc/kernel-gate/kernels.md,docs/kernels.md))
$(eval $(call copied,share/doc/kernel-gate/CHANGELOG.md,CHANGELOG.md))
$(eval $(call copied,lib/systemd/system/%,ci/%))
$(eval $(call copied,lib/pkgconfig/%,ci/%))
$(eval $(call copied,lib/cmake/kernel-gate/%,ci/%))

# Made by the programs themselves, of the tables of their options.
$(B)/share/man/man1/gate.1: $(B)/bin/gate
	$(Q)mkdir -p $(@D) && $< generate man > $@

# `gate search` starts it, and is in gate's own page.
$(B)/share/man/man1/gate-search.1:
	$(Q)mkdir -p $(@D) && echo '.so man1/gate.1' > $@

$(B)/share/bash-completion/completions/gate: $(B)/bin/gate
	$(Q)mkdir -p $(@D) && $< generate bash > $@

$(B)/share/man/man1/gate-server.1: $(B)/bin/gate-server ci/server-man.sh
	$(Q)mkdir -p $(@D) && ci/server-man.sh $< > $@

$(B)/share/bash-completion/completions/gate-server: $(B)/bin/gate-server ci/server-completions.sh
	$(Q)mkdir -p $(@D) && ci/server-completions.sh $< > $@

# ---- CUDA -------------------------------------------------------------------------------------

GENCODE := $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a:ptx%=%),code=$(if \
    $(filter ptx%,$(a)),compute_$(a:ptx%=%),sm_$(a)))
# The instructions of *_sm90.cu exist on no other architecture. No register of theirs may spill.
GENCODE_SM90 := -gencode arch=compute_90a,code=sm_90a
CEILING := $(wildcard gate/device/cuda_ceiling*.cu)
gencode = $(if $(filter %_sm90.cu,$(1)),$(GENCODE_SM90),$(GENCODE))
most_spilled = $(if $(filter %_sm90.cu,$(1)),0,32)
# Nothing of the C++ library is needed at run time.
NVCC_HOST_FLAGS := -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti -fno-threadsafe-statics -Wall
NVCC_FLAGS = -std=c++17 $(NVCCFLAGS) -I. -Werror all-warnings -Xptxas -v \
    $(NVCC_HOST_FLAGS:%=-Xcompiler %)
CUDA_C_FLAGS = $(PLAIN_C_FLAGS) $(LIBRARY_C_FLAGS) -isystem $(CUDA_HOME)/include

$(CUDA_B)/%.cu.o: %.cu $(CUDA_B)/flags ci/nvcc.sh | packages
	$(call say,NVCC,$<)
	$(Q)mkdir -p $(@D) && \
	    ci/nvcc.sh $(if $(filter $(OURS) $(CEILING),$<),--spills $(call most_spilled,$<)) \
	    $(@:.o=.log) \
	    $(NVCC) $(NVCC_FLAGS) $(call gencode,$<) -MD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@

$(CUDA_B)/%.c.o: %.c $(CUDA_B)/flags | packages
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(CUDA_C_FLAGS) -MMD -MP -c $< -o $@

# Stripped, because nvcc names its temporary files in the symbol table: with it the same sources
# would give another file, and another hash, each time. (What is in an anonymous namespace still has
# a name made from the path of the tree.)
define link_cuda_library
$(call say,LD)
$(Q)mkdir -p $(@D) && $(CC) -pthread -s $(LDFLAGS) $(LIBRARY_LD_FLAGS) $(filter %.o,$^) \
    $(CUDA_LIBS) -o $@
endef

build/$(LIB)/libours.so: $(call cuda_object,$(OURS)) ci/kernel-library.map \
    build/cuda/archs
	$(link_cuda_library)

build/$(LIB)/libcudnn_provider.so: $(call cuda_object,$(CUDNN)) ci/kernel-library.map \
    build/cuda/archs
	$(link_cuda_library)

build/$(LIB)/lib%_provider.so: $(call cuda_object,kernels/cublas/provider_%.c) \
    $(call cuda_object,$(CUBLAS)) ci/kernel-library.map \
    build/cuda/archs
	$(link_cuda_library)

build/tests/mutants/%.so: $(CUDA_B)/tests/mutants/%.cu.o ci/kernel-library.map \
    build/cuda/archs
	$(link_cuda_library)

ifneq ($(B),build)
$(CUDA_LIBRARIES) $(CUDA_MUTANTS): $(B)/%: build/%
	$(Q)install -D $< $@
endif

# ---- tests ------------------------------------------------------------------------------------

# What drives the browser, and the schemas of CI files. Without them, their tests are skipped and
# say so.
$(BROWSER_MODULES) $(TEMPLATE_MODULES): tests/%/node_modules/.package-lock.json: \
    tests/%/package-lock.json | packages
	$(call say,NPM,$<)
	$(Q)! command -v npm > /dev/null || \
	    npm ci --ignore-scripts --prefer-offline --no-audit --no-fund --silent --prefix $(<D) || true

# With the objects of the host library: its parts are tested one by one.
$(B)/obj/tests.a: $(call object,$(TEST_SHARED_C) $(HOST_C)) $(CORE_O) $(CUDA_IN_USE)
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcsPT $@ $(filter %.o,$^)

$(TESTS_AND_TOOLS): $(B)/%: $(B)/obj/%.c.o $(B)/obj/tests.a
	$(call link,$^ $(TEST_LIBS) $(CUDA_LIBS))

FUZZ_SHARED_C := $(wildcard tests/tools/sample_*.c) tests/fuzz/edits.c tests/fuzz/history.c
$(B)/obj/fuzz.a: $(call object,$(FUZZ_SHARED_C)) $(CORE_O)
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcsPT $@ $^

$(B)/tests/fuzz/%: $(B)/obj/tests/fuzz/%.c.o $(B)/obj/fuzz.a
	$(call link,-fsanitize=fuzzer $^ $(SERVER_LIBS))

$(B)/tests/mutants/%.so: $(B)/obj/tests/mutants/%.c.o ci/kernel-library.map
	$(call link,$(LIBRARY_LD_FLAGS) $(filter %.o,$^) -lm)

# ---- the runner's tarball -----------------------------------------------------------------------

# For machines without packages: SQLite, libmd, zlib and zstd are static, cJSON (which has no static
# form) lies in the private folder. The same objects otherwise.
PORTABLE_LIBS = -static-libgcc -l:libsqlite3.a -l:libmd.a -l:libz.a -l:libzstd.a \
    $(call libs,libcjson) -ldl -lm $(CUDA_LIBS)

$(B)/dist/gate $(B)/dist/gate-search: $(B)/obj/core.a
	$(call link,-Wl$(comma)-rpath$(comma)'$$ORIGIN/../$(LIB)' $(filter %.o,$^) $< \
	    $(PORTABLE_LIBS))

$(GPU_TESTS): $(B)/%: $(B)/obj/%.c.o $(call cuda_object,$(GPU_SHARED_CU)) $(B)/obj/core.a
	$(call link,-Wl$(comma)-rpath$(comma)'$$ORIGIN/../../$(LIB)' $^ $(PORTABLE_LIBS))

-include $(shell find $(B)/obj $(B)/gen $(CUDA_B) -name '*.d' 2>/dev/null)
