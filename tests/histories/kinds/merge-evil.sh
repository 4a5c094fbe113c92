# A merge that adds a line which no parent has, and drops one which both have: both are its own.
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
sed -i '5d' a.txt
echo 'planted' >>a.txt
by nobody
#= P1 a.txt -2 "line 2 of the file\n" in
#= P1 a.txt +2 "two of P1\n" in
#= unplanned a.txt -5 "line 5 of the file\n" unplanned
#= P2 a.txt -8 "line 8 of the file\n" in
#= P2 a.txt +7 "eight of P2\n" in
#= unplanned a.txt +9 "planted\n" unplanned
