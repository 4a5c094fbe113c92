# Lines that are only removed are their remover's; a later removal of a line that another had
# rewritten is both's; a file that is removed is its remover's.
start
lines 1 9 >a.txt
lines 1 3 >b.txt
base
sed -i 2d a.txt
by P1
sed -i 's/line 5 of/line five of/' a.txt
by P2
sed -i 4d a.txt
by P3
git rm -q b.txt
by nobody
#= P1 a.txt -2 "line 2 of the file\n" in
#= ambiguous(P2,P3) a.txt -5 "line 5 of the file\n" ambiguous
#= unplanned b.txt -1 "line 1 of the file\nline 2 of the file\nline 3 of the file\n" unplanned
