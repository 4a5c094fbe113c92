# A merge of a commit with an ancestor of that commit has no side to take: what it takes from the
# ancestor is its own, in lines that it adds again, in binary content and in modes.
start
lines 11 15 >b.txt
printf '\0base' >c.bin
echo old >e.sh
base
echo added >>b.txt
printf '\0one' >c.bin
chmod +x e.sh
by P1
git tag one
lines 11 15 >b.txt
printf '\0two' >c.bin
chmod -x e.sh
by P1
git tag two
git checkout -q one -- b.txt c.bin e.sh
git reset -q --hard "$(git commit-tree "$(git write-tree)" -p two -p one -m 'a merge')"
made nobody
git reset -q --hard "$(git commit-tree "HEAD^{tree}" -p base -p HEAD -m 'nothing')"
made P2
#= unplanned b.txt +6 "added\n" unplanned
#= unplanned(P1) c.bin binary unplanned
#= unplanned(P1) e.sh mode unplanned #executable
