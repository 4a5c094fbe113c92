# Renamed and edited in one commit, edited again by another.
start
text one >a.rs
base
git mv a.rs b.rs
sed -i 's/store(value)/keep(value)/' b.rs
by P1
echo '// more' >>b.rs
by P2
#= P1 a.rs -> b.rs rename in
#= P1 a.rs -> b.rs -4 "    store(value);\n" in
#= P1 a.rs -> b.rs +4 "    keep(value);\n" in
#= P2 a.rs -> b.rs +7 "// more\n" in
