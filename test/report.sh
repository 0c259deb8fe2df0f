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

# judge NAME LOG STATUS SECONDS COMMAND...: what a program did whose last line is "N passed, N failed"; dying without it
# is one failure, and so is an exit status that contradicts it or a program that counted nothing.
judge()
{
	local name=$1 log=$2 status=$3 seconds=$4 line passed failed
	shift 4
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
	tally "$name" "${passed:-0}" "$failed" "$seconds"
}

# counted NAME COMMAND...: such a program; its output is shown only when it fails.
counted()
{
	local name=$1 log start=$SECONDS
	shift
	log=$(mktemp)
	"$@" >"$log" 2>&1
	judge "$name" "$log" $? $((SECONDS - start)) "$@"
	rm -f "$log"
}

BEGUN=() # PID:DIRECTORY of what begin started and has not been reported yet
AT_ONCE=${AT_ONCE:-2}

# begin NAME COMMAND...: the same beside others, at most AT_ONCE of them; its line comes when a later begin, or gather,
# finds that it has ended.
begin()
{
	local directory
	while [ ${#BEGUN[@]} -ge "$AT_ONCE" ]; do
		tell_ended
	done
	directory=$(mktemp -d)
	printf '%s\0' "$@" >"$directory/command"
	(
		shift
		start=$SECONDS
		"$@" >"$directory/log" 2>&1
		echo "$? $((SECONDS - start))" >"$directory/end"
	) &
	BEGUN+=("$!:$directory")
}

# tell_ended: waits until one of them has ended, and tells of all that have.
tell_ended()
{
	local each directory command status seconds running=()
	wait -n "${BEGUN[@]%%:*}"
	for each in "${BEGUN[@]}"; do
		directory=${each#*:}
		if [ ! -s "$directory/end" ] && kill -0 "${each%%:*}" 2>/dev/null; then
			running+=("$each")
			continue
		fi
		mapfile -d '' command <"$directory/command"
		status=125 seconds=0
		[ ! -s "$directory/end" ] || read -r status seconds <"$directory/end"
		judge "${command[0]}" "$directory/log" "$status" "$seconds" "${command[@]:1}"
		rm -rf "$directory"
	done
	BEGUN=("${running[@]}")
}

# gather: waits for all of them.
gather()
{
	while [ ${#BEGUN[@]} -gt 0 ]; do
		tell_ended
	done
}

# added NAME COMMAND...: a script that reports as we do; its report is ours but for its last line, which is added up.
added()
{
	local name=$1 report line status start=$SECONDS
	shift
	report=$(mktemp)
	"$@" | tee "$report" | grep --line-buffered -vxE '[0-9]+ passed, [0-9]+ failed|'
	status=${PIPESTATUS[0]}
	line=$(tail -n 1 "$report" | grep -xE '[0-9]+ passed, [0-9]+ failed')
	rm -f "$report"
	if [ -n "$line" ]; then
		PASSED=$((PASSED + ${line%% passed*}))
		line=${line##*, }
		FAILED=$((FAILED + ${line%% failed*}))
	fi
	if [ -z "$line" ] || { [ "$status" != 0 ] && [ "$line" = "0 failed" ]; }; then
		tally "$name: exit status $status" 0 1 $((SECONDS - start))
	fi
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

# lookup_is_one_round_trip: with the inner nodes in the cache; none if the key was looked up before.
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
		SELECT id FROM one_round_trip WHERE id = 12346;
		SELECT smart_round_trips() AS after \gset
		SELECT id FROM one_round_trip WHERE id = 12346;
		SELECT :after - :before || ', then ' || smart_round_trips() - :after;
	SQL
	)
	echo "$trips round trips"
	[ "$trips" = "1, then 0" ]
}
