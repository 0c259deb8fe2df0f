# Functions for scripts that run tests and count them (source this file from bash, after script/server.sh).

PASSED=0
FAILED=0

say()
{
	printf '%s\n' "$*"
}

# tally NAME PASSED FAILED SECONDS: one line of the report.
tally()
{
	PASSED=$((PASSED + $2))
	FAILED=$((FAILED + $3))
	if [ "$3" = 0 ]; then
		printf '  ok    %-44s %6d passed %14d s\n' "$1" "$2" "$4"
	else
		printf '  FAIL  %-44s %6d passed, %d failed %4d s\n' "$1" "$2" "$3" "$4"
	fi
}

# one NAME COMMAND...: a test that is one command; its output is shown only when it fails.
one()
{
	local name=$1 log start=$SECONDS
	shift
	log=$(mktemp)
	if "$@" >"$log" 2>&1; then
		tally "$name" 1 0 $((SECONDS - start))
	else
		tail -n 60 "$log" | sed 's/^/        /'
		tally "$name" 0 1 $((SECONDS - start))
	fi
	rm -f "$log"
}

# counted NAME COMMAND...: a program whose last line is "N passed, N failed"; dying without it is one failure, and so
# is an exit status that contradicts it or a program that counted nothing.
counted()
{
	local name=$1 log start=$SECONDS status line passed failed
	shift
	log=$(mktemp)
	"$@" >"$log" 2>&1
	status=$?
	line=$(tail -n 1 "$log" | grep -E '^[0-9]+ passed, [0-9]+ failed$')
	passed=${line%% passed*}
	failed=${line##*, }
	failed=${failed%% failed*}
	if [ -z "$line" ] || { [ "$status" != 0 ] && [ "$failed" = 0 ]; } || [ "$((passed + failed))" = 0 ]; then
		failed=$((${failed:-0} + 1))
	elif [ "$status" = 0 ] && [ "$failed" != 0 ]; then
		say "        $name: failures, but exit status 0"
	fi
	[ "$failed" = 0 ] || { tail -n 60 "$log" | sed 's/^/        /'; say "        exit status $status: $*"; }
	tally "$name" "${passed:-0}" "$failed" $((SECONDS - start))
	rm -f "$log"
}

# pg_test RUNNER INPUTDIR TEST: one test of pg_regress or pg_isolation_regress, told apart by exit status.
pg_test()
{
	local tests
	tests=$("$SERVER_BIN/pg_config" --pkglibdir)/pgxs/src/test
	as_server_user "$tests/$1" --bindir="$SERVER_BIN" --inputdir="$2" --outputdir="$SERVER_DIR/run/out" \
		--dbname=contrib_regression --load-extension=smart --host="$PGHOST" --port="$PGPORT" --user=smart "$3" \
		>"$SERVER_DIR/pg_test.log" 2>&1 && return 0
	head -n 50 "$SERVER_DIR/run/out/regression.diffs" 2>/dev/null | grep . || cat "$SERVER_DIR/pg_test.log"
	rm -f "$SERVER_DIR/run/out/regression.diffs"
	as_server_user pg_isready -q -t 30
	return 1
}

# pg_tests KIND RUNNER INPUTDIR NAMES...: several of them, on the server that runs.
pg_tests()
{
	local kind=$1 runner=$2 input=$3 name
	shift 3
	as_server_user mkdir -p "$SERVER_DIR/run/out"
	for name in "$@"; do
		one "$kind $name" pg_test "$runner" "$SERVER_DIR/run/$input" "$name"
	done
	one "$kind: the server's log is quiet" quiet_log
}

# quiet_log: no crash, failed assertion or unexpected restart since the server started.
quiet_log()
{
	! grep -E 'PANIC|terminated by signal|TRAP:|assertion|database system was interrupted' "$SERVER_DIR/run/$SERVER_NAME.log"
}

# lookup_is_one_round_trip: with the inner nodes in the cache.
lookup_is_one_round_trip()
{
	local trips
	trips=$(as_server_user psql -X -A -t -q -d contrib_regression <<-'SQL' | tail -n 1
		CREATE TABLE one_round_trip AS SELECT i AS id FROM generate_series(1, 20000) i;
		CREATE INDEX one_round_trip_id ON one_round_trip USING smart (id);
		SET enable_seqscan = off;
		SET enable_bitmapscan = off;
		SELECT id FROM one_round_trip WHERE id = 12345;
		SELECT smart_round_trips() AS before \gset
		SELECT id FROM one_round_trip WHERE id = 12345;
		SELECT smart_round_trips() - :before;
	SQL
	)
	echo "$trips round trips"
	[ "$trips" = 1 ]
}
