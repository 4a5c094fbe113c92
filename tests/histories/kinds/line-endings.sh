# LF becomes CRLF in one line, and a whole file flips.
start
printf 'one\ntwo\nthree\n' >a.txt
printf 'one\r\ntwo\r\n' >b.txt
base
printf 'one\ntwo\r\nthree\n' >a.txt
by P1
printf 'one\ntwo\n' >b.txt
by P2
#= P1 a.txt -2 "two\n" in #eol
#= P1 a.txt +2 "two\r\n" in #eol
#= P2 b.txt -1 "one\r\ntwo\r\n" in #eol
#= P2 b.txt +1 "one\ntwo\n" in #eol
