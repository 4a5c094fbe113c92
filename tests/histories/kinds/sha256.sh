# A repository that names its objects by SHA-256.
start --object-format=sha256
lines 1 5 >a.txt
base
git checkout -q -b side
sed -i 's/line 5 .*/five/' a.txt
by P2
git checkout -q work
sed -i 's/line 1 .*/one/' a.txt
chmod +x a.txt
by P1
merge side
by nobody
#= P1 a.txt mode in #executable
#= P1 a.txt -1 "line 1 of the file\n" in
#= P1 a.txt +1 "one\n" in
#= P2 a.txt -5 "line 5 of the file\n" in
#= P2 a.txt +5 "five\n" in
