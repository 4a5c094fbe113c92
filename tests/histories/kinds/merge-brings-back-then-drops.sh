# A side branch removes a line, a merge brings it back, and a later merge of the side branch drops
# it: the later merge removed it, because the one before had undone the side branch's removal.
start
lines 1 5 >a.txt
base
git checkout -q -b side
sed -i '/line 3 /d' a.txt
by P1
git checkout -q work
echo more >b.txt
by P2
merge side
lines 1 5 >a.txt
by nobody
git checkout -q side
echo else >c.txt
by P1
git checkout -q work
merge side
sed -i '/line 3 /d' a.txt
by P3
#= P3 a.txt -3 "line 3 of the file\n" in
#= P2 b.txt +1 "more\n" in
#= P1 c.txt +1 "else\n" in
