# make -f grouped_gemm.mk: the kernel and its reference; build/libfaulty.so: one that stops early.
# KERNEL_GATE is the folder of kernel.h and problem.h.
CFLAGS ?= -O3
KERNEL_GATE ?= .
COMPILE = mkdir -p $(@D) && $(CC) -std=c11 $(CFLAGS) -Wall -ffile-prefix-map=$(CURDIR)=. \
    -I$(KERNEL_GATE) -fPIC -shared $< -o $@

all: build/libgrouped_gemm.so build/libgrouped_gemm_reference.so

build/lib%.so: %.c
	$(COMPILE)

build/faulty.c: grouped_gemm.c
	mkdir -p $(@D)
	sed 's/to = offsets\[g + 1\];/& if (from == to) break;/' $< > $@

build/libfaulty.so: build/faulty.c
	$(COMPILE)
