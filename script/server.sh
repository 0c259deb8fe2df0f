# Functions for scripts that need a PostgreSQL server of their own (source this file from bash).
#
# Everything happens in one temporary directory: a private copy of the installed PostgreSQL, into which smart is
# installed, a data directory and a socket. Nothing of the system is touched, and no port is opened. The server runs
# under an unprivileged user, also when the script runs as root.

SERVER_DIR=
SERVER_BIN=

# server_user: whom the server runs as.
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
	"${MAKE:-make}" --no-print-directory -s -j"$(nproc)" install PG_CONFIG="$SERVER_BIN/pg_config" "$@"
}

# server_start [SETTING]...: initialize a cluster with these lines in its configuration and start it.
server_start()
{
	as_server_user initdb -D "$SERVER_DIR/run/data" -U smart -A trust -E UTF8 --locale=C --no-sync \
		>"$SERVER_DIR/initdb.log" 2>&1 || { cat "$SERVER_DIR/initdb.log" >&2; return 1; }
	printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$SERVER_DIR/run'" \
		"shared_preload_libraries = 'smart'" "$@" |
		as_server_user tee -a "$SERVER_DIR/run/data/postgresql.conf" >/dev/null
	as_server_user pg_ctl -D "$SERVER_DIR/run/data" -l "$SERVER_DIR/run/server.log" -w -t 60 start \
		>"$SERVER_DIR/start.log" 2>&1 || { cat "$SERVER_DIR/start.log" "$SERVER_DIR/run/server.log" >&2; return 1; }
}

# server_stop: stop the cluster and fail if it does not stop cleanly.
server_stop()
{
	as_server_user pg_ctl -D "$SERVER_DIR/run/data" -w -t 60 -m fast stop >"$SERVER_DIR/stop.log" 2>&1
}

# server_remove: stop what runs and remove the temporary directory (called when the script ends).
server_remove()
{
	[ -n "$SERVER_DIR" ] || return 0
	[ ! -f "$SERVER_DIR/run/data/postmaster.pid" ] ||
		as_server_user pg_ctl -D "$SERVER_DIR/run/data" -w -t 30 -m immediate stop >/dev/null 2>&1
	if [ -n "${KEEP:-}" ]; then
		echo "kept: $SERVER_DIR" >&2
	else
		rm -rf "$SERVER_DIR"
	fi
	SERVER_DIR=
}
