# Objects that lie in another repository are read from there.
start
lines 1 3 >a.txt
base
echo more >>a.txt
by P1
cd ..
mv repo whole
git clone -q --bare --shared whole repo
#= P1 a.txt +4 "more\n" in
