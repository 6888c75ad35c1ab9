#!/usr/bin/env bash
# Fuzzing, here or on a machine that has neither Go nor the sources.
#
#   tools/fuzz.sh build DIR                            compiles every package that has a target, instrumented, into DIR
#   tools/fuzz.sh run DIR TIME [AT_ONCE [WORKERS]]     runs every target for TIME (as in 60s), AT_ONCE targets beside each other with
#                                                      WORKERS processes each (1 and 1), and counts the executions
#   tools/fuzz.sh pack DIR FILE                        makes a .tar.gz of DIR and of this script, to be unpacked elsewhere
#
# The first target that fails ends the run, and what it failed on is shown; in DIR testdata is that of the sources, so that it lies there too.
# Where VELOCPY_TURN counts commits, build takes every second package, by turns.
# What the fuzzer finds out on its way is kept in DIR/cache for the next run; FUZZ_ONLY is a pattern for the targets to run.
set -euo pipefail

build() {
  local dir=$1 file package
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  rm -rf "$dir/targets"
  for package in $(grep -rlE '^func Fuzz' --include='*_test.go' gocore | xargs -n1 dirname | sort -u |
    awk -v turn="${VELOCPY_TURN:-}" 'turn == "" || NR % 2 == turn % 2'); do
    mkdir -p "$dir/targets/$package"
    # Without cgo the programs need no library of the machine they run on.
    CGO_ENABLED=0 go test -c -fuzz=. -ldflags='-s -w' -o "$dir/targets/$package/fuzz.test" "./$package"
    mkdir -p "$package/testdata" # without files git does not see it
    ln -s "$PWD/$package/testdata" "$dir/targets/$package/testdata"
    grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$package"/*_test.go | cut -c6- | sed "s|^|$package |"
  done >"$dir/targets.txt"
}

# ended_late is true of a run that failed only because its time was over: before 1.27, Go's coordinator of fuzzing takes the end of the time for a failure
# when it sees it before its workers do (go.dev/issue/75804). A target that hangs, panics or fails says more, or says it with an input.
ended_late() {
  local status=$1 said=$2
  ((status != 0)) && [[ $(sed -n '/^--- FAIL/,$p' "$said" | sed 1d) == $'    context deadline exceeded\nFAIL' ]]
}

# one runs a target and puts what it says into a file, of which the last line with executions counts.
one() {
  local dir=$1 time=$2 workers=$3 package=$4 target=$5
  # Targets of two packages may have one name.
  local said="$dir/said/$package/$target" cache="$dir/cache/$package/$target" status
  mkdir -p "$cache" "$dir/said/$package"
  cd "$dir/targets/$package"
  for _ in 1 2 3; do
    status=0
    # A second of making an input shorter is a second without a new one: 200 tries are enough.
    GOMAXPROCS=$workers ./fuzz.test -test.run='^$' -test.fuzz="^$target\$" -test.fuzztime="$time" -test.parallel="$workers" \
      -test.fuzzcachedir="$cache" -test.fuzzminimizetime=200x >"$said" 2>&1 || status=$?
    ended_late "$status" "$said" || break
  done
  if ((status != 0)); then
    { echo "fuzz: $target in $package fails"; cat "$said"; } >&2
    local input
    input=$(sed -n 's/^ *Failing input written to //p' "$said" | head -n1)
    if [[ -n $input && -f $input ]]; then
      { echo "fuzz: $package/$input is"; cat "$input"; } >&2
    fi
    exit 255 # ends xargs
  fi
  echo "$package/$target $(sed -nE 's/.*execs: ([0-9]+).*/\1/p' "$said" | tail -n1)" | tee -a "$dir/counts.txt"
}

run() {
  local dir time=$2 at_once=${3:-1} workers=${4:-1}
  dir=$(cd "$1" && pwd)
  rm -rf "$dir/said" "$dir/counts.txt"
  { grep -E "${FUZZ_ONLY:-.}" "$dir/targets.txt" || true; } |
    xargs -r -L1 -P "$at_once" bash "${BASH_SOURCE[0]}" one "$dir" "$time" "$workers"
  awk -v time="$time" '{n += $2; targets++} END {printf "fuzz: %d targets, %s each: %.0f executions\n", targets, time, n}' "$dir/counts.txt"
}

pack() {
  cp "${BASH_SOURCE[0]}" "$1/fuzz.sh"
  tar -C "$1" -chzf "$2" fuzz.sh targets.txt targets
}

"$@"
