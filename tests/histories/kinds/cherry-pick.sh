# A commit is picked from a side branch, which is merged later: the line is the first parent's.
start
lines 1 9 >a.txt
base
git checkout -q -b side
sed -i 's/line 8 .*/eight/' a.txt
by P2
git checkout -q work
git cherry-pick side >/dev/null
git commit -q --amend -m 'picked for P1'
made P1
merge side
by nobody
#= P1 a.txt -8 "line 8 of the file\n" in
#= P1 a.txt +8 "eight\n" in
