# Text in other encodings, lone carriage returns, U+2028 and form feeds: a line ends after a line
# feed and nowhere else.
start
printf 'one\ntwo\n' >latin
printf 'a\rb\rc\n' >cr
printf 'a\xe2\x80\xa8b\x0cc\n' >separators
base
printf 'one\ntw\xf6\n' >latin
by P1
printf 'a\rB\rc\n' >cr
by P2
printf 'a\xe2\x80\xa8b\x0cC\n' >separators
by P3
#= P2 cr -1 "a\rb\rc\n" in #invisible
#= P2 cr +1 "a\rB\rc\n" in #invisible
#= P1 latin -2 "two\n" in
#= P1 latin +2 "base64:dHf2Cg==" in
#= P3 separators -1 "a\u{2028}b\u{c}c\n" in #invisible
#= P3 separators +1 "a\u{2028}b\u{c}C\n" in #invisible
