# Both sides rewrite one line, and the merge writes a third version: all three touched it.
start
lines 1 5 >a.txt
base
git checkout -q -b side
sed -i 's/line 3 .*/line 3 of the file, by two/' a.txt
by P2
git checkout -q work
sed -i 's/line 3 .*/line 3 of the file, by one/' a.txt
by P1
merge side
lines 1 5 | sed 's/line 3 .*/line 3 of the file, by one and two/' >a.txt
by P3
#= ambiguous(P1,P2,P3) a.txt -3 "line 3 of the file\n" ambiguous
#= ambiguous(P1,P2,P3) a.txt +3 "line 3 of the file, by one and two\n" ambiguous
