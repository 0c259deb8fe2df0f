# ycsb, the benchmark of the tree without PostgreSQL.
#
#   make ycsb YCSB_OPTS="--workload=all --clients=8"    builds and runs build/bench/ycsb (--help tells its options)
#
# Uses sources, LIBRARY_SRCS, SMART_LANGUAGE, SMART_WARNINGS, SMART_INCLUDES, FABRIC_LIBS, STRICT, ASSERT and V of the Makefile.

YCSB_SRCS = $(call sources,bench/ycsb) $(LIBRARY_SRCS)
YCSB_LIBS = -lisal $(FABRIC_LIBS) -lpthread -lm

YCSB_OBJDIR := build/bench/$(notdir $(CC))-$(if $(ASSERT),assert,release)$(STRICT)
YCSB_OBJS = $(YCSB_SRCS:%.c=$(YCSB_OBJDIR)/%.o)
YCSB_CFLAGS = $(SMART_LANGUAGE) $(SMART_WARNINGS) -O2 -g -fno-strict-aliasing -ffp-contract=off
YCSB_CPPFLAGS = -D_GNU_SOURCE $(if $(ASSERT),-DSMART_ASSERTIONS) $(SMART_INCLUDES)
YCSB = build/bench/ycsb

$(YCSB_OBJDIR)/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(YCSB_CFLAGS) $(if $(findstring /src/tree/,$@),-O3) $(YCSB_CPPFLAGS) -MMD -MP -c -o $@ $<

$(YCSB_OBJDIR)/ycsb: $(YCSB_OBJS)
	$(Q)$(CC) -o $@ $^ $(YCSB_LIBS)

# The flavour asked for last.
$(YCSB): $(YCSB_OBJDIR)/ycsb FORCE
	@cmp -s $< $@ || { rm -f $@ && cp $< $@; }

-include $(YCSB_OBJS:.o=.d)

ycsb: $(YCSB)
	@$(YCSB) $(YCSB_OPTS)

# The models of other papers' indexes against what those papers print: build/evidence/results.{md,csv,svg}.
evidence: $(YCSB)
	@bench/evidence/run $(EVIDENCE_OPTS)

.PHONY: ycsb evidence
