# Two files change places by way of a third name.
start
text one >a.rs
{ text two; text three; } >b.rs
base
git mv a.rs t.rs
git mv b.rs a.rs
git mv t.rs b.rs
by P1
#= P1 a.rs -1 "fn one() {\n    let value = read(\"one\");\n" in
#= P1 a.rs +1 "fn two() {\n    let value = read(\"two\");\n" in
#= P1 a.rs -5 "    done(one);\n" in
#= P1 a.rs +5 7 lines "    done(two);\n" in #moved[1,7,6,1]
#= P1 b.rs -1 "fn two() {\n    let value = read(\"two\");\n" in
#= P1 b.rs +1 "fn one() {\n    let value = read(\"one\");\n" in
#= P1 b.rs -5 7 lines "    done(two);\n" in #moved[1,7,3,1]
#= P1 b.rs +5 "    done(one);\n" in
