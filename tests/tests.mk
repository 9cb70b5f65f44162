# SPDX-License-Identifier: Apache-2.0
# tests.mk: what is built to test, and the commands that test. A part of ../Makefile.

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
CUDA_MUTANTS := $(if $(filter 1,$(CUDA)),$(patsubst tests/mutants/%.cu,$(B)/tests/mutants/%.so,\
    $(MUTANT_CU)))
GPU_TESTS := $(if $(filter 1,$(CUDA)),$(GPU_C:%.c=$(B)/%))
GPU_EXAMPLES := $(if $(filter 1,$(CUDA)),$(patsubst %,$(B)/tests/gpu/%/made,moe_up \
    paged_decode delta_rule))
# With TESTS, of the unit tests those alone.
TESTS_AND_TOOLS := $(patsubst %.c,$(B)/%,$(if $(TESTS),$(filter $(wildcard $(TESTS)),$(UNIT_C)),\
    $(UNIT_C)) $(TOOL_C))
SMALL_CACHE := $(B)/tests/tools/small_cache.so
FAKE_CUDA := $(B)/tests/tools/fake_cuda.so
# The suites of the mutants, and what own.json is of: ops of one's own with their references.
OWN_OPS := layernorm moe_up paged_decode delta_rule
MUTANTS := $(patsubst tests/mutants/%.c,$(B)/tests/mutants/%.so,$(MUTANT_C)) \
    $(addprefix $(B)/tests/mutants/,large.json own.json \
    $(notdir $(wildcard tests/mutants/*.op.json)) $(OWN_OPS:%=%.op.json) softmax.op.json \
    $(OWN_OPS:%=build/lib%_reference.so) softmax_reference.so)

## tests: builds the test programs and the broken kernels of the tests
tests: all $(TESTS_AND_TOOLS) $(MUTANTS) $(SMALL_CACHE) $(FAKE_CUDA)

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
	@+$(MAKE) SANITIZE=fuzzer-no-link,address,undefined CC=$(FUZZ_CC) CUDA=0 WEB=0 \
	    $(FUZZ_C:%.c=build/fuzz/%)

## mutants: runs the gate on all broken kernels and prints how many it found
mutants: tests $(CUDA_MUTANTS)
	@tests/mutants/suite.py --build $(B) $(MUTANT)

## test-gpu: runs the tests that need a GPU
ifeq ($(CUDA),1)
test-gpu: all $(MUTANTS) $(CUDA_MUTANTS) $(GPU_TESTS) $(GPU_EXAMPLES)
	@tests/run --build $(B) --gpu $(TESTS)
else
test-gpu:
	@echo 'No GPU tests without the CUDA parts: $(NO_CUDA_REASON).' >&2; exit 1
endif

# That nvcc understands the broken kernels, in a tenth of the time that it takes to compile them.
parsed: $(if $(filter 1,$(CUDA)),$(MUTANT_CU:%=$(CUDA_B)/%.ptx))
$(CUDA_B)/%.cu.ptx: %.cu $(CUDA_B)/flags
	$(call say,NVCC,$<)
	$(Q)mkdir -p $(@D) && $(NVCC) -std=c++17 -I. -arch=sm_90a -ptx -Xcicc -O0 $< -o $@

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
	$(call link,-fsanitize=fuzzer $^ $(call libs,expat) $(SERVER_LIBS))

$(SMALL_CACHE): tests/e2e/small_cache.c | packages
$(FAKE_CUDA): tests/unit/fake_cuda.c | packages
$(SMALL_CACHE) $(FAKE_CUDA):
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(WARNINGS) -Os -shared -fPIC $(if $(filter $@,$(FAKE_CUDA)),\
	    -Wl$(comma)-soname=libcuda.so.1) $< -o $@

$(B)/tests/mutants/%.so: $(B)/obj/tests/mutants/%.c.o ci/kernel-library.map
	$(call link,$(LIBRARY_LD_FLAGS) $(filter %.o,$^) -lm)

vpath %.json tests/mutants $(wildcard examples/*)
$(B)/tests/mutants/%.json: %.json
	$(Q)install -Dm 644 $< $@

define reference_of_an_op
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(PLAIN_C_FLAGS) -Ikernels -fPIC -shared $< -lm -o $@
endef
vpath %_reference.c $(wildcard examples/*)
$(B)/tests/mutants/build/lib%_reference.so: %_reference.c kernels/kernel.h
	$(reference_of_an_op)
$(B)/tests/mutants/%_reference.so: %_reference.c kernels/kernel.h
	$(reference_of_an_op)

build/tests/mutants/%.so: $(CUDA_B)/tests/mutants/%.cu.o ci/kernel-library.map \
    build/cuda/archs
	$(link_cuda_library)

ifneq ($(B),build)
$(CUDA_MUTANTS): $(B)/%: build/%
	$(Q)install -D $< $@
endif

$(GPU_TESTS): $(B)/%: $(B)/obj/%.c.o $(call cuda_object,$(GPU_SHARED_CU)) $(B)/obj/core.a
	$(call link,-Wl$(comma)-rpath$(comma)'$$ORIGIN/../../$(LIB)' $^ $(PORTABLE_LIBS))

# The examples with kernels for a GPU, in copies, made as a user makes them.
$(GPU_EXAMPLES): $(B)/tests/gpu/%/made: $(wildcard examples/*/*.* kernels/*.h) $(CUDA_B)/flags
	$(call say,MAKE,examples/$*)
	$(Q)rm -rf $(@D) && mkdir -p $(@D) && cp $(wildcard examples/$*/*.*) $(@D)
	$(Q)+$(MAKE) -s -C $(@D) -f $*.mk all cuda KERNEL_GATE=$(CURDIR)/kernels NVCC='$(NVCC)' \
	    NVCCFLAGS='-O3 -Werror all-warnings $(NVCC_HOST_FLAGS:%=-Xcompiler %) $(GENCODE) \
	    -Xlinker --as-needed' && touch $@
