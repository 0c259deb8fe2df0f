# Functions for scripts that need a PostgreSQL server of their own (source this file from bash).
#
# Everything happens in one temporary directory: a private copy of the installed PostgreSQL, into which smart is
# installed, a data directory and a socket. Nothing of the system is touched, and no port is opened. The server runs
# under an unprivileged user, also when the script runs as root.

SERVER_DIR=
SERVER_BIN=
SERVER_NAME=server # of the cluster that the functions are about; each has a port of its own in PGPORT
MEMNODES= # PID:NAME of those that run

# server_user: the user that the server runs as.
server_user()
{
	if [ "$(id -u)" != 0 ]; then
		id -un
	elif id postgres >/dev/null 2>&1; then
		echo postgres
	else
		echo nobody
	fi
}

# as_server_user COMMAND...: run it as that user, in the temporary directory.
as_server_user()
{
	if [ "$(id -u)" = 0 ]; then
		(cd "$SERVER_DIR/run" && exec runuser -u "$(server_user)" -- "$@")
	else
		(cd "$SERVER_DIR/run" && exec "$@")
	fi
}

# server_prepare: make the temporary directory and the private copy. PostgreSQL finds its files relative to its
# programs, so programs are copied and the rest is linked, with the same layout below SERVER_DIR/pg.
server_prepare()
{
	local pg_config pkglib share include
	pg_config=$("${PG_CONFIG:-pg_config}" --bindir)/pg_config
	SERVER_DIR=$(mktemp -d /tmp/smart.XXXXXX)
	trap server_remove EXIT
	trap 'exit 130' INT TERM
	chmod 755 "$SERVER_DIR"
	SERVER_BIN=$SERVER_DIR/pg$("$pg_config" --bindir)
	pkglib=$("$pg_config" --pkglibdir)
	share=$("$pg_config" --sharedir)
	include=$("$pg_config" --includedir-server)
	mkdir -p "$SERVER_BIN" "$SERVER_DIR/pg$pkglib" "$SERVER_DIR/pg$share" "$SERVER_DIR/pg${include%/*}" "$SERVER_DIR/run"
	cp -L "$("$pg_config" --bindir)"/* "$SERVER_BIN/"
	cp -as "$pkglib/." "$SERVER_DIR/pg$pkglib/"
	cp -as "$share/." "$SERVER_DIR/pg$share/"
	ln -s "$include" "$SERVER_DIR/pg$include"
	[ "$(id -u)" != 0 ] || chown "$(server_user)" "$SERVER_DIR/run"
	export PATH="$SERVER_BIN:$PATH"
	export PGHOST="$SERVER_DIR/run" PGPORT=5432 PGUSER=smart PGDATABASE=postgres
	unset PGOPTIONS PGSERVICE PGPASSFILE PGSSLMODE
	export LC_ALL=C.UTF-8 TZ=UTC
}

# server_install [MAKE ARGUMENT]...: build smart and install it into the private copy.
server_install()
{
	"${MAKE:-make}" --no-print-directory -s -j"$(nproc)" install PG_CONFIG="$SERVER_BIN/pg_config" \
		memnode_prefix="$SERVER_DIR/memnode" memnode_bindir="$SERVER_BIN" "$@"
}

# server_initialize: make a cluster.
server_initialize()
{
	as_server_user initdb -D "$SERVER_DIR/run/$SERVER_NAME.data" -U smart -A trust -E UTF8 --locale=C --no-sync \
		>"$SERVER_DIR/initdb.log" 2>&1 || { cat "$SERVER_DIR/initdb.log" >&2; return 1; }
}

# server_start [SETTING]...: start the cluster, made now if it is not there, with these lines in its configuration.
server_start()
{
	local data=$SERVER_DIR/run/$SERVER_NAME.data
	[ -d "$data" ] || server_initialize || return 1
	printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$SERVER_DIR/run'" \
		"shared_preload_libraries = 'smart'" "$@" |
		as_server_user tee -a "$data/postgresql.conf" >/dev/null
	as_server_user pg_ctl -D "$data" -l "$SERVER_DIR/run/$SERVER_NAME.log" -w -t 300 start -o "-p $PGPORT" \
		>"$SERVER_DIR/start.log" 2>&1 || { cat "$SERVER_DIR/start.log" "$SERVER_DIR/run/$SERVER_NAME.log" >&2; return 1; }
}

# server_stop: stop the cluster and fail if it does not stop cleanly.
server_stop()
{
	as_server_user pg_ctl -D "$SERVER_DIR/run/$SERVER_NAME.data" -w -t 300 -m fast stop >"$SERVER_DIR/stop.log" 2>&1
}

# memnode_start NAME [OPTION]...: start a memory node on a free loopback port; its address goes to MEMNODE_ADDRESS.
memnode_start()
{
	local name=$1 log=$SERVER_DIR/run/memnode.$1.log tries=0
	shift
	# The process to stop is not ours (runuser has one of its own), the one to wait for is.
	# shellcheck disable=SC2016
	as_server_user sh -c 'echo $$ >"$0.pid" && exec "$@"' "memnode.$name" \
		"$SERVER_BIN/smart-memnode" --listen=127.0.0.1:0 "$@" >"$log" 2>&1 </dev/null &
	MEMNODES="$MEMNODES $!:$name"
	while ! MEMNODE_ADDRESS=$(sed -n 's/^smart-memnode: ready on \([^,]*\),.*/\1/p' "$log" | grep .); do
		[ $((tries += 1)) -le 3000 ] || { cat "$log" >&2; return 1; }
		sleep 0.1
	done
}

# memnodes_stop: stop all memory nodes; fails if one does not stop cleanly.
memnodes_stop()
{
	local node status=0
	for node in $MEMNODES; do
		kill "$(cat "$SERVER_DIR/run/memnode.${node#*:}.pid")" || status=1
	done
	for node in $MEMNODES; do
		wait "${node%:*}" || status=1
	done
	MEMNODES=
	return "$status"
}

# server_lose_region: what a power loss takes of the stopped cluster's region, wherever it lies; the identity has been flushed.
server_lose_region()
{
	local data=$SERVER_DIR/run/$SERVER_NAME.data
	[ ! -d "$data/smart" ] || find "$data/smart" -mindepth 1 ! -name pgsql_tmp_identity -delete
	rm -rf /dev/shm/smart-region.*."$(stat -c %D.%i "$data" | awk -F. '{ printf "%s.%x", $1, $2 }')"
}

# server_remove_shared_memory: each region there tells, at byte 512, the data directory that it belongs to.
server_remove_shared_memory()
{
	local region
	for region in /dev/shm/smart-region.*; do
		[ ! -f "$region" ] || case $(dd if="$region" bs=512 skip=1 count=1 status=none | tr -d '\0') in
			"$SERVER_DIR"/*) rm -f "$region" ;;
		esac
	done
}

# server_remove: stop what runs and remove the temporary directory (called when the script ends).
server_remove()
{
	local data
	[ -n "$SERVER_DIR" ] || return 0
	for data in "$SERVER_DIR"/run/*.data; do
		[ ! -f "$data/postmaster.pid" ] || as_server_user pg_ctl -D "$data" -w -t 30 -m immediate stop >/dev/null 2>&1
	done
	memnodes_stop 2>/dev/null
	if [ -n "${KEEP:-}" ]; then
		echo "kept: $SERVER_DIR" >&2
	else
		server_remove_shared_memory
		rm -rf "$SERVER_DIR"
	fi
	SERVER_DIR=
}
