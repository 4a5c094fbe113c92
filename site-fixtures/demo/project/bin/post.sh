#!/bin/sh
# Sends one measurement: post.sh URL BODY
set -eu

here=$(dirname "$0")
. "$here/../lib/log.sh"
. "$here/../lib/retry.sh"

MAX_ATTEMPTS=5

url=$1
body=$2

if send_with_retries "$url" "$body" "$MAX_ATTEMPTS"; then
    log "sent $body"
else
    log "gave up on $body"
    exit 1
fi
