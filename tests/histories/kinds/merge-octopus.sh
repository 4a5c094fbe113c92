# Three parents at once.
start
lines 1 9 >a.txt
base
for n in 2 3; do
  git checkout -q -b "side$n" base
  sed -i "s/line $((n * 3)) .*/line of P$n/" a.txt
  echo "file of P$n" >"new$n.txt"
  by "P$n"
done
git checkout -q work
sed -i 's/line 1 .*/line of P1/' a.txt
by P1
git merge -q --no-commit side2 side3 >/dev/null
by nobody
#= P1 a.txt -1 "line 1 of the file\n" in
#= P1 a.txt +1 "line of P1\n" in
#= P2 a.txt -6 "line 6 of the file\n" in
#= P2 a.txt +6 "line of P2\n" in
#= P3 a.txt -9 "line 9 of the file\n" in
#= P3 a.txt +9 "line of P3\n" in
#= P2 new2.txt +1 "file of P2\n" in
#= P3 new3.txt +1 "file of P3\n" in
