# The base is on another branch: refused.
start
lines 1 3 >a.txt
commit_all
git checkout -q -b other
echo more >>a.txt
base
git checkout -q work
echo else >>a.txt
by P1
#! is not an ancestor of head
