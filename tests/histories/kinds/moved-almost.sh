# Moved and changed: no tag.
start
{ text one; text two; } >a.rs
text three >b.rs
base
text two >a.rs
{ text three; text one | sed 's/;/ ;/'; } >b.rs
by P1
#= P1 a.rs -1 6 lines "fn one() {\n" in
#= P1 b.rs +7 6 lines "fn one() {\n" in
