# make -f delta_rule.mk: the kernel and its reference; build/libfaulty.so: one that forgets.
# KERNEL_GATE is the folder of kernel.h and problem.h.
CFLAGS ?= -O3
KERNEL_GATE ?= .
COMPILE = mkdir -p $(@D) && $(CC) -std=c11 $(CFLAGS) -Wall -ffile-prefix-map=$(CURDIR)=. \
    -I$(KERNEL_GATE) -fPIC -shared $< -o $@

all: build/libdelta_rule.so build/libdelta_rule_reference.so

build/lib%.so: %.c
	$(COMPILE)

build/faulty.c: delta_rule.c
	mkdir -p $(@D)
	sed 's/= g \* \*s + /= /' $< > $@

build/libfaulty.so: build/faulty.c
	$(COMPILE)
