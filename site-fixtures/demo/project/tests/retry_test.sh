# A line that drops twice is tried three times.
set -eu
. ./lib.sh
calls=0
transport() {
    calls=$((calls + 1))
    [ "$calls" -ge 3 ]
}
send_with_retries http://station.example body 5
[ "$calls" -eq 3 ]
