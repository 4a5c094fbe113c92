# What was taken back is no change, whoever did both.
start
lines 1 5 >a.txt
base
sed -i 's/line 3 .*/three/' a.txt
echo new >b.txt
by P1
git revert --no-edit HEAD >/dev/null
made P2
