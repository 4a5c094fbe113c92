# One side deletes a file that the other edited; the merge lets it go: the deletion is the side's,
# together with the edit that it ended.
start
lines 1 3 >a.txt
echo stays >b.txt
base
git checkout -q -b side
git rm -q a.txt
by P2
git checkout -q work
echo stays too >>b.txt
by P1
merge side
by nobody
#= P2 a.txt -1 "line 1 of the file\nline 2 of the file\nline 3 of the file\n" in
#= P1 b.txt +2 "stays too\n" in
