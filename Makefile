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
CFLAGS ?= -O2 -g
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

NO_WEB_REASON := $(if $(filter 0,$(WEB)),WEB=0,$(if $(shell command -v npm),,no npm on PATH \
    (make serve installs it)))
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
PLAIN_C_FLAGS = -std=c2x -D_GNU_SOURCE $(CUDA_DEFINE) -I. $(WARNINGS) -fno-common \
    -fstack-protector-strong -ffile-prefix-map=$(CURDIR)=. -pthread $(CFLAGS)
ifneq ($(SANITIZE),)
# After CFLAGS, which CUDA parts are compiled with too: they are the same in all builds. The checks
# hide from gcc what initializes a variable.
SANITIZE_FLAGS := -O1 -g1 -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer \
    $(if $(findstring clang,$(CC)),,-Wno-maybe-uninitialized)
endif
C_FLAGS = $(PLAIN_C_FLAGS) -I$(B)/gen $(SANITIZE_FLAGS)
LD_FLAGS = -pthread -Wl,--as-needed -Wl,-z,relro,-z,now $(LDFLAGS) $(SANITIZE_FLAGS)

# A kernel library shows its one function and nothing of what it is linked with.
LIBRARY_C_FLAGS := -fPIC -fvisibility=hidden -O3
MUTANT_C_FLAGS := -fPIC -fvisibility=hidden -O2 # right ones are run a thousand times
LIBRARY_LD_FLAGS = -shared -Wl,-z,defs -Wl,--version-script=ci/kernel-library.map -static-libgcc

# Asked when a program is linked, not when this file is read: `make run` may install them first.
libs = $(shell $(PKG_CONFIG) --libs $(1))
GATE_LIBS = $(call libs,sqlite3 libcjson expat libmd zlib libzstd) -ldl -lm
SERVER_LIBS = $(call libs,sqlite3 libcjson libmd libmicrohttpd gnutls zlib libzstd) -ldl -lm
TEST_LIBS = $(call libs,cmocka expat) $(SERVER_LIBS)

# ---- sources ----------------------------------------------------------------------------------

# The ops as data, with their references on the host.
OPS_C := $(wildcard kernels/ops/*.c)
EMBED := gate/base/embed.sh
GATE_C := $(wildcard gate/*.c gate/*/*.c) $(OPS_C)
SERVER_C := $(wildcard server/*.c server/*/*.c)
MAIN_C := gate/main.c gate/search/main.c server/main.c
CORE_C := $(filter-out $(MAIN_C),$(GATE_C) $(SERVER_C))
HOST_C := $(wildcard kernels/host/*.c)
SUITES := $(wildcard kernels/suites/*.json)
SCHEMAS := $(sort $(wildcard gate/formats/*.schema.json))
INIT_FILES := kernels/kernel.h kernels/problem.h $(wildcard examples/layernorm/layernorm*) \
    $(addprefix examples/mykernels/,mykernels.c mykernels.cu Makefile \
    CMakeLists.txt kernels.json .gitignore) $(addprefix ci/templates/,github-actions.yml \
    github-comment.yml gitlab-ci.yml slurm.sh)
ifeq ($(WEB),1)
PAGE := $(wildcard $(addprefix web/,*.html *.css *.svg frame/*.js chart/*.js views/*.js)) \
    build/web/uplot.js build/web/uplot.css
else
PAGE := web/style.css # badges have its colours
endif
object = $(patsubst %,$(B)/obj/%.o,$(1))
LIB := lib/kernel-gate
SHARE := share/kernel-gate
INCLUDE := include/kernel-gate

CORE_O := $(call object,$(CORE_C)) \
    $(addprefix $(B)/gen/,init.c.o api.c.o queries.c.o store.c.o web.c.o)
include kernels/cuda.mk
LIBRARIES := $(B)/$(LIB)/libhost.so $(CUDA_LIBRARIES)
PROGRAMS := $(B)/bin/gate $(B)/bin/gate-search $(B)/bin/gate-server
# What is installed besides them, in the same places.
UNIT := lib/systemd/system/gate-server.service
DATA := $(SUITES:kernels/suites/%=$(B)/$(SHARE)/suites/%) \
    $(SCHEMAS:gate/formats/%=$(B)/$(SHARE)/schemas/%) $(addprefix $(B)/,$(UNIT) \
    lib/systemd/system/gate-server.socket $(INCLUDE)/kernel.h $(INCLUDE)/problem.h \
    $(SHARE)/bundle.py share/doc/kernel-gate/bundles.md \
    share/doc/kernel-gate/kernels.md share/doc/kernel-gate/ops.md \
    share/doc/kernel-gate/CHANGELOG.md \
    lib/pkgconfig/kernel-gate.pc lib/cmake/kernel-gate/kernel-gate-config.cmake \
    lib/cmake/kernel-gate/kernel-gate-config-version.cmake share/man/man1/gate.1 \
    share/man/man1/gate-search.1 share/man/man1/gate-server.1 \
    share/bash-completion/completions/gate \
    share/bash-completion/completions/gate-server)
INSTALLED := $(patsubst $(B)/%,%,$(PROGRAMS) $(LIBRARIES) $(DATA))
include tests/tests.mk

# ---- what to make -----------------------------------------------------------------------------

.PHONY: all run serve tests test test-long bench-server fuzz fuzz-targets mutants test-gpu \
    parsed lint format dist deb install uninstall deps clean help packages FORCE

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

## test: runs all tests that need no GPU; TESTS='tests/unit/*' runs a part
test: packages
	@+$(MAKE) tests $(BROWSER_MODULES) $(TEMPLATE_MODULES)
	@tests/run --build $(B) $(TESTS)

## install: installs below PREFIX (/usr/local)
I = $(DESTDIR)$(PREFIX)
install: all
	$(Q)umask 022; for file in $(INSTALLED); do mode=644; [[ $$file != bin/* ]] || mode=755; \
	    install -D -m $$mode $(B)/$$file $(I)/$$file; done
	$(Q)sed -i 's|/usr/local|$(PREFIX)|g' $(I)/$(UNIT)

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
dist: all $(MUTANTS) $(CUDA_MUTANTS) $(GPU_TESTS) $(GPU_EXAMPLES) $(B)/dist/gate \
    $(B)/dist/gate-search
	@ci/dist.sh $(B) $(DIST_NAME) $(notdir $(LIBRARIES))

## deb: packs the Debian packages of the gate and of the server: dist/*.deb
deb: all
	@+ci/deb.sh $(VERSION)

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
help:
	@sed -n 's/^## \([a-z-]*\): /  \1\t/p' Makefile tests/tests.mk | expand -t 17
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

# embedded NAME,FILES: what a program carries with it.
define embedded
$(B)/gen/$(1).c: $(2) $(EMBED)
	$$(call say,EMBED)
	$$(Q)mkdir -p $$(@D) && $(EMBED) embedded_$(1) $(2) > $$@
endef
$(eval $(call embedded,init,$(INIT_FILES)))
$(eval $(call embedded,store,$(wildcard gate/store/*.sql)))
$(eval $(call embedded,queries,$(wildcard server/queries/*.sql)))
$(eval $(call embedded,api,server/api/openapi_parts.json))

$(B)/gen/page: FORCE
	@printf '%s\n' $(sort $(PAGE)) | { $(keep_if_same); }

$(B)/gen/web.c: $(PAGE) $(B)/gen/page $(EMBED)
	$(call say,EMBED)
	$(Q)$(EMBED) --page embedded_web $(PAGE) > $@

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

OF_LIBRARY := kernels/host/% kernels/ops/%
$(B)/obj/%.c.o: %.c $(B)/gen/flags | packages $(B)/gen/version.h
	$(call compile,$(if $(filter $(OF_LIBRARY),$<),$(LIBRARY_C_FLAGS),$(if \
	    $(filter tests/mutants/%,$<),$(MUTANT_C_FLAGS))))

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
$(eval $(call copied,$(INCLUDE)/problem.h,kernels/problem.h))
$(eval $(call copied,share/doc/kernel-gate/kernels.md,docs/kernels.md))
$(eval $(call copied,share/doc/kernel-gate/ops.md,docs/ops.md))
$(eval $(call copied,share/doc/kernel-gate/bundles.md,docs/bundles.md))
$(eval $(call copied,$(SHARE)/bundle.py,kernels/bundle/bundle.py))
$(eval $(call copied,share/doc/kernel-gate/CHANGELOG.md,CHANGELOG.md))
$(eval $(call copied,lib/systemd/system/%,ci/%))
$(eval $(call copied,lib/pkgconfig/%,ci/%))
$(eval $(call copied,lib/cmake/kernel-gate/%,ci/%))

# made FILE,PROGRAM,WORDS: what a program says of its options.
define made
$(B)/share/$(1): $(B)/bin/$(2)
	$$(Q)mkdir -p $$(@D) && $$< $(3) > $$@
endef
$(eval $(call made,man/man1/gate.1,gate,generate man))
$(eval $(call made,bash-completion/completions/gate,gate,generate bash))
$(eval $(call made,man/man1/gate-server.1,gate-server,generate man))
$(eval $(call made,bash-completion/completions/gate-server,gate-server,generate bash))

# `gate search` starts it, and is in gate's own page.
$(B)/share/man/man1/gate-search.1:
	$(Q)mkdir -p $(@D) && echo '.so man1/gate.1' > $@

# ---- the runner's tarball -----------------------------------------------------------------------

# For machines without packages: SQLite, Expat, libmd, zlib and zstd are static, cJSON (which has no
# static form) lies in the private folder. The same objects otherwise.
PORTABLE_LIBS = -static-libgcc -l:libsqlite3.a -l:libexpat.a -l:libmd.a -l:libz.a -l:libzstd.a \
    $(call libs,libcjson) -ldl -lm $(CUDA_LIBS)

$(B)/dist/gate $(B)/dist/gate-search: $(B)/obj/core.a
	$(call link,-Wl$(comma)-rpath$(comma)'$$ORIGIN/../$(LIB)' $(filter %.o,$^) $< \
	    $(PORTABLE_LIBS))

-include $(shell find $(B)/obj $(B)/gen $(CUDA_B) -name '*.d' 2>/dev/null)
