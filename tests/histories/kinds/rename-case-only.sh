# Only the case of the name changes.
start
text one >Name.rs
base
git mv Name.rs name.rs
by P1
#= P1 Name.rs -> name.rs rename in
