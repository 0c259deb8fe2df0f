# Functions for scripts that run tests and count them (source this file from bash, after script/server.sh).

PASSED=0
FAILED=0
SKIPPED=0
FAILURES=() # tests that failed, each with the command that runs it again
SKIPS=()    # tests that cannot run here, each with its reason
AGAIN=      # the command that runs the present tests again
EXPECTED=0  # how many lines the present part is going to have; 0: not known
TOLD=0      # of them so far
CLOSING='^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$'

say()
{
	printf '%s\n' "$*"
}

# expect N: from here on N lines come, which are numbered; 0: they are not.
expect()
{
	EXPECTED=$1 TOLD=0
}

# tally NAME PASSED FAILED SECONDS [SKIPPED REASON]: one line of the report.
tally()
{
	local name=$1 result="$2 passed" skipped=${5:-0}
	PASSED=$((PASSED + $2))
	FAILED=$((FAILED + $3))
	SKIPPED=$((SKIPPED + skipped))
	TOLD=$((TOLD + 1))
	[ "$3" = 0 ] || FAILURES+=("$name${AGAIN:+ (again: $AGAIN)}")
	[ "$skipped" = 0 ] || SKIPS+=("$name: $6${AGAIN:+ (again: $AGAIN)}")
	[ "$EXPECTED" = 0 ] || name="[$TOLD/$EXPECTED] $name"
	if [ "$3" != 0 ]; then
		printf '  FAIL  %-50s %12s, %d failed %4d s\n' "$name" "$result" "$3" "$4"
	elif [ "$2" = 0 ] && [ "$skipped" != 0 ]; then
		printf '  skip  %-50s %s\n' "$name" "$6"
	else
		[ "$skipped" = 0 ] || result="$result, $skipped skipped ($6)"
		printf '  ok    %-50s %12s %14d s\n' "$name" "$result" "$4"
	fi
}

# finish: what failed and how to run it again, what was skipped and why, and the closing line, which is the last one.
# Returns the script's exit status. Nothing failed is not enough: something has to be counted.
finish()
{
	[ ${#FAILURES[@]} = 0 ] || printf 'failed: %s\n' "${FAILURES[@]}"
	[ ${#SKIPS[@]} = 0 ] || printf 'skipped: %s\n' "${SKIPS[@]}"
	say "$PASSED passed, $FAILED failed, $SKIPPED skipped"
	[ "$FAILED" = 0 ] && [ $((PASSED + SKIPPED)) -gt 0 ]
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

# judge NAME LOG STATUS SECONDS COMMAND...: what a program did whose last line is "N passed, N failed", or that and
# ", N skipped", with a line "skip: REASON" before it. Each of these is one failure more: no such line, one that the exit
# status contradicts, nothing counted at all, and something skipped without a reason.
judge()
{
	local name=$1 log=$2 status=$3 seconds=$4 passed=0 failed=0 skipped=0 reason wrong=
	shift 4
	reason=$(sed -n 's/^skip: //p' "$log" | sort -u | paste -s -d ';')
	if [[ $(tail -n 1 "$log") =~ $CLOSING ]]; then
		passed=${BASH_REMATCH[1]} failed=${BASH_REMATCH[2]} skipped=${BASH_REMATCH[4]:-0}
		if [ $((passed + failed + skipped)) = 0 ]; then
			wrong="it counted nothing"
		elif [ "$status" != 0 ] && [ "$failed" = 0 ]; then
			wrong="it counted no failure"
		elif [ "$skipped" != 0 ] && [ -z "$reason" ]; then
			wrong="it skipped tests and did not say why"
		elif [ "$status" = 0 ] && [ "$failed" != 0 ]; then
			say "        $name: failures, but exit status 0"
		fi
	else
		wrong="its last line does not say what passed and failed"
	fi
	[ -z "$wrong" ] || failed=$((failed + 1))
	if [ "$failed" != 0 ]; then
		tail -n 60 "$log" | sed 's/^/        /'
		say "        exit status $status${wrong:+, but $wrong}: $*"
	fi
	tally "$name" "$passed" "$failed" "$seconds" "$skipped" "$reason"
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
	echo "$AGAIN" >"$directory/again"
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
	local each directory command status seconds running=() AGAIN
	wait -n "${BEGUN[@]%%:*}"
	for each in "${BEGUN[@]}"; do
		directory=${each#*:}
		if [ ! -s "$directory/end" ] && kill -0 "${each%%:*}" 2>/dev/null; then
			running+=("$each")
			continue
		fi
		mapfile -d '' command <"$directory/command"
		AGAIN=$(<"$directory/again")
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

# added NAME COMMAND...: a script that reports as we do; its report is ours but for its end, which is added up.
added()
{
	local name=$1 report start=$SECONDS
	shift
	report=$(mktemp)
	"$@" | tee "$report" | grep --line-buffered -vE "^(failed|skipped): |$CLOSING|^$"
	add_report "$name" "$report" "${PIPESTATUS[0]}" $((SECONDS - start))
	rm -f "$report"
}

# add_report NAME REPORT STATUS SECONDS: adds up the end of such a report, behind which make may say that it failed. Its
# "make test" is our AGAIN.
add_report()
{
	local line failed=
	while read -r line; do
		case $line in
			*"(again: make test "*) [ -z "$AGAIN" ] || line=${line/(again: make test /(again: $AGAIN } ;;
			*"(again: "*) ;;
			*) line=$line${AGAIN:+ (again: $AGAIN)} ;;
		esac
		case $line in
			failed:*) FAILURES+=("${line#failed: }") ;;
			skipped:*) SKIPS+=("${line#skipped: }") ;;
		esac
	done < <(grep -E '^(failed|skipped): ' "$2")
	if [[ $(grep -E "$CLOSING" "$2" | tail -n 1) =~ $CLOSING ]]; then
		failed=${BASH_REMATCH[2]}
		PASSED=$((PASSED + BASH_REMATCH[1]))
		FAILED=$((FAILED + failed))
		SKIPPED=$((SKIPPED + ${BASH_REMATCH[4]:-0}))
	fi
	if [ -z "$failed" ] || { [ "$3" != 0 ] && [ "$failed" = 0 ]; }; then
		tally "$1: exit status $3" 0 1 "$4"
	fi
}

# tap_closing LOG STATUS: what "prove -v" wrote to LOG and how it ended, as a program says it that judge can read: the
# reasons of what was skipped, and the closing line. Returns STATUS.
tap_closing()
{
	local total bad skipped whole
	sed -nE 's/^[^ ]+ \.+ skipped: /skip: /p; s/^ok [0-9]+ # skip /skip: /Ip' "$1" | sort -u
	whole=$(grep -cE '^[^ ]+ \.+ skipped: ' "$1")
	skipped=$(grep -ciE '^ok [0-9]+ # skip( |$)' "$1")
	total=$(sed -n 's/^Files=.*Tests=\([0-9]*\).*/\1/p' "$1")
	bad=$(sed -n 's/.*Failed: \([0-9]*\)).*/\1/p' "$1" | head -n 1)
	[ "$2" = 0 ] || [ "${bad:-0}" != 0 ] || bad=1
	total=$((${total:-0} - skipped - ${bad:-0}))
	# A file that is skipped as a whole has no tests.
	skipped=$((skipped + whole))
	printf '%d passed, %d failed, %d skipped\n' $((total > 0 ? total : 0)) "${bad:-0}" "$skipped"
	return "$2"
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

# pg_tests KIND RUNNER INPUTDIR NAMES...: several of them, on the server that runs; if TESTS names some, no others.
pg_tests()
{
	local kind=$1 runner=$2 input=$3 name again=$AGAIN names=()
	shift 3
	as_server_user mkdir -p "$SERVER_DIR/run/out"
	for name in "$@"; do
		[ -n "${TESTS:-}" ] && [[ " $TESTS " != *" $name "* ]] || names+=("$name")
	done
	expect $((${#names[@]} + 1))
	for name in "${names[@]}"; do
		AGAIN="${again:+$again TESTS=$name}"
		one "$kind $name" pg_test "$runner" "$SERVER_DIR/run/$input" "$name"
	done
	AGAIN=$again
	one "$kind: the server's log is quiet" quiet_log
	expect 0
}

# quiet_log: no crash, failed assertion or unexpected restart since the server started.
quiet_log()
{
	! grep -E 'PANIC|terminated by signal|TRAP:|assertion|database system was interrupted' "$SERVER_DIR/run/$SERVER_NAME.log"
}

# lookup_is_one_round_trip: with the inner nodes in the cache; none if the key was looked up before. In the
# regression tests' database, which TESTS may have left without one that makes it.
lookup_is_one_round_trip()
{
	local trips
	trips=$(as_server_user psql -X -A -t -q -d postgres <<-'SQL' | tail -n 1
		SELECT 'CREATE DATABASE contrib_regression'
			WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'contrib_regression') \gexec
		\c contrib_regression
		CREATE EXTENSION IF NOT EXISTS smart;
		CREATE TABLE one_round_trip AS SELECT i AS id FROM generate_series(1, 20000) i;
		CREATE INDEX one_round_trip_id ON one_round_trip USING smart (id);
		SET enable_seqscan = off;
		SET enable_bitmapscan = off;
		SELECT id FROM one_round_trip WHERE id = 12345;
		SELECT session_round_trips AS before FROM smart_stat_fabric \gset
		SELECT id FROM one_round_trip WHERE id = 12346;
		SELECT session_round_trips AS after FROM smart_stat_fabric \gset
		SELECT id FROM one_round_trip WHERE id = 12346;
		SELECT :after - :before || ', then ' || session_round_trips - :after FROM smart_stat_fabric;
	SQL
	)
	echo "$trips round trips"
	[ "$trips" = "1, then 0" ]
}
