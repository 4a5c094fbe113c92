# `-s ours`: the other side's work is not in the result, so that nothing of it is shown.
start
lines 1 5 >a.txt
base
git checkout -q -b side
sed -i 's/line 3 .*/three of P2/' a.txt
echo more >b.txt
by P2
git checkout -q work
sed -i 's/line 1 .*/one of P1/' a.txt
by P1
merge -s ours side
by nobody
#= P1 a.txt -1 "line 1 of the file\n" in
#= P1 a.txt +1 "one of P1\n" in
