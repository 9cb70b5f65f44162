# make -f paged_decode.mk: the kernel and its reference; build/libfaulty.so: one that is off by one.
# KERNEL_GATE is the folder of kernel.h and problem.h.
CFLAGS ?= -O3
KERNEL_GATE ?= .
COMPILE = mkdir -p $(@D) && $(CC) -std=c11 $(CFLAGS) -Wall -ffile-prefix-map=$(CURDIR)=. \
    -I$(KERNEL_GATE) -fPIC -shared $< -o $@ -lm

all: build/libpaged_decode.so build/libpaged_decode_reference.so

build/lib%.so: %.c
	$(COMPILE)

build/faulty.c: paged_decode.c
	mkdir -p $(@D)
	sed 's/row\[i \/ page\]/row[(i ? i - 1 : 0) \/ page]/' $< > $@

build/libfaulty.so: build/faulty.c
	$(COMPILE)
