# Taken back and brought again: the new line is of the commit that brought it again. The line of
# the base went with the first commit; what the second one brought back is a line of its own.
start
lines 1 5 >a.txt
base
sed -i 's/line 3 .*/something else/' a.txt
by P1
git revert --no-edit HEAD >/dev/null
made P2
git revert --no-edit HEAD >/dev/null
made P3
#= P1 a.txt -3 "line 3 of the file\n" in
#= P3 a.txt +3 "something else\n" in
