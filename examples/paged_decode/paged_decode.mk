# make -f paged_decode.mk: the kernel and its reference; build/libfaulty.so: one that is off by one.
# make -f paged_decode.mk cuda, with nvcc: the same two for a GPU, build/libpaged_decode_cuda.so and
# build/libfaulty_cuda.so.
# KERNEL_GATE is the folder of kernel.h and problem.h.
CFLAGS ?= -O3
NVCC ?= nvcc
NVCCFLAGS ?= -O3 -arch=native
KERNEL_GATE ?= .
COMPILE = mkdir -p $(@D) && $(CC) -std=c11 $(CFLAGS) -Wall -ffile-prefix-map=$(CURDIR)=. \
    -I$(KERNEL_GATE) -fPIC -shared $< -o $@ -lm
COMPILE_CUDA = mkdir -p $(@D) && $(NVCC) $(NVCCFLAGS) -I$(KERNEL_GATE) -Xcompiler -fPIC -shared \
    $< -o $@

all: build/libpaged_decode.so build/libpaged_decode_reference.so
cuda: build/libpaged_decode_cuda.so build/libfaulty_cuda.so

build/lib%.so: %.c
	$(COMPILE)

build/faulty.c: paged_decode.c
	mkdir -p $(@D)
	sed 's/row\[i \/ page\]/row[(i ? i - 1 : 0) \/ page]/' $< > $@

build/libfaulty.so: build/faulty.c
	$(COMPILE)

build/lib%_cuda.so: %.cu
	$(COMPILE_CUDA)

build/faulty.cu: paged_decode.cu
	mkdir -p $(@D)
	sed 's/row\[i \/ page\]/row[(i ? i - 1 : 0) \/ page]/' $< > $@

build/libfaulty_cuda.so: build/faulty.cu
	$(COMPILE_CUDA)
