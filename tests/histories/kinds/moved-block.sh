# A block is removed in one file and added byte-equal in another: both places are told.
start
{ text one; text two; } >a.rs
text three >b.rs
base
text two >a.rs
{ text three; text one; } >b.rs
by P1
#= P1 a.rs -1 6 lines "fn one() {\n" in #moved[1,6,1,1]
#= P1 b.rs +7 6 lines "fn one() {\n" in #moved[1,6,0,1]
