# One line of 10 MB, changed at its end, and another one added.
start
head -c 10000000 /dev/zero | tr '\0' x >long
base
echo y >>long
by P1
{ head -c 10000000 /dev/zero | tr '\0' z; echo; } >>long
by P2
#= P1 long -1 10000000 bytes in #final-newline
#= P1 long +1 10000002 bytes in
#= P2 long +2 10000001 bytes in #final-newline
