# One line per event on standard error, with the time.

log() {
    printf '%s %s\n' "$(date -u +%H:%M:%S)" "$1" >&2
}

log_attempt() {
    log "attempt $1 of $2"
}
