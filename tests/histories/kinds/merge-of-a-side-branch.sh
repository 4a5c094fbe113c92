# A side branch comes in by a clean merge that nobody owns: its lines are those of its commits.
start
lines 1 9 >a.txt
base
git checkout -q -b side
sed -i 's/line 8 .*/eight of P2/' a.txt
by P2
git checkout -q work
sed -i 's/line 2 .*/two of P1/' a.txt
by P1
merge side
by nobody
#= P1 a.txt -2 "line 2 of the file\n" in
#= P1 a.txt +2 "two of P1\n" in
#= P2 a.txt -8 "line 8 of the file\n" in
#= P2 a.txt +8 "eight of P2\n" in
