# make -f moe_up.mk: the kernel and its reference; build/libfaulty.so: one that stops early.
# make -f moe_up.mk cuda, with nvcc: the same two for a GPU, build/libmoe_up_cuda.so and
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

all: build/libmoe_up.so build/libmoe_up_reference.so
cuda: build/libmoe_up_cuda.so build/libfaulty_cuda.so

build/lib%.so: %.c
	$(COMPILE)

build/faulty.c: moe_up.c
	mkdir -p $(@D)
	sed 's/to = offsets\[g + 1\];/& if (from == to) break;/' $< > $@

build/libfaulty.so: build/faulty.c
	$(COMPILE)

build/lib%_cuda.so: %.cu
	$(COMPILE_CUDA)

build/faulty.cu: moe_up.cu
	mkdir -p $(@D)
	sed 's/<= i)/<= i \&\& offsets[g + 1] > offsets[g])/' $< > $@

build/libfaulty_cuda.so: build/faulty.cu
	$(COMPILE_CUDA)
