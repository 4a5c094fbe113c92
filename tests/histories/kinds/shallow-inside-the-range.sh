# The history between base and head was cut off: that is said, not guessed.
start
lines 1 3 >a.txt
base
for n in 1 2 3; do
  echo "more $n" >>a.txt
  by P1
done
cd ..
mv repo whole
git init -q --bare repo
git -C repo fetch -q --depth 1 "file://$PWD/whole" tag base work:work
#! is missing in
#! shallow
