# Programs that run the tree without PostgreSQL: unit tests, simulator, threaded stress, micro benchmarks.
# Each flavour has its own build directory and a library of everything below src/am; a program links what it uses.
# LIBRARY_SRCS and sources are of the Makefile.
#
#   test/unit/*_test.c    one program each
#   test/stress/*.c       one program each
#   test/verbs/*_test.c   one program each; they need an RDMA device (test/rdma)
#   test/sim/*.c          together the simulator, build/programs/<flavour>/test/sim/sim
#   test/model/*.c        together the model of the journal, build/programs/<flavour>/test/model/journal
#   test/support/*.c      linked to all of them

CORE_SRCS = $(LIBRARY_SRCS) $(filter-out memnode/main.c,$(call sources,memnode)) \
	$(filter-out bench/ycsb/main.c bench/network/%.c,$(call sources,bench))
SUPPORT_SRCS = $(wildcard test/support/*.c)
UNIT_SRCS = $(wildcard test/unit/*_test.c)
STRESS_SRCS = $(wildcard test/stress/*.c)
VERBS_SRCS = $(wildcard test/verbs/*_test.c)
SIM_SRCS = $(wildcard test/sim/*.c)
MODEL_SRCS = $(wildcard test/model/*.c)

PROGRAMS := build/programs$(STRICT)

# The programs of the other kind of build: nothing here makes them, and make would say nothing of one that is there.
OTHER_PROGRAMS := build/programs$(if $(STRICT),,-strict)

$(OTHER_PROGRAMS)/%: refused
	@echo "$@ is of a build $(if $(STRICT),without,with) CI=1; this one has $(PROGRAMS)/$*" >&2; exit 1

.PHONY: refused

PROGRAM_CFLAGS = $(SMART_LANGUAGE) $(SMART_WARNINGS) -g -fno-omit-frame-pointer -fno-strict-aliasing -ffp-contract=off
PROGRAM_CPPFLAGS = -D_GNU_SOURCE -DSMART_ASSERTIONS -DSMART_FAULTS $(SMART_INCLUDES) -Itest
PROGRAM_LIBS = -lisal $(FABRIC_LIBS) -lpthread -lm

plain_CC = gcc
plain_CFLAGS = -O2
clang_CC = clang
clang_CFLAGS = -O2
asan_CC = gcc
asan_CFLAGS = -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
tsan_CC = clang
tsan_CFLAGS = -O1 -fsanitize=thread

FLAVOURS = plain clang asan tsan

# Programs that count what operations cost take a third of the time of all under a sanitizer; the code that they call runs in the
# others as well.
asan_UNIT_LEFT = test/unit/round_trips_test.c test/unit/ycsb_peer_test.c

# $(call objects,flavour,sources)
objects = $(patsubst %.c,$(PROGRAMS)/$(1)/%.o,$(2))

define flavour_rules
$(PROGRAMS)/$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$$(if $$(V),,@echo '  $$($(1)_CC) $$@';)$$($(1)_CC) $$(PROGRAM_CFLAGS) $$($(1)_CFLAGS) $$(PROGRAM_CPPFLAGS) -MMD -MP -c -o $$@ $$<

$(PROGRAMS)/$(1)/libsmart.a: $(call objects,$(1),$(CORE_SRCS) $(SUPPORT_SRCS))
	@rm -f $$@
	@ar rcs $$@ $$^

$(1)_UNIT = $(patsubst %.c,$(PROGRAMS)/$(1)/%,$(filter-out $($(1)_UNIT_LEFT),$(UNIT_SRCS)))
$(1)_STRESS = $(STRESS_SRCS:%.c=$(PROGRAMS)/$(1)/%)
$(1)_VERBS = $(VERBS_SRCS:%.c=$(PROGRAMS)/$(1)/%)
$(1)_SIM = $(if $(SIM_SRCS),$(PROGRAMS)/$(1)/test/sim/sim)
$(1)_MODEL = $(if $(MODEL_SRCS),$(PROGRAMS)/$(1)/test/model/journal)

$$($(1)_UNIT) $$($(1)_STRESS) $$($(1)_VERBS): %: %.o $(PROGRAMS)/$(1)/libsmart.a
	$$(if $$(V),,@echo '  $$($(1)_CC) $$@';)$$($(1)_CC) $$($(1)_CFLAGS) -o $$@ $$^ $$(PROGRAM_LIBS)

$$($(1)_SIM): $(call objects,$(1),$(SIM_SRCS)) $(PROGRAMS)/$(1)/libsmart.a
	$$(if $$(V),,@echo '  $$($(1)_CC) $$@';)$$($(1)_CC) $$($(1)_CFLAGS) -o $$@ $$^ $$(PROGRAM_LIBS)

$$($(1)_MODEL): $(call objects,$(1),$(MODEL_SRCS)) $(PROGRAMS)/$(1)/libsmart.a
	$$(if $$(V),,@echo '  $$($(1)_CC) $$@';)$$($(1)_CC) $$($(1)_CFLAGS) -o $$@ $$^ $$(PROGRAM_LIBS)

.PHONY: unit-$(1) stress-$(1) verbs-$(1) sim-$(1) model-$(1) core-$(1)
.PHONY: list-unit-$(1) list-stress-$(1) list-verbs-$(1) list-sim-$(1) list-model-$(1)
core-$(1): $(PROGRAMS)/$(1)/libsmart.a
unit-$(1): $$($(1)_UNIT)
stress-$(1): $$($(1)_STRESS)
verbs-$(1): $$($(1)_VERBS)
sim-$(1): $$($(1)_SIM)
model-$(1): $$($(1)_MODEL)
list-unit-$(1):
	@echo $$($(1)_UNIT)
list-stress-$(1):
	@echo $$($(1)_STRESS)
list-verbs-$(1):
	@echo $$($(1)_VERBS)
list-sim-$(1):
	@echo $$($(1)_SIM)
list-model-$(1):
	@echo $$($(1)_MODEL)

-include $(patsubst %.c,$(PROGRAMS)/$(1)/%.d,$(CORE_SRCS) $(SUPPORT_SRCS) $(UNIT_SRCS) $(STRESS_SRCS) \
	$(VERBS_SRCS) $(SIM_SRCS) $(MODEL_SRCS))
endef

$(foreach flavour,$(FLAVOURS),$(eval $(call flavour_rules,$(flavour))))

SIM = $(plain_SIM)
MODEL = $(plain_MODEL)
