# A foreign rename stays unplanned while the edits are their item's.
start
text one >a.rs
base
git mv a.rs b.rs
by nobody
echo '// more' >>b.rs
by P1
#= unplanned a.rs -> b.rs rename unplanned
#= P1 a.rs -> b.rs +7 "// more\n" in
