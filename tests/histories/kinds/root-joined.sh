# A history with a root of its own is merged in: its files are its commits'.
start
lines 1 3 >a.txt
base
git checkout -q --orphan other
git rm -q -rf .
echo of another root >b.txt
by P2
git checkout -q work
merge --allow-unrelated-histories other
by nobody
#= P2 b.txt +1 "of another root\n" in
