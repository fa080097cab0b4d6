#!/usr/bin/env bash
# Run these make targets in turn, each whatever failed before it, and print how each ended and how long it took. The
# exit status is 1 if any failed. `make ci` passes the list. A skipped test fails (tests/support/no_skips.py).
set -uo pipefail
cd "$(dirname "$0")/.."
export CI=true

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=()

for step in "$@"; do
  began=$SECONDS status=passed
  printf '\n=== make %s\n' "$step"
  make "$step" 2>&1 | tee -a "$log" || { status=FAILED; failed+=("$step"); }
  printf '=== make %s: %s in %d s\n' "$step" "$status" $((SECONDS - began))
done

printf '\n'
# The closing line of each pytest run, where the end of the log shows it.
grep -E '^=* ?[0-9]+ (passed|failed).* in [0-9.]+s' "$log"
if ((${#failed[@]})); then
  echo "CI failed: ${failed[*]}"
  exit 1
fi
