# The same with a root that nobody owns.
start
lines 1 3 >a.txt
base
git checkout -q --orphan other
git rm -q -rf .
echo of another root >b.txt
by nobody
git checkout -q work
merge --allow-unrelated-histories other
by P1
#= unplanned b.txt +1 "of another root\n" unplanned
