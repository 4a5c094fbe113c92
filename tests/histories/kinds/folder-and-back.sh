# A file becomes a folder and a file again.
start
lines 1 3 >f
base
rm f
mkdir f
lines 1 3 >f/inside
by P1
rm -r f
lines 1 3 >f
echo more >>f
by P2
#= P2 f +4 "more\n" in
