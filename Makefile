# smart: an ordered PostgreSQL index in a SMART adaptive radix tree.
# `make help` lists the goals; test/programs.mk builds what runs without PostgreSQL.

PG_CONFIG ?= pg_config
SEED ?= 1
RUNS ?= 1000
export PG_CONFIG

# The one place that has the version; script/check-release compares what else tells it.
SMART_VERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" smart.control)

# What a package's build asks for in the environment: the daemon is made with it (PGXS, below, has flags of its own).
BUILD_CPPFLAGS := $(CPPFLAGS)
BUILD_CFLAGS := $(CFLAGS)
BUILD_LDFLAGS := $(LDFLAGS)

# V=1 shows every command.
Q = $(if $(V),,@echo '  $(CC) $@';)

# ---- the module -------------------------------------------------------------------------------------------------

MODULE_big = smart

# Classes for types that other extensions bring; each of these files has a .control beside it.
TYPE_EXTENSIONS = smart_citext smart_cube smart_hstore smart_isn smart_ltree smart_seg
EXTENSION = smart $(addprefix sql/,$(TYPE_EXTENSIONS))
DATA = $(wildcard sql/smart--*.sql $(TYPE_EXTENSIONS:%=sql/%--*.sql))
PGFILEDESC = "smart - ordered index in a SMART adaptive radix tree"

# $(call sources,folders): the C files in folders and in their rooms, which are one level of folders below them.
sources = $(sort $(foreach folder,$(1),$(wildcard $(folder)/*.c $(folder)/*/*.c)))

# Everything below the access method: what programs without PostgreSQL are made of as well.
LIBRARY_SRCS := $(call sources,src/base rdma src/tree src/compute)

# The simulated fabric, a thread's environment and partitions serve programs only; a memory node's side of RDMA the daemon.
MODULE_SRCS := $(filter-out rdma/sim/%.c src/base/thread_env.c src/compute/partition/%.c rdma/verbs/target.c,\
	smart_am.c $(call sources,src/am) $(LIBRARY_SRCS))

# One object directory per compiler, server version and flavour, so that switching between them rebuilds nothing.
# ASSERT=1 keeps the assertions, as every test build does; CC=clang changes the compiler; WERROR=1 lets warnings fail.
ifeq ($(origin CC),default)
CC = gcc
endif
STRICT := $(if $(strip $(CI) $(WERROR)),-strict)
FLAVOUR := $(if $(ASSERT),assert,release)$(STRICT)
PG_MAJOR := $(firstword $(subst ., ,$(word 2,$(shell $(PG_CONFIG) --version 2>/dev/null))))
OBJDIR := build/module/$(PG_MAJOR)-$(notdir $(CC))-$(FLAVOUR)
OBJS = $(MODULE_SRCS:%.c=$(OBJDIR)/%.o)
EXTRA_CLEAN = build regression.diffs regression.out results output_iso

REGRESS = $(filter-out smart%,$(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql))))
REGRESS_OPTS = --load-extension=smart
ISOLATION = $(patsubst test/isolation/specs/%.spec,%,$(sort $(wildcard test/isolation/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test/isolation --load-extension=smart

# Callbacks have fixed signatures (access method, fabric, environment), hence unused parameters are normal here.
SMART_WARNINGS = -Wall -Wextra -Wno-unused-parameter $(if $(STRICT),-Werror)
SMART_LANGUAGE = -std=gnu11 -fvisibility=hidden
SMART_INCLUDES = -I. -Isrc

# PostgreSQL's headers are system headers, so that -Wextra judges our own code only. PGDLLEXPORT is empty on
# version 15, where modules exported everything; with hidden visibility it has to mean what it means later.
SMART_PG_CPPFLAGS = $(SMART_INCLUDES) -isystem $(shell $(PG_CONFIG) --includedir-server) \
	-D'PGDLLEXPORT=__attribute__((visibility("default")))' $(if $(ASSERT),-DSMART_ASSERTIONS)
SMART_PG_CFLAGS = $(SMART_LANGUAGE) $(SMART_WARNINGS) -Wno-declaration-after-statement
ifneq ($(findstring clang,$(CC)),)
# PGXS hands on the flags of the compiler that built the server.
SMART_PG_CFLAGS += -Wno-unknown-warning-option -Wno-ignored-optimization-argument
endif

PG_CPPFLAGS = $(SMART_PG_CPPFLAGS)
PG_CFLAGS = $(SMART_PG_CFLAGS)
FABRIC_LIBS = -lssl -lcrypto -lmemcached -libverbs
SHLIB_LINK += -lisal $(FABRIC_LIBS)

# Bitcode of the tree would only be inlined into expressions that never call it.
override with_llvm := no

all:

PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifneq ($(wildcard $(PGXS)),)
include $(PGXS)

$(OBJDIR)/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(if $(findstring /src/tree/,$@),-O3) $(CPPFLAGS) -MMD -MP -c -o $@ $<

-include $(OBJS:.o=.d)

# The library is linked anew whenever another flavour's objects are asked for.
ifneq ($(file <build/module/linked),$(OBJDIR))
$(shell mkdir -p build/module && echo '$(OBJDIR)' > build/module/linked)
endif
$(shlib): build/module/linked

else
all install installcheck uninstall:
	@echo "PostgreSQL's server headers are missing (PG_CONFIG=$(PG_CONFIG)): run 'make deps' first" >&2; exit 1
clean:
	rm -rf build
endif

# ---- programs without PostgreSQL --------------------------------------------------------------------------------

include memnode/memnode.mk
include test/programs.mk
include bench/ycsb.mk
include bench/network.mk

# DAEMON=no leaves out the daemon, which a package of its own has.
ifeq ($(filter no,$(DAEMON)),)
ifneq ($(wildcard $(PGXS)),)
all: memnode
install: install-memnode
uninstall: uninstall-memnode
endif
endif

# ---- goals ------------------------------------------------------------------------------------------------------

# For test/run.
list-regress:
	@echo $(REGRESS)
list-isolation:
	@echo $(ISOLATION)

.PHONY: list-regress list-isolation
.PHONY: deps demo quick test test-arm64 test-assert test-crash test-fresh test-packages test-rdma test-versions bench sim model tidy format figures
.PHONY: packages image release help

deps:
	@script/deps

demo: deps
	@demo/run

test:
	@test/run

# The tests of SQL and of interleavings that find most bugs for the time that they take.
QUICK = constraints index_check index_trees insert on_conflict orphans parity properties row_types scan_conditions scan_cursor \
	scan_dead scan_duplicates scan_join scan_only scan_order scan_parallel scan_partial scan_points scan_rows scan_skip \
	statements_btree statements_rows types_all types_patterns unique vacuum write_errors \
	conflict_withdrawn insert_scan results serializable unique_concurrently unique_conflict
quick:
	@test/quick $(QUICK)

test-crash: deps
	@test/crash $(or $(CYCLES),100)

test-fresh:
	@test/fresh

test-rdma: deps
	@test/rdma $(if $(ALL),--all)

test-versions:
	@test/versions

test-packages:
	@test/packages $(RELEASES)

test-assert:
	@test/assert

test-arm64:
	@test/arm64 $(if $(SHORT),--short,$(if $(PACKAGES),--packages))

packages: deps
	@script/packages

# Of the library that was linked last, which is this server's.
image: all
	@script/image

release: deps
	@script/release

bench: deps
	@bench/vs_nbtree $(BENCH_OPTS)

sim: $(SIM)
	@$(SIM) --seed $(SEED) --runs $(RUNS) $(SIM_OPTS)

model: $(MODEL)
	@$(MODEL) --seed $(SEED) --runs $(RUNS) $(MODEL_OPTS)

tidy:
	@script/tidy

format:
	@script/tidy --fix

figures:
	@script/figures

help:
	@echo 'make deps                    install the Debian packages (root, or sudo without a password)'
	@echo 'make [PG_CONFIG=…]           build smart.so;  make install  puts it into that PostgreSQL'
	@echo 'make install-memnode         only the memory node (smart-memnode), for hosts without PostgreSQL'
	@echo 'make demo                    an index on real data beside nbtree, in a temporary cluster'
	@echo 'make quick                   the tests that find most bugs, in three minutes'
	@echo 'make test [PARTS="unit …"]   every test that needs no special hardware; parts: test/run --list'
	@echo 'make test-fresh              make demo and make test in a clean Debian 12, as root'
	@echo 'make test-crash [CYCLES=n]    kills everything at random moments: n cycles of each kind (100), answers compared each time'
	@echo 'make test-rdma [ALL=1]       the same over RDMA verbs, in a virtual machine with Soft-RoCE (ALL=1: all of it)'
	@echo 'make test-versions           the access method on PostgreSQL 17 and 18, as root, in Debian systems of their own'
	@echo 'make test-assert             the same on a server built with assertions, from its source package'
	@echo 'make test-arm64 [SHORT=1]    the same on arm64, as root, by emulation in a Debian system of its own (SHORT=1: a few of them; PACKAGES=1: its packages)'
	@echo 'make test-packages           the packages, in clean Debian systems, as root; RELEASES="12 13 sid" (12)'
	@echo 'make packages                Debian packages of this checkout, in build/packages'
	@echo 'make image                   an OCI image of the extension for PostgreSQL 18, in build/image'
	@echo 'make release                 the files of a release, in build/release, if all agree about its version'
	@echo 'make installcheck            pg_regress and isolation tests against a running server'
	@echo 'make sim SEED=n RUNS=m       simulated histories of the tree; SIM_OPTS="--trace …"'
	@echo 'make model SEED=n RUNS=m     histories of a model of the journal; MODEL_OPTS="--trace …"'
	@echo 'make bench [BENCH_OPTS=…]    smart beside nbtree: table, CSV and picture (BENCH_OPTS=--quick)'
	@echo 'make ping-pong               READs of a memory node over TCP beside a bare exchange of as many bytes'
	@echo 'make ycsb [YCSB_OPTS=…]      YCSB on the tree alone: YCSB_OPTS=--help tells how'
	@echo 'make evidence                other papers'"'"' indexes and what those papers print; EVIDENCE_OPTS=--table: beside this tree'
	@echo 'make tidy                    format, layers and static analysis;  make format  rewrites the files'
	@echo 'make figures                 lines, functions, assertions and circles, by folder'
