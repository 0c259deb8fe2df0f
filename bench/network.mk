# Programs about the network between a server and its memory nodes.
#
#   build/bench/relay        a longer way to a memory node (bench/write_back --delay)
#   build/bench/ping_pong    READs over TCP beside a bare exchange:  make ping-pong
#
# Uses LIBRARY_SRCS, YCSB_OBJDIR, YCSB_LIBS, MEMNODE and Q.

NETWORK_SRCS = $(wildcard bench/network/*.c)
NETWORK_PROGRAMS = $(NETWORK_SRCS:bench/network/%.c=build/bench/%)

$(NETWORK_PROGRAMS): build/bench/%: $(YCSB_OBJDIR)/bench/network/%.o $(LIBRARY_SRCS:%.c=$(YCSB_OBJDIR)/%.o)
	$(Q)$(CC) -o $@ $^ $(YCSB_LIBS)

-include $(NETWORK_SRCS:%.c=$(YCSB_OBJDIR)/%.d)

ping-pong: build/bench/ping_pong $(MEMNODE)
	@bench/ping_pong

.PHONY: ping-pong
