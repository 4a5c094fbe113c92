# Renamed and renamed back: no change but the edit between.
start
text one >a.rs
base
git mv a.rs b.rs
by P1
echo '// more' >>b.rs
by P2
git mv b.rs a.rs
by P3
#= P2 a.rs +7 "// more\n" in
