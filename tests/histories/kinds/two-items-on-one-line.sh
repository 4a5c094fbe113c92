# Two items rewrite one line: it is neither's alone, on both sides.
start
lines 1 3 >a.txt
base
sed -i 's/line 2 of/line two of/' a.txt
by P1
sed -i 's/line two of the file/line two of the files/' a.txt
by P2
#= ambiguous(P1,P2) a.txt -2 "line 2 of the file\n" ambiguous
#= ambiguous(P1,P2) a.txt +2 "line two of the files\n" ambiguous
