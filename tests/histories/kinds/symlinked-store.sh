# Folders of the object store are links to elsewhere: read all the same.
start
lines 1 3 >a.txt
base
echo more >>a.txt
by P1
git gc -q
mkdir ../elsewhere
mv .git/objects/pack ../elsewhere/pack
ln -s ../../../elsewhere/pack .git/objects/pack
echo four >>a.txt
by P2
mv .git/objects ../elsewhere/objects
ln -s ../../elsewhere/objects .git/objects
rm ../elsewhere/objects/pack
ln -s ../pack ../elsewhere/objects/pack
#= P1 a.txt +4 "more\n" in
#= P2 a.txt +5 "four\n" in
