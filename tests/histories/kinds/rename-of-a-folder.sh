# A folder is renamed, with one file edited on the way.
start
mkdir old
for name in one two three; do text "$name" >"old/$name.rs"; done
base
git mv old new
echo '// more' >>new/two.rs
by P1
#= P1 old/one.rs -> new/one.rs rename in
#= P1 old/three.rs -> new/three.rs rename in
#= P1 old/two.rs -> new/two.rs rename in
#= P1 old/two.rs -> new/two.rs +7 "// more\n" in
