# Renamed by one, edited by another, renamed again by a third: lines stay what they are.
start
text one >a.rs
base
git mv a.rs b.rs
by P1
sed -i 's/check(value)/check_all(value)/' b.rs
by P2
git mv b.rs c.rs
by P3
#= ambiguous(P1,P3) a.rs -> c.rs rename ambiguous
#= P2 a.rs -> c.rs -3 "    check(value);\n" in
#= P2 a.rs -> c.rs +3 "    check_all(value);\n" in
