# make -f block_scales.mk: the kernel and its reference; build/libfaulty.so: half bytes swapped.
# KERNEL_GATE is the folder of kernel.h and problem.h.
CFLAGS ?= -O3
KERNEL_GATE ?= .
COMPILE = mkdir -p $(@D) && $(CC) -std=c11 $(CFLAGS) -Wall -ffile-prefix-map=$(CURDIR)=. \
    -I$(KERNEL_GATE) -fPIC -shared $< -o $@ -lm

all: build/libblock_scales.so build/libblock_scales_reference.so

build/lib%.so: %.c
	$(COMPILE)

build/faulty.c: block_scales.c
	mkdir -p $(@D)
	sed 's/l % 2) & 15/1 - l % 2) \& 15/' $< > $@

build/libfaulty.so: build/faulty.c
	$(COMPILE)
