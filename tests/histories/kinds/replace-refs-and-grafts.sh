# Replace refs, grafts and a lying commit-graph have no say.
start
lines 1 3 >a.txt
base
echo 'from P1' >>a.txt
by P1
echo 'from nobody' >>a.txt
by nobody
git replace HEAD "$(git commit-tree -p base -m lie HEAD~1^{tree})"
git rev-parse HEAD base | paste -sd' ' >.git/info/grafts
git replace "$(git --no-replace-objects rev-parse HEAD~1:a.txt)" "$(git hash-object -w /dev/null)"
#= P1 a.txt +4 "from P1\n" in
#= unplanned a.txt +5 "from nobody\n" unplanned
