# smart-memnode, the memory node's daemon: rules of its own, since it has nothing of PostgreSQL.
#
#   make memnode           build/memnode/smart-memnode; METRICS=no leaves out --metrics, and libmicrohttpd with it
#   make install-memnode   the daemon, its manual page, units of systemd, its user and a sample of its settings, below
#                          $(DESTDIR)
#
# Uses sources, SMART_VERSION, BUILD_CFLAGS and the like, SMART_LANGUAGE, SMART_WARNINGS, SMART_INCLUDES, STRICT, ASSERT
# and V of the Makefile.

# Not among PostgreSQL's programs, which are not on the path of a shell; a host may have the one without the other.
memnode_prefix ?= /usr/local
memnode_bindir ?= $(memnode_prefix)/bin
memnode_unitdir ?= $(memnode_prefix)/lib/systemd/system
memnode_userdir ?= $(memnode_prefix)/lib/sysusers.d
memnode_datadir ?= $(memnode_prefix)/share/smart-memnode
memnode_mandir ?= $(memnode_prefix)/share/man/man8

MEMNODE_SRCS = $(call sources,memnode) src/base/assert.c src/base/status.c src/base/thread_env.c \
	src/tree/find/walk.c src/tree/step/cover.c \
	rdma/local.c rdma/wire.c rdma/descent.c rdma/discovery.c rdma/tcp/stream.c rdma/tcp/secret.c \
	rdma/verbs/target.c rdma/verbs/common.c

# --metrics is there if libmicrohttpd is: the one library that the daemon does without, since not every node is monitored.
METRICS ?= $(if $(shell echo '#include <microhttpd.h>' | $(CC) -E - >/dev/null 2>&1 && echo there),yes,no)
METRICS := $(METRICS)
MEMNODE_METRICS := $(filter yes,$(METRICS))
MEMNODE_LIBS = -lisal -lssl -lcrypto -lmemcached -libverbs -lpthread $(if $(MEMNODE_METRICS),-lmicrohttpd)

MEMNODE_OBJDIR := build/memnode/$(notdir $(CC))-$(if $(ASSERT),assert,release)$(STRICT)$(if $(MEMNODE_METRICS),,-no-metrics)
MEMNODE_OBJS = $(MEMNODE_SRCS:%.c=$(MEMNODE_OBJDIR)/%.o)
MEMNODE_CFLAGS = $(SMART_LANGUAGE) $(SMART_WARNINGS) $(or $(BUILD_CFLAGS),-O2 -g -fstack-protector-strong) \
	-fno-strict-aliasing -fPIE
MEMNODE_CPPFLAGS = -D_GNU_SOURCE -DSMART_VERSION='"$(SMART_VERSION)"' $(if $(ASSERT),-DSMART_ASSERTIONS) \
	$(if $(MEMNODE_METRICS),-DSMART_METRICS) $(SMART_INCLUDES) $(or $(BUILD_CPPFLAGS),-D_FORTIFY_SOURCE=2)
MEMNODE = build/memnode/smart-memnode

$(MEMNODE_OBJDIR)/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(MEMNODE_CFLAGS) $(MEMNODE_CPPFLAGS) -MMD -MP -c -o $@ $<

$(MEMNODE_OBJDIR)/smart-memnode: $(MEMNODE_OBJS)
	$(Q)$(CC) -pie $(BUILD_CFLAGS) $(BUILD_LDFLAGS) -Wl,-z,relro,-z,now -o $@ $^ $(MEMNODE_LIBS)

# The flavour asked for last.
$(MEMNODE): $(MEMNODE_OBJDIR)/smart-memnode FORCE
	@cmp -s $< $@ || { rm -f $@ && cp $< $@; }

-include $(MEMNODE_OBJS:.o=.d)

memnode: $(MEMNODE)

install-memnode: $(MEMNODE)
	install -d $(foreach dir,bindir unitdir userdir datadir mandir,'$(DESTDIR)$(memnode_$(dir))')
	install -m 755 $(MEMNODE) '$(DESTDIR)$(memnode_bindir)/smart-memnode'
	sed 's|@bindir@|$(memnode_bindir)|' memnode/smart-memnode.service >'$(DESTDIR)$(memnode_unitdir)/smart-memnode.service'
	chmod 644 '$(DESTDIR)$(memnode_unitdir)/smart-memnode.service'
	install -m 644 memnode/smart-memnode.socket '$(DESTDIR)$(memnode_unitdir)/smart-memnode.socket'
	install -m 644 memnode/smart-memnode.sysusers '$(DESTDIR)$(memnode_userdir)/smart-memnode.conf'
	install -m 644 memnode/smart-memnode.rules.yml '$(DESTDIR)$(memnode_datadir)/smart-memnode.rules.yml'
	install -m 644 memnode/smart-memnode.dashboard.json '$(DESTDIR)$(memnode_datadir)/smart-memnode.dashboard.json'
	install -m 644 memnode/smart-memnode.conf '$(DESTDIR)$(memnode_datadir)/smart-memnode.conf.sample'
	install -m 644 memnode/smart-memnode.8 '$(DESTDIR)$(memnode_mandir)/smart-memnode.8'

uninstall-memnode:
	rm -f '$(DESTDIR)$(memnode_bindir)/smart-memnode' '$(DESTDIR)$(memnode_unitdir)/smart-memnode.service' \
		'$(DESTDIR)$(memnode_unitdir)/smart-memnode.socket' '$(DESTDIR)$(memnode_userdir)/smart-memnode.conf' \
		'$(DESTDIR)$(memnode_datadir)/smart-memnode.conf.sample' \
		'$(DESTDIR)$(memnode_datadir)/smart-memnode.rules.yml' \
		'$(DESTDIR)$(memnode_datadir)/smart-memnode.dashboard.json' '$(DESTDIR)$(memnode_mandir)/smart-memnode.8'

# For test/fuzz/run: what a program is made of that has a main of its own, and its libraries.
list-memnode:
	@echo $(filter-out memnode/main.c,$(MEMNODE_SRCS)) $(MEMNODE_LIBS)

FORCE:

.PHONY: list-memnode memnode install-memnode uninstall-memnode FORCE
