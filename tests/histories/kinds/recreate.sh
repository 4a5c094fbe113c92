# Deleted by one and made again by another: each removed line is the deleter's, each new one the
# maker's, equal lines have not changed, and a binary file keeps both.
start
lines 1 4 >a.txt
printf 'a\0' >bin
base
rm a.txt bin
by P1
printf 'line 1 of the file\nnew\n' >a.txt
printf 'b\0' >bin
by P2
#= P1 a.txt -2 "line 2 of the file\nline 3 of the file\nline 4 of the file\n" in
#= P2 a.txt +2 "new\n" in
#= ambiguous(P1,P2) bin binary ambiguous
