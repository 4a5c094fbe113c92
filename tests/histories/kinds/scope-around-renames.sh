# Scope is judged at the path that the file had in each commit: P1 declares only the old name.
start
text one >a.rs
base
declares P1 a.rs
declares P2 b.rs a.rs
echo '// early' >>a.rs
by P1
git mv a.rs b.rs
by P2
echo '// late' >>b.rs
by P1
#= P2 a.rs -> b.rs rename in
#= P1 a.rs -> b.rs +7 "// early\n" in
#= P1 a.rs -> b.rs +8 "// late\n" out #out-of-scope
