# The side branch starts at an ancestor of the base: what the base has changed since then is not
# the range's work.
start
lines 1 9 >a.txt
commit_all
git checkout -q -b side
sed -i 's/line 8 .*/eight of P2/' a.txt
by P2
git checkout -q work
sed -i 's/line 4 .*/four of the base/' a.txt
base
sed -i 's/line 2 .*/two of P1/' a.txt
by P1
merge side
by nobody
#= P1 a.txt -2 "line 2 of the file\n" in
#= P1 a.txt +2 "two of P1\n" in
#= P2 a.txt -8 "line 8 of the file\n" in
#= P2 a.txt +8 "eight of P2\n" in
