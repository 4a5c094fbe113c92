# The history was cut below the base: nothing that is needed is missing.
start
lines 1 3 >a.txt
commit_all
echo four >>a.txt
base
echo more >>a.txt
by P1
cd ..
mv repo whole
git clone -q --bare --depth 2 --branch work "file://$PWD/whole" repo
git -C repo update-ref refs/tags/base "$(git -C whole rev-parse base)"
#= P1 a.txt +5 "more\n" in
