# Two branches merge each other: every line is still its commit's.
start
lines 1 9 >a.txt
base
git checkout -q -b side
sed -i 's/line 8 .*/eight of P2/' a.txt
by P2
git checkout -q work
sed -i 's/line 2 .*/two of P1/' a.txt
by P1
git tag one
merge side
by nobody
git checkout -q side
merge one
by nobody
sed -i 's/line 5 .*/five of P3/' a.txt
by P3
git checkout -q work
merge side
by nobody
#= P1 a.txt -2 "line 2 of the file\n" in
#= P1 a.txt +2 "two of P1\n" in
#= P3 a.txt -5 "line 5 of the file\n" in
#= P3 a.txt +5 "five of P3\n" in
#= P2 a.txt -8 "line 8 of the file\n" in
#= P2 a.txt +8 "eight of P2\n" in
