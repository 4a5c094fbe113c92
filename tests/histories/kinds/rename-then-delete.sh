# Renamed by one and deleted by another: text, empty and binary. An empty
# file is never taken for the same one under another name, so its deletion is the first one's.
start
text one >a.rs
: >empty
printf 'a\0' >bin
base
git mv a.rs b.rs
git mv empty empty2
git mv bin bin2
by P1
git rm -q b.rs empty2 bin2
by P2
#= P2 a.rs -1 6 lines "fn one() {\n" in
#= ambiguous(P1,P2) bin binary ambiguous
#= P1 empty empty in
