# Commits without changes change nothing.
start
lines 1 3 >a.txt
base
by P1
by nobody
echo more >>a.txt
by P2
by P3
#= P2 a.txt +4 "more\n" in
