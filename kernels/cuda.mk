# SPDX-License-Identifier: Apache-2.0
# cuda.mk: the CUDA parts of the gate, and the kernel libraries for GPUs. A part of ../Makefile.
# Its objects and libraries are the same in every build folder: sanitizers watch host code.

empty :=
comma := ,
CUDA_B := build/cuda/$(subst $(empty) $(empty),-,$(strip $(CUDA_ARCHS)))
cuda_object = $(patsubst %,$(CUDA_B)/%.o,$(1))

GATE_CU := $(wildcard gate/device/*.cu) kernels/reference/reference_cuda.cu
OURS := kernels/ours.c $(wildcard $(addprefix kernels/,$(addsuffix /*.cu,attention_fwd \
    attention_bwd attention_paged batched_gemm gemm linear_relu gemv rmsnorm cuda)))
# Each makes a library of the whole folder; which provider of library.c it has, its link says.
CUBLAS_PROVIDERS := cublas cublaslt eager
PROVIDER_ROW :=
CUBLAS := $(wildcard kernels/cublas/*.c kernels/cublas/*.cu)
CUDNN := $(wildcard kernels/cudnn/*.c)

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
    $(if $(CUBLAS_H),$(CUBLAS_PROVIDERS:%=$(B)/$(LIB)/lib%_provider.so))
CUDART := $(firstword $(wildcard $(CUDA_HOME)/lib64/libcudart_static.a \
    $(CUDA_HOME)/targets/$(ARCH)-linux/lib/libcudart_static.a \
    /usr/lib/$(ARCH)-linux-gnu/libcudart_static.a))
CUDA_LIBS := $(or $(CUDART),-lcudart_static) -lrt -ldl
endif

# What is linked of CUDA objects depends on which of their folders is in use.
build/cuda/archs: FORCE
	@printf '%s\n' '$(CUDA_ARCHS)' | { $(keep_if_same); }

$(CUDA_B)/flags: FORCE
	@printf '%s\n' '$(CC) $(NVCC) $(NVCC_FLAGS) $(GENCODE) $(GENCODE_SM90) $(CUDA_C_FLAGS)' | \
	    { $(keep_if_same); }

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
$(Q)mkdir -p $(@D) && $(CC) -pthread -s $(LDFLAGS) $(LIBRARY_LD_FLAGS) $(PROVIDER_ROW) \
    $(filter %.o,$^) $(CUDA_LIBS) -o $@
endef

CUDA_BUILT = $(CUDA_LIBRARIES:$(B)/%=build/%)
$(CUDA_BUILT): ci/kernel-library.map build/cuda/archs
	$(link_cuda_library)

build/$(LIB)/libours.so: $(call cuda_object,$(OURS))
build/$(LIB)/libcudnn_provider.so: $(call cuda_object,$(CUDNN))
cublas_libraries = $(CUBLAS_PROVIDERS:%=build/$(LIB)/lib%_provider.so)
$(cublas_libraries): $(call cuda_object,$(CUBLAS))
$(cublas_libraries): PROVIDER_ROW = \
    -Wl,--defsym=provider=provider_$(patsubst lib%_provider.so,%,$(@F))

ifneq ($(B),build)
$(CUDA_LIBRARIES): $(B)/%: build/%
	$(Q)install -D $< $@
endif
