# Renamed by one, then rewritten so far by another that the final diff sees a removed and an added
# file: every line has a commit, and the lines that survived carry the doubt.
start
text one >a.rs
base
git mv a.rs b.rs
by P1
{ head -2 b.rs; lines 1 30; } >new
mv new b.rs
by P2
#= P1 a.rs -1 "fn one() {\n    let value = read(\"one\");\n" in #realigned
#= P2 a.rs -3 4 lines "    check(value);\n" in
#= P1 b.rs +1 "fn one() {\n    let value = read(\"one\");\n" in #realigned
#= P2 b.rs +3 30 lines "line 1 of the file\n" in
