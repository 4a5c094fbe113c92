# Both sides add the same line: it is the first parent's.
start
lines 1 3 >a.txt
base
git checkout -q -b side
echo same >>a.txt
by P2
git checkout -q work
echo same >>a.txt
by P1
merge side
by nobody
#= P1 a.txt +4 "same\n" in
