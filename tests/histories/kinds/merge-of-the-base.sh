# "Update branch": the base moves on and is merged into the branch. What came with it is the base's,
# and the range begins at the commit that was merged.
start
lines 1 9 >a.txt
commit_all
git checkout -q -b branch
sed -i 's/line 2 .*/two of P1/' a.txt
by P1
git checkout -q work
sed -i 's/line 8 .*/eight of the base/' a.txt
echo new >base.txt
base
git checkout -q branch
merge work
by nobody
sed -i 's/line 5 .*/five of P2/' a.txt
by P2
git branch -f work branch
git checkout -q work
#= P1 a.txt -2 "line 2 of the file\n" in
#= P1 a.txt +2 "two of P1\n" in
#= P2 a.txt -5 "line 5 of the file\n" in
#= P2 a.txt +5 "five of P2\n" in
