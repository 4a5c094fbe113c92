# Trailers are labels; a commit that the ledger lacks is foreign.
start
lines 1 3 >a.txt
base
echo forged >>a.txt
git add -A
git commit -q -m "a change" -m "Plan-Item: P1"
#= unplanned a.txt +4 "forged\n" unplanned
