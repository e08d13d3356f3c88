#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpu-day [FOLDER]: collects all that Penstock needs to know about a machine with a GPU, in steps. Needs no network.
#
# Describes the machine (`penstock version`, `penstock doctor`), runs each suite of the tests that need a GPU, and
# measures copies, landing and kernels (bin/gpu_bench) and memory, sockets and protocols (`penstock bench cluster`). For
# a missing part there is a row with the reason.
#
# FOLDER (default: gpu-day-results here) then has gpu-day.json (a line for each step), gpu-day.html, failures.txt (each
# failure, with the end of its output), gpu-report.json and .html (the measurements; .html if this machine has Python
# with matplotlib and Jinja2), and a log for each step.
#
# A step takes at most GPU_DAY_STEP seconds (240), and no step begins after GPU_DAY_SECONDS (1200). A second call with
# the same folder continues with the steps that have no result. To repeat a step, remove its .json. PENSTOCK_BENCH:
# flags of the bench in place of the quick ones.
#
# Exit status: 0 if every step passed or had nothing to run here, 1 if a step failed, 2 if steps are left.
here=$(cd "$(dirname "$0")" && pwd) || exit 1
bench=${PENSTOCK_BENCH:---pairs 2 --window 0.3}

case "$1" in  # a step, as a separate command that can be killed
  --doctor)
    "$here/bin/penstock" doctor
    [ $? -le 1 ]  # 1: warnings only
    exit
    ;;
  --measure)
    report=$2/gpu-report
    figures=$2/gpu_bench.figures
    set --
    if grep '^{' "${figures%.figures}.log" >"$figures" 2>/dev/null; then set -- --gpu-figures "$figures"; fi
    # shellcheck disable=SC2086 # flags are words
    "$here/bin/penstock" bench cluster $bench "$@" --json "$report.json" --html "$report.html" || exit
    cat "$figures" >>"$report.json"
    exit
    ;;
esac

folder=${1:-$here/gpu-day-results}
mkdir -p "$folder" && folder=$(cd "$folder" && pwd) || exit 1
step_limit=${GPU_DAY_STEP:-240}
until=$(($(date +%s) + ${GPU_DAY_SECONDS:-1200}))
names=
left=0

# step NAME COMMAND…: writes its output to NAME.log and its result to NAME.json.
step() {
  name=$1
  shift
  names="$names $name"
  [ ! -e "$folder/$name.json" ] || return 0
  begun=$(date +%s)
  if [ "$begun" -ge "$until" ]; then
    left=$((left + 1))
    return 0
  fi
  # In the foreground, so that Ctrl-C ends the step too.
  timeout --foreground -k 10 "$step_limit" "$@" >"$folder/$name.log" 2>&1
  status=$?
  seconds=$(($(date +%s) - begun))
  result=failed
  if [ "$status" = 124 ] || { [ "$status" = 137 ] && [ "$seconds" -ge "$step_limit" ]; }; then
    result="timed out"
  elif [ "$status" = 0 ] && grep -q '^\[  SKIPPED \]' "$folder/$name.log" && ! grep -q '^\[       OK \]' "$folder/$name.log"; then
    result=skipped
  elif [ "$status" = 0 ]; then
    result=passed
  fi
  printf '{"step": "%s", "result": "%s", "status": %d, "seconds": %d}\n' \
    "$name" "$result" "$status" "$seconds" >"$folder/$name.json.part"
  mv "$folder/$name.json.part" "$folder/$name.json"
  printf '%-40s %s, %d s\n' "$name" "$result" "$seconds"
}

suites_of() { timeout 60 "$1" --gtest_list_tests 2>/dev/null | sed -n 's/^\([A-Za-z0-9_/]*\)\..*/\1/p'; }

step version "$here/bin/penstock" version
step doctor "$here/${0##*/}" --doctor
for program in "$here"/tests/*; do
  suites=$(suites_of "$program")
  [ -n "$suites" ] || step "$(basename "$program")" "$program" --gtest_list_tests
  for suite in $suites; do
    step "$(basename "$program")-$(echo "$suite" | tr / _)" \
      env PENSTOCK_REQUIRE_GPU=1 PENSTOCK_PAGE_LOCK=on PENSTOCK_UCX_LANES=tcp "$program" "--gtest_filter=$suite.*"
  done
done
[ ! -x "$here/bin/gpu_bench" ] || step gpu_bench "$here/bin/gpu_bench"  # in a build with CUDA
step measurements "$here/${0##*/}" --measure "$folder"

# --- Results --------------------------------------------------------------------------

: >"$folder/gpu-day.json"
: >"$folder/failures.txt"
failed=0
for name in $names; do
  [ -e "$folder/$name.json" ] || continue
  cat "$folder/$name.json" >>"$folder/gpu-day.json"
  grep -q '"result": "passed"\|"result": "skipped"' "$folder/$name.json" && continue
  failed=$((failed + 1))
  {
    printf '=== '
    cat "$folder/$name.json"
    grep -n 'Failure$\|^\[  FAILED  \]' "$folder/$name.log" | head -n 40
    echo '--- the end of its log'
    tail -n 40 "$folder/$name.log"
    echo
  } >>"$folder/failures.txt"
done

escaped() { sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g' "$1"; }
{
  echo '<!doctype html><meta charset="utf-8"><title>Penstock on a GPU</title>'
  echo '<style>body{font-family:sans-serif;margin:2em}td,th{padding:.2em .8em;text-align:left}.bad{color:#b00}</style>'
  echo '<h1>Penstock on a GPU</h1><pre>'
  if [ -e "$folder/version.log" ]; then escaped "$folder/version.log"; fi
  echo '</pre><table><tr><th>step<th>result<th>seconds'
  sed 's/.*"step": "\([^"]*\)", "result": "\([^"]*\)".*"seconds": \([0-9]*\).*/<tr><td>\1<td class="\2">\2<td>\3/
       s/class="failed"/class="bad"/; s/class="timed out"/class="bad"/' "$folder/gpu-day.json"
  echo '</table>'
  [ "$left" = 0 ] || echo "<p class=bad>$left steps are left: call gpu-day again.</p>"
  if [ -e "$folder/gpu-report.html" ]; then
    echo '<p><a href="gpu-report.html">Measurements</a></p>'
  elif [ -e "$folder/gpu-report.json" ]; then  # no Python with what the page needs
    echo '<p><a href="gpu-report.json">Measurements</a>; elsewhere,'
    echo '<code>penstock bench page gpu-report.json gpu-report.html</code> makes a page of them</p>'
  fi
  if [ -s "$folder/failures.txt" ]; then
    echo '<h2>What failed</h2><pre>'
    escaped "$folder/failures.txt"
    echo '</pre>'
  fi
} >"$folder/gpu-day.html"

echo "$folder/gpu-day.html: $(wc -l <"$folder/gpu-day.json") steps, $failed failed, $left left"
[ "$left" = 0 ] || exit 2
[ "$failed" = 0 ]
