#!/bin/sh
# Runs every test of this folder.
set -eu
cd "$(dirname "$0")"
for test in *_test.sh; do
    sh "$test"
    echo "ok $test"
done
