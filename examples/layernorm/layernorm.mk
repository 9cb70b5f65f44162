# make -f layernorm.mk: the kernel and its reference; build/libfaulty.so: one without its eps.
# KERNEL_GATE is the folder of kernel.h and problem.h.
CFLAGS ?= -O3
KERNEL_GATE ?= .
COMPILE = mkdir -p $(@D) && $(CC) -std=c11 $(CFLAGS) -Wall -ffile-prefix-map=$(CURDIR)=. \
    -I$(KERNEL_GATE) -fPIC -shared $< -o $@ -lm

all: build/liblayernorm.so build/liblayernorm_reference.so

build/lib%.so: %.c
	$(COMPILE)

build/faulty.c: layernorm.c
	mkdir -p $(@D)
	sed 's/ + eps)/)/' $< > $@

build/libfaulty.so: build/faulty.c
	$(COMPILE)
