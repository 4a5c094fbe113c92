# A folder becomes a file and a file becomes a folder, and back.
start
mkdir d
lines 1 3 >d/inside
lines 4 6 >f
base
rm -r d f
echo 'a file now' >d
mkdir f
echo 'inside now' >f/inside
by P1
#= P1 d +1 "a file now\n" in
#= P1 d/inside -1 "line 1 of the file\nline 2 of the file\nline 3 of the file\n" in
#= P1 f -1 "line 4 of the file\nline 5 of the file\nline 6 of the file\n" in
#= P1 f/inside +1 "inside now\n" in
