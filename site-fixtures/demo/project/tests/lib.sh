# Loads the library with a silent clock.
for file in ../lib/log.sh ../lib/report.sh; do
    if [ -f "$file" ]; then
        . "$file"
    fi
done
. ../lib/retry.sh
sleep() { waited="${waited:-}$1 "; }
log_attempt() { :; }
