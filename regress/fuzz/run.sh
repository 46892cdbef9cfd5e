#!/bin/sh
# SPDX-License-Identifier: ISC
#
# Runs fuzz targets that are built, one after the other:
#
#	run.sh replay NAME ...		every input of the corpus once
#	run.sh fuzz SECONDS NAME ...	look for new ones that long, each
#
# A target's corpus is regress/fuzz/corpus/NAME, its dictionary, when it has
# one, regress/fuzz/dict/NAME.dict; configurations are also those of
# regress/conf.  New inputs of a longer look stay in build/fuzz/NAME, and what
# fails is written to build/fuzz/NAME-crash-* and so on.  The status is 1 when
# any target failed; the others run all the same.
set -u
cd "$(dirname "$0")/../.." || exit 2

mode=${1-}
secs=0
case $mode in
replay) shift ;;
fuzz)
	secs=$2
	shift 2
	;;
*)
	echo "usage: run.sh replay|fuzz [SECONDS] NAME ..." >&2
	exit 2
	;;
esac

out=build/fuzz
mkdir -p $out || exit 2
rc=0

# Every decoder of a message has its kind in the target of that name.
case " $* " in
*" payload "*)
	for get in $(sed -n 's/^int \([a-z_]*\)_get(struct rbuf \*, struct [a-z_]* \*);/\1/p' \
	    common/payload.h execd/launch/xl.h); do
		grep -qwE "[OP]\($get|any_get_$get" regress/fuzz/payload.c || {
			echo "FAIL fuzz payload: ${get}_get is not tried"
			rc=1
		}
	done
	;;
esac

for name; do
	seeds=regress/fuzz/corpus/$name
	[ "$name" != conf ] || seeds="$seeds regress/conf"
	log=$out/$name.log
	if [ "$mode" = replay ]; then
		# shellcheck disable=SC2086
		regress/fuzz/"$name".fz -runs=0 -timeout=20 -rss_limit_mb=2048 \
		    -artifact_prefix=$out/"$name"- $seeds >"$log" 2>&1
	else
		dict=regress/fuzz/dict/$name.dict
		[ -e "$dict" ] && dict=-dict=$dict || dict=
		mkdir -p $out/"$name" || exit 2
		# shellcheck disable=SC2086
		regress/fuzz/"$name".fz -max_total_time="$secs" -timeout=20 \
		    -rss_limit_mb=2048 -print_final_stats=1 $dict \
		    -artifact_prefix=$out/"$name"- $out/"$name" $seeds \
		    >"$log" 2>&1
	fi
	if [ $? -ne 0 ]; then
		rc=1
		echo "FAIL fuzz $name (see $log)"
		grep -aE 'does not hold|ERROR|SUMMARY|runtime error|Test unit' \
		    "$log" | head -n 8 | sed 's/^/  /'
	else
		n=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		[ -n "$n" ] || n=$(sed -n 's/^Done \([0-9]*\) runs.*/\1/p;
		    s/^#\([0-9]*\).*DONE.*/\1/p' "$log" | tail -n 1)
		echo "fuzz $name: ${n:-?} inputs"
	fi
done
exit $rc
