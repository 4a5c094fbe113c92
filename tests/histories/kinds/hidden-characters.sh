# Bidirectional controls, characters without width, and letters that look like others.
start
printf 'one\ntwo\nthree\nfour\n' >a.rs
base
printf 'if access_level != "user\xe2\x80\xae \xe2\x81\xa6// admin" {\ntwo\nthree\nfour\n' >a.rs
by P1
sed -i 's/^two$/tw\xe2\x80\x8bo/' a.rs
by P2
sed -i 's/^four$/f\xd0\xbeur()/' a.rs
by P3
#= P1 a.rs -1 "one\n" in
#= P2 a.rs -2 "two\n" in
#= P1 a.rs +1 "if access_level != \"user\u{202e} \u{2066}// admin\" {\n" in #bidi
#= P2 a.rs +2 "tw\u{200b}o\n" in #invisible
#= P3 a.rs -4 "four\n" in
#= P3 a.rs +4 "fоur()\n" in #confusable
