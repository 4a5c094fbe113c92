# One side moves a file, the other keeps it, and the merge keeps both: each line of the copy is a
# line of the base that stands in two files. Its chain comes back to where it began, so the doubt is
# shown, and who gave the copy its path is named.
start
text one >a.rs
base
git checkout -q -b side
git mv a.rs b.rs
by P1
git checkout -q work
echo '// more' >>a.rs
by P2
merge side
text one >a.rs
echo '// more' >>a.rs
text one >b.rs
by P3
#= P2 a.rs +7 "// more\n" in
#= P1 b.rs +1 6 lines "fn one() {\n" in #realigned
