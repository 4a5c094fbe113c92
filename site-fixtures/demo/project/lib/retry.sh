# Sends a request again until the station takes it.
#
# The caller may replace `transport` with another way to send.

transport() {
    curl --silent --fail --data "$2" "$1"
}

send_with_retries() {
    url=$1
    body=$2
    max=$3
    n=1
    while [ "$n" -le "$max" ]; do
        log_attempt "$n" "$max"
        if transport "$url" "$body"; then
            return 0
        fi
        n=$((n + 1))
        sleep 1
    done
    return 1
}

send_once() {
    transport "$1" "$2"
}
