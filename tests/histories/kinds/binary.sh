# Content decides what is binary: a NUL among the first 8,000 bytes. Attributes have no say, and
# text that becomes binary has one file segment.
start
printf 'a\0b' >bin
echo text >becomes
printf 'x%.0s' $(seq 8000) >late
printf '\0\n' >>late
echo text >marked
echo '*.* -diff' >.gitattributes
printf 'marked binary\nlate -diff\n' >.git/info/attributes
base
printf 'a\0c' >bin
by P1
printf 'text\0' >becomes
by P2
echo more >>marked
printf 'end\n' >>late
by P3
#= P2 becomes binary in
#= P1 bin binary in
#= P3 late +2 "end\n" in
#= P3 marked +2 "more\n" in
