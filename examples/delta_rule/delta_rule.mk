# make -f delta_rule.mk: the kernel and its reference; build/libfaulty.so: one that forgets.
# make -f delta_rule.mk cuda, with nvcc: the same two for a GPU, build/libdelta_rule_cuda.so and
# build/libfaulty_cuda.so.
# KERNEL_GATE is the folder of kernel.h and problem.h.
CFLAGS ?= -O3
NVCC ?= nvcc
NVCCFLAGS ?= -O3 -arch=native
KERNEL_GATE ?= .
COMPILE = mkdir -p $(@D) && $(CC) -std=c11 $(CFLAGS) -Wall -ffile-prefix-map=$(CURDIR)=. \
    -I$(KERNEL_GATE) -fPIC -shared $< -o $@
COMPILE_CUDA = mkdir -p $(@D) && $(NVCC) $(NVCCFLAGS) -I$(KERNEL_GATE) -Xcompiler -fPIC -shared \
    $< -o $@

all: build/libdelta_rule.so build/libdelta_rule_reference.so
cuda: build/libdelta_rule_cuda.so build/libfaulty_cuda.so

build/lib%.so: %.c
	$(COMPILE)

build/faulty.c: delta_rule.c
	mkdir -p $(@D)
	sed 's/= g \* \*s + /= /' $< > $@

build/libfaulty.so: build/faulty.c
	$(COMPILE)

build/lib%_cuda.so: %.cu
	$(COMPILE_CUDA)

build/faulty.cu: delta_rule.cu
	mkdir -p $(@D)
	sed 's/= g \* \*s + /= /' $< > $@

build/libfaulty_cuda.so: build/faulty.cu
	$(COMPILE_CUDA)
