# One side renames the file, the other edits it; the merge has both.
start
text one >a.rs
base
git checkout -q -b side
git mv a.rs b.rs
by P2
git checkout -q work
sed -i 's/check(value)/check_all(value)/' a.rs
by P1
merge side
by nobody
#= P2 a.rs -> b.rs rename in
#= P1 a.rs -> b.rs -3 "    check(value);\n" in
#= P1 a.rs -> b.rs +3 "    check_all(value);\n" in
